# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from vm_info.yml: do not edit.
"""The options of module vm_info."""

from ..form import Spec


def filters_spec() -> Spec:
    """Return the filters of module vm_info."""
    return {
        "name": {"type": "str"},
        "vmid": {"type": "int"},
        "node": {"type": "str"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "tags": {"type": "list", "elements": "str"},
        "pool": {"type": "str"},
        "template": {"type": "bool"},
        "config": {"type": "bool", "default": False},
    }
