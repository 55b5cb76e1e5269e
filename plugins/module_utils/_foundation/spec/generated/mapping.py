# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from mapping.yml: do not edit.
"""The options of modules mapping and mapping_info."""

from ..form import Spec


def mapping_spec() -> Spec:
    return {
        "type": {"type": "str", "required": True, "choices": ["dir", "pci", "usb"]},
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "description": {"type": "str"},
        "map": {
            "type": "list",
            "elements": "dict",
            "options": {
                "node": {"type": "str", "required": True},
                "path": {"type": "str"},
                "id": {"type": "str"},
                "iommugroup": {"type": "int"},
                "subsystem_id": {"type": "str"},
                "description": {"type": "str"},
            },
        },
        "exact": {"type": "bool", "default": False},
        "mdev": {"type": "bool"},
        "live_migration_capable": {"type": "bool"},
    }


def mapping_info_spec() -> Spec:
    return {
        "type": {"type": "str", "choices": ["dir", "pci", "usb"]},
        "name": {"type": "str"},
        "check_node": {"type": "str"},
    }
