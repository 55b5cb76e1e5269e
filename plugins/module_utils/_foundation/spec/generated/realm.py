# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from realm.yml: do not edit.
"""The options of modules realm_info and realm_sync."""

from ..environment import limit
from ..form import Spec


def realm_sync_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "scope": {"type": "str", "choices": ["users", "groups", "both"]},
        "remove_vanished": {
            "type": "list",
            "elements": "str",
            "choices": ["acl", "entry", "properties"],
        },
        "enable_new": {"type": "bool"},
        "task_timeout": limit(300, "PROXMOX_TASK_TIMEOUT"),
        "allow_self": {"type": "bool", "default": False},
    }


def realm_info_spec() -> Spec:
    return {"name": {"type": "str"}}
