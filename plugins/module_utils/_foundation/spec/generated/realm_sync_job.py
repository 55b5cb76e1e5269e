# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from realm_sync_job.yml: do not edit.
"""The options of modules realm_sync_job and realm_sync_job_info."""

from ..form import Spec


def realm_sync_job_spec() -> Spec:
    """Return the options of module realm_sync_job."""
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "realm": {"type": "str"},
        "schedule": {"type": "str"},
        "scope": {"type": "str", "choices": ["users", "groups", "both"]},
        "remove_vanished": {"type": "list", "elements": "str"},
        "enable_new": {"type": "bool"},
        "enabled": {"type": "bool"},
        "comment": {"type": "str"},
    }


def realm_sync_job_info_spec() -> Spec:
    """Return the options of module realm_sync_job_info."""
    return {"name": {"type": "str"}}
