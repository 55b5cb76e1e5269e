# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from restore.yml: do not edit.
"""The options of module restore."""

from ..environment import limit
from ..form import Spec


def restore_spec() -> Spec:
    return {
        "name": {"type": "str"},
        "vmid": {"type": "int"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "archive": {"type": "str", "default": "newest"},
        "before": {"type": "str"},
        "storages": {"type": "list", "elements": "str"},
        "new_name": {"type": "str"},
        "confirm": {"type": "str"},
        "keep": {"type": "str", "choices": ["archive", "copy", "none"], "default": "archive"},
        "keep_name": {"type": "str"},
        "keep_storage": {"type": "str"},
        "stop": {"type": "bool", "default": True},
        "options": {"type": "dict"},
        "storage": {"type": "str"},
        "storage_map": {"type": "dict"},
        "live": {"type": "bool", "default": False},
        "task_timeout": limit(10800, "PROXMOX_TASK_TIMEOUT"),
    }
