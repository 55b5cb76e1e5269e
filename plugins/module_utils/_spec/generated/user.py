# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules user and user_info.

Written by `make options` from user.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]


def user_spec() -> Spec:
    """Return the options of module user."""
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
    """Return the options of module user_info."""
    return {"name": {"type": "str"}}
