# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from snapshot.yml: do not edit.
"""The options of modules snapshot and snapshot_info."""

from ..environment import limit
from ..form import Spec


def choice_spec() -> Spec:
    """Return the options that select the VMs."""
    return {
        "name": {"type": "str"},
        "vmid": {"type": "int"},
        "vms": {"type": "list", "elements": "str"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "tags": {"type": "list", "elements": "str"},
    }


def snapshot_spec() -> Spec:
    """Return the options of module snapshot except the options that choose the VMs."""
    return {
        "state": {
            "type": "str",
            "choices": ["present", "absent", "rolled_back"],
            "default": "present",
        },
        "snapshot": {"type": "str"},
        "prefix": {"type": "str", "default": "auto-"},
        "description": {"type": "str"},
        "vmstate": {"type": "bool", "default": False},
        "keep": {"type": "int"},
        "keep_for": {"type": "str"},
        "pattern": {"type": "str"},
        "restart": {"type": "bool", "default": True},
        "force": {"type": "bool", "default": False},
        "parallel": limit(4, "PROXMOX_PARALLEL"),
        "task_timeout": limit(300, "PROXMOX_TASK_TIMEOUT"),
    }


def snapshot_info_spec() -> Spec:
    """Return the options of module snapshot_info except the options that choose the VMs."""
    return {"details": {"type": "bool", "default": False}}
