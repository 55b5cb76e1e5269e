# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from evacuation.yml: do not edit.
"""The options of modules evacuation and evacuation_info."""

from ..environment import limit
from ..form import Spec


def evacuation_spec() -> Spec:
    return {
        "node": {"type": "str", "required": True},
        "state": {
            "type": "str",
            "choices": ["evacuated", "recorded", "complete", "returned", "next"],
            "default": "evacuated",
        },
        "unmovable": {"type": "str", "choices": ["fail", "leave", "shutdown"], "default": "fail"},
        "restart_containers": {"type": "bool", "default": False},
        "move_stopped": {"type": "bool", "default": False},
        "ha_maintenance": {"type": "bool", "default": False},
        "placement": {"type": "dict"},
        "parallel": limit(4, "PROXMOX_PARALLEL"),
        "transfer_rate": {"type": "int", "default": 100},
        "extra_votes": {"type": "int", "default": 0},
        "windows": {"type": "list", "elements": "str"},
        "tenant_windows": {"type": "dict"},
        "ceph_noout": {"type": "bool", "default": True},
        "expected_version": {"type": "str"},
        "rebooted": {"type": "bool", "default": False},
        "next_node": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "wait_timeout": limit(900, "PROXMOX_WAIT_TIMEOUT"),
        "task_timeout": limit(3600, "PROXMOX_TASK_TIMEOUT"),
        "shutdown_timeout": limit(180, "PROXMOX_SHUTDOWN_TIMEOUT"),
    }


def evacuation_info_spec() -> Spec:
    return {}
