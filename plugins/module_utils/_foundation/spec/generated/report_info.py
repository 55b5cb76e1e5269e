# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from report_info.yml: do not edit.
"""The options of module report_info."""

from ..form import Spec


def report_info_spec() -> Spec:
    return {
        "of_sites": {"type": "list", "elements": "str", "default": []},
        "estate": {"type": "dict"},
        "tenants": {"type": "dict", "default": {}},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "placement": {"type": "dict"},
        "addresses": {"type": "bool", "default": False},
        "memory_warn": {"type": "int", "default": 90},
        "storage_warn": {"type": "int", "default": 90},
        "snapshot_days": {"type": "int", "default": 30},
        "backup_days": {"type": "int", "default": 7},
        "drills": {"type": "str", "default": ""},
        "prices": {
            "type": "dict",
            "options": {
                "core": {"type": "str"},
                "memory": {"type": "str"},
                "storage": {"type": "str"},
                "currency": {"type": "str"},
            },
        },
        "history": {"type": "json", "default": ""},
    }
