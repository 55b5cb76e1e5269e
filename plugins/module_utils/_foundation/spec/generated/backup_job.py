# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from backup_job.yml: do not edit.
"""The options of modules backup_job and backup_job_info."""

from ..form import Spec


def backup_job_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "schedule": {"type": "str"},
        "enabled": {"type": "bool"},
        "all": {"type": "bool"},
        "vms": {"type": "list", "elements": "int"},
        "pool": {"type": "str"},
        "exclude": {"type": "list", "elements": "int"},
        "node": {"type": "str"},
        "storage": {"type": "str"},
        "mode": {"type": "str", "choices": ["", "snapshot", "suspend", "stop"]},
        "compress": {"type": "str", "choices": ["", "0", "gzip", "lzo", "zstd"]},
        "prune_backups": {
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
        "remove": {"type": "bool"},
        "notes_template": {"type": "str"},
        "protected": {"type": "bool"},
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
        "pbs_change_detection_mode": {"type": "str", "choices": ["", "legacy", "data", "metadata"]},
        "exclude_path": {"type": "list", "elements": "str"},
        "stdexcludes": {"type": "bool"},
        "lockwait": {"type": "int"},
        "stopwait": {"type": "int"},
        "tmpdir": {"type": "str"},
        "script": {"type": "str"},
        "notification_mode": {
            "type": "str",
            "choices": ["", "auto", "legacy-sendmail", "notification-system"],
        },
        "mailto": {"type": "list", "elements": "str"},
        "mailnotification": {"type": "str", "choices": ["", "always", "failure"]},
        "repeat_missed": {"type": "bool"},
        "comment": {"type": "str"},
    }


def backup_job_info_spec() -> Spec:
    return {
        "name": {"type": "str"},
        "tenant": {"type": "str"},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
    }
