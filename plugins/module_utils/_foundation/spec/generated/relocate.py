# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from relocate.yml: do not edit.
"""The options of module relocate."""

from ..environment import limit
from ..form import Spec


def relocate_spec() -> Spec:
    return {
        "to_site": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "returned"], "default": "present"},
        "all": {"type": "bool"},
        "vms": {"type": "list", "elements": "str"},
        "exclude": {"type": "list", "elements": "str"},
        "tags": {"type": "list", "elements": "str"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "confirm": {"type": "list", "elements": "str"},
        "storage": {"type": "str"},
        "storage_map": {"type": "dict"},
        "archive_storage": {"type": "str"},
        "archive_without": {"type": "list", "elements": "str", "choices": ["snapshots", "disks"]},
        "networks": {"type": "dict"},
        "ha_rules": {"type": "dict"},
        "replication_targets": {"type": "dict"},
        "pools": {"type": "dict"},
        "quotas": {"type": "dict", "default": {}},
        "node": {"type": "str"},
        "endpoints": {"type": "dict"},
        "vmid_range": {"type": "list", "elements": "int"},
        "bwlimit": {"type": "int"},
        "transfer_rate": {"type": "int"},
        "windows": {"type": "list", "elements": "str"},
        "hold": {"type": "str", "default": "1d"},
        "parallel": limit(2, "PROXMOX_PARALLEL"),
        "parallel_per_storage": limit(0, "PROXMOX_PARALLEL_PER_STORAGE"),
        "wait_timeout": limit(300, "PROXMOX_WAIT_TIMEOUT"),
        "settle": {"type": "int", "default": 10},
        "shutdown_timeout": limit(180, "PROXMOX_SHUTDOWN_TIMEOUT"),
        "task_timeout": limit(86400, "PROXMOX_TASK_TIMEOUT"),
    }
