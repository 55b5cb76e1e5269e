# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ceph_flag.yml: do not edit.
"""The options of module ceph_flag."""

from ..form import Spec


def ceph_flag_spec() -> Spec:
    """Return the options of module ceph_flag."""
    return {
        "flags": {
            "type": "list",
            "elements": "str",
            "required": True,
            "choices": (
                "nobackfill nodeep-scrub nodown noin noout norebalance "
                "norecover noscrub notieragent noup pause"
            ).split(),
        },
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "exact": {"type": "bool", "default": False},
    }
