# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from power.yml: do not edit.
"""The options of module power."""

from ..environment import limit
from ..form import Spec


def power_spec() -> Spec:
    return {
        "state": {"type": "str", "required": True, "choices": ["started", "stopped"]},
        "tenants": {"type": "list", "elements": "str", "required": True},
        "unknown_tenants": {"type": "str", "choices": ["fail", "warn"], "default": "fail"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "exclude": {"type": "list", "elements": "str"},
        "selection": {"type": "str", "choices": ["recorded", "onboot", "all"]},
        "record": {"type": "path"},
        "unresponsive": {"type": "str", "choices": ["fail", "leave", "force"], "default": "fail"},
        "wait_for": {"type": "str", "choices": ["none", "agent", "address"], "default": "none"},
        "wait_timeout": limit(300, "PROXMOX_WAIT_TIMEOUT"),
        "parallel": limit(4, "PROXMOX_PARALLEL"),
        "shutdown_timeout": limit(180, "PROXMOX_SHUTDOWN_TIMEOUT"),
        "task_timeout": limit(3600, "PROXMOX_TASK_TIMEOUT"),
    }
