# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from user.yml: do not edit.
"""The options of modules user and user_info."""

from ..form import Spec


def user_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "enabled": {"type": "bool"},
        "expire": {"type": "str"},
        "firstname": {"type": "str"},
        "lastname": {"type": "str"},
        "email": {"type": "str"},
        "comment": {"type": "str"},
        "groups": {"type": "list", "elements": "str"},
        "append": {"type": "bool", "default": False},
        "user_password": {"type": "str", "no_log": True},
        "update_password": {
            "type": "str",
            "choices": ["on_create", "always"],
            "default": "on_create",
            "no_log": False,
        },
        "allow_self": {"type": "bool", "default": False},
    }


def user_info_spec() -> Spec:
    return {"name": {"type": "str"}}
