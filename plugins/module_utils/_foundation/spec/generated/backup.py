# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from backup.yml: do not edit.
"""The options of modules backup and backup_info."""

from ..environment import limit
from ..form import Spec


def choice_spec() -> Spec:
    """Return the options that select the guests."""
    return {
        "name": {"type": "str"},
        "vmid": {"type": "int"},
        "vms": {"type": "list", "elements": "str"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "tags": {"type": "list", "elements": "str"},
        "pool": {"type": "str"},
    }


def backup_spec() -> Spec:
    """Return the options of module backup except the options that choose the guests."""
    return {
        "storage": {"type": "str", "required": True},
        "mode": {"type": "str", "choices": ["snapshot", "suspend", "stop"]},
        "compress": {"type": "str", "choices": ["0", "gzip", "lzo", "zstd"]},
        "notes_template": {"type": "str"},
        "protected": {"type": "bool", "default": False},
        "fleecing": {
            "type": "dict",
            "options": {"enabled": {"type": "bool"}, "storage": {"type": "str"}},
        },
        "bwlimit": {"type": "int"},
        "ionice": {"type": "int"},
        "zstd": {"type": "int"},
        "pigz": {"type": "int"},
        "performance": {
            "type": "dict",
            "options": {"max_workers": {"type": "int"}, "pbs_entries_max": {"type": "int"}},
        },
        "exclude_path": {"type": "list", "elements": "str"},
        "stdexcludes": {"type": "bool"},
        "lockwait": {"type": "int"},
        "stopwait": {"type": "int"},
        "tmpdir": {"type": "str"},
        "script": {"type": "str"},
        "notification_mode": {
            "type": "str",
            "choices": ["auto", "legacy-sendmail", "notification-system"],
        },
        "mailto": {"type": "list", "elements": "str"},
        "mailnotification": {"type": "str", "choices": ["always", "failure"]},
        "pbs_change_detection_mode": {"type": "str", "choices": ["legacy", "data", "metadata"]},
        "max_age": {"type": "str"},
        "keep": {
            "type": "dict",
            "options": {
                "keep_all": {"type": "bool"},
                "keep_last": {"type": "int"},
                "keep_hourly": {"type": "int"},
                "keep_daily": {"type": "int"},
                "keep_weekly": {"type": "int"},
                "keep_monthly": {"type": "int"},
                "keep_yearly": {"type": "int"},
            },
        },
        "parallel": limit(4, "PROXMOX_PARALLEL"),
        "parallel_per_storage": limit(0, "PROXMOX_PARALLEL_PER_STORAGE"),
        "task_timeout": limit(10800, "PROXMOX_TASK_TIMEOUT"),
    }


def backup_info_spec() -> Spec:
    """Return the options of module backup_info except the options that choose the guests."""
    return {
        "storages": {"type": "list", "elements": "str"},
        "max_age": {"type": "str"},
        "newest": {"type": "bool", "default": False},
        "detect_reuse": {"type": "bool", "default": False},
    }
