# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from drill.yml: do not edit.
"""The options of modules drill and drill_info."""

from ..environment import limit
from ..form import Spec


def copies_spec() -> Spec:
    """Return the options of copies."""
    return {
        "copies": {"type": "int", "default": 3},
        "storage": {"type": "str"},
        "storage_map": {"type": "dict"},
        "node": {"type": "str"},
        "copy_pool": {"type": "str"},
        "network": {"type": "str"},
        "vmid_range": {"type": "list", "elements": "int", "default": [900000, 909999]},
        "task_timeout": limit(10800, "PROXMOX_TASK_TIMEOUT"),
    }


def plan_spec() -> Spec:
    """Return the options of module drill_info except the options of the guests and the copies."""
    return {
        "record": {"type": "str", "default": ""},
        "unproven_for": {"type": "str"},
        "sample": {"type": "int"},
        "storages": {"type": "list", "elements": "str"},
    }


def drill_spec() -> Spec:
    """Return the options of module drill without the options of copies."""
    return {
        "run": {"type": "str", "required": True},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "state": {"type": "str", "choices": ["started", "absent"], "default": "started"},
        "guests": {"type": "list", "elements": "dict", "default": []},
        "wait_timeout": limit(300, "PROXMOX_WAIT_TIMEOUT"),
        "settle": {"type": "int", "default": 10},
        "abandoned_after": {"type": "str", "default": "12h"},
    }


def guests_item_spec() -> Spec:
    """Return the options of one item of O(guests), which the module's work checks."""
    return {"vmid": {"type": "int", "required": True}, "archive": {"type": "str", "required": True}}
