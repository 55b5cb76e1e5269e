# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules evacuation and evacuation_info.

Written by `make options` from evacuation.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

from ..environment import from_environment

Spec = dict[str, dict[str, Any]]


def evacuation_spec() -> Spec:
    """Return the options of module evacuation."""
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
        "parallel": {"type": "int", "default": 4, "fallback": from_environment("PROXMOX_PARALLEL")},
        "transfer_rate": {"type": "int", "default": 100},
        "extra_votes": {"type": "int", "default": 0},
        "windows": {"type": "list", "elements": "str"},
        "tenant_windows": {"type": "dict"},
        "ceph_noout": {"type": "bool", "default": True},
        "expected_version": {"type": "str"},
        "rebooted": {"type": "bool", "default": False},
        "next_node": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "wait_timeout": {
            "type": "int",
            "default": 900,
            "fallback": from_environment("PROXMOX_WAIT_TIMEOUT"),
        },
        "task_timeout": {
            "type": "int",
            "default": 3600,
            "fallback": from_environment("PROXMOX_TASK_TIMEOUT"),
        },
        "shutdown_timeout": {
            "type": "int",
            "default": 180,
            "fallback": from_environment("PROXMOX_SHUTDOWN_TIMEOUT"),
        },
    }


def evacuation_info_spec() -> Spec:
    """Return the options of module evacuation_info."""
    return {}
