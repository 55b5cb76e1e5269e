# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_group.yml: do not edit.
"""The options of modules ha_group and ha_group_info."""

from ..form import Spec


def ha_group_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "nodes": {"type": "list", "elements": "str"},
        "restricted": {"type": "bool"},
        "nofailback": {"type": "bool"},
        "comment": {"type": "str"},
    }


def ha_group_info_spec() -> Spec:
    return {"name": {"type": "str"}}
