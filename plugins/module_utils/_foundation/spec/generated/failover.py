# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from failover.yml: do not edit.
"""The options of module failover."""

from ..environment import limit
from ..form import Spec


def failover_spec() -> Spec:
    return {
        "from_site": {"type": "str"},
        "lost": {"type": "bool", "default": False},
        "rehearsal": {"type": "bool", "default": False},
        "run": {"type": "str"},
        "storages": {"type": "list", "elements": "str"},
        "lost_nodes": {"type": "list", "elements": "str"},
        "configurations": {"type": "list", "elements": "str"},
        "replicas": {"type": "dict"},
        "vms": {"type": "list", "elements": "str"},
        "exclude": {"type": "list", "elements": "str"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "max_age": {"type": "str"},
        "storage": {"type": "str"},
        "storage_map": {"type": "dict"},
        "networks": {"type": "dict"},
        "addresses": {"type": "dict"},
        "keep_macs": {"type": "bool", "default": True},
        "pools": {"type": "dict"},
        "quotas": {"type": "dict", "default": {}},
        "node": {"type": "str"},
        "placement": {"type": "dict"},
        "copy_pool": {"type": "str"},
        "network": {"type": "str"},
        "vmid_range": {"type": "list", "elements": "int"},
        "start": {"type": "str", "choices": ["all", "onboot", "none"], "default": "all"},
        "parallel": limit(4, "PROXMOX_PARALLEL"),
        "wait_timeout": limit(300, "PROXMOX_WAIT_TIMEOUT"),
        "settle": {"type": "int", "default": 10},
        "task_timeout": limit(10800, "PROXMOX_TASK_TIMEOUT"),
    }
