# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from task_info.yml: do not edit.
"""The options of modules task and task_info."""

from ..environment import limit
from ..form import Spec


def task_spec() -> Spec:
    """Return the options of module task."""
    return {
        "upid": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["finished", "stopped"], "default": "finished"},
        "task_timeout": limit(300, "PROXMOX_TASK_TIMEOUT"),
    }


def task_info_spec() -> Spec:
    return {
        "name": {"type": "str"},
        "vmid": {"type": "int"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "node": {"type": "str"},
        "upid": {"type": "str"},
        "started_by": {"type": "str"},
        "types": {"type": "list", "elements": "str"},
        "failed": {"type": "bool", "default": False},
        "since": {"type": "str"},
        "until": {"type": "str"},
        "limit": {"type": "int", "default": 100},
        "log": {"type": "bool", "default": False},
    }
