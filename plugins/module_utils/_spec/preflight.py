# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specification of module preflight_info, without the connection."""

from __future__ import annotations

from .vm import Spec

# The keys of _preflight.needs.TASKS; a test keeps them equal.
TASK_NAMES = [
    "cluster_info", "ha", "image_download", "image_upload", "network", "node_info", "pool", "rollback", "snapshot",
    "storage", "tenant", "vm_agent", "vm_clone", "vm_console", "vm_create", "vm_delete", "vm_disks", "vm_info",
    "vm_migrate", "vm_power", "vm_template", "vm_update",
]  # fmt: skip


def preflight_info_spec() -> Spec:
    """Return the options of module preflight_info."""
    return {
        "tasks": {"type": "list", "elements": "str", "choices": TASK_NAMES, "default": []},
        "vms": {"type": "list", "elements": "str", "default": []},
        "templates": {"type": "list", "elements": "str", "default": []},
        "nodes": {"type": "list", "elements": "str", "default": []},
        "storages": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "name": {"type": "str", "required": True},
                "content": {"type": "str", "default": "images"},
                "node": {"type": "str"},
            },
        },
        "bridges": {"type": "list", "elements": "str", "default": []},
        "pool": {"type": "str"},
        "min_version": {"type": "str", "default": "8.0"},
    }
