# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from vms.yml: do not edit.
"""The options of module vms except the options of a VM."""

from ..environment import limit
from ..form import Spec


def fleet_spec() -> Spec:
    """Return the options of module vms except the options of a VM."""
    return {
        "vms": {"type": "list", "elements": "dict"},
        "containers": {"type": "list", "elements": "dict"},
        "defaults": {"type": "dict", "default": {}},
        "tenants": {"type": "list", "elements": "str"},
        "tenant_settings": {"type": "dict", "default": {}},
        "usage_file": {"type": "path"},
        "tenants_required": {"type": "bool", "default": True},
        "remove": {"type": "bool", "default": False},
        "prune": {"type": "bool", "default": False},
        "backup_jobs": {"type": "bool", "default": True},
        "reboot_batch": limit(5, "PROXMOX_REBOOT_BATCH"),
        "plan_subject": {"type": "str", "default": ""},
        "details": {"type": "bool", "default": True},
        "parallel": limit(32, "PROXMOX_PARALLEL"),
        "parallel_per_node": limit(4, "PROXMOX_PARALLEL_PER_NODE"),
        "parallel_per_storage": limit(0, "PROXMOX_PARALLEL_PER_STORAGE"),
        "parallel_per_template": limit(4, "PROXMOX_PARALLEL_PER_TEMPLATE"),
    }


def listed_spec() -> Spec:
    """Return the options that items, classes and tenants can also have."""
    return {
        "site_placement": {
            "type": "dict",
            "options": {
                "sites": {"type": "list", "elements": "str"},
                "exclude": {"type": "list", "elements": "str"},
                "labels": {"type": "dict"},
                "strategy": {
                    "type": "str",
                    "choices": ["least_used", "round_robin", "first", "cheapest"],
                },
                "affinity": {"type": "list", "elements": "str"},
                "anti_affinity": {"type": "list", "elements": "str"},
                "affinity_policy": {"type": "str", "choices": ["required", "preferred"]},
            },
        },
        "backup": {
            "type": "dict",
            "options": {
                "schedule": {"type": "str"},
                "storage": {"type": "str"},
                "keep": {
                    "type": "dict",
                    "options": {
                        "keep_all": {"type": "bool"},
                        "keep_last": {"type": "int"},
                        "keep_hourly": {"type": "int"},
                        "keep_daily": {"type": "int"},
                        "keep_weekly": {"type": "int"},
                        "keep_monthly": {"type": "int"},
                        "keep_yearly": {"type": "int"},
                    },
                },
                "mode": {"type": "str", "choices": ["", "snapshot", "suspend", "stop"]},
                "compress": {"type": "str", "choices": ["", "0", "gzip", "lzo", "zstd"]},
                "notes_template": {"type": "str"},
                "bwlimit": {"type": "int"},
                "repeat_missed": {"type": "bool"},
            },
        },
    }
