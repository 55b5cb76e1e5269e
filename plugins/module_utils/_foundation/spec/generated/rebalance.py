# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from rebalance.yml: do not edit.
"""The options of module rebalance."""

from ..environment import limit
from ..form import Spec


def rebalance_spec() -> Spec:
    return {
        "max_moves": {"type": "int", "default": 5},
        "max_size": {"type": "str", "default": "100G"},
        "threshold": {"type": "int", "default": 5},
        "tenants": {"type": "list", "elements": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "local_disks": {"type": "bool", "default": False},
        "restart_containers": {"type": "bool", "default": False},
        "move_stopped": {"type": "bool", "default": False},
        "placement": {"type": "dict"},
        "tenant_placement": {"type": "dict"},
        "parallel": limit(4, "PROXMOX_PARALLEL"),
        "transfer_rate": {"type": "int", "default": 100},
        "windows": {"type": "list", "elements": "str"},
        "tenant_windows": {"type": "dict"},
        "task_timeout": limit(3600, "PROXMOX_TASK_TIMEOUT"),
    }
