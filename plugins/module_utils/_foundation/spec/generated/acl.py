# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from acl.yml: do not edit.
"""The options of modules acl and acl_info."""

from ..form import Spec


def acl_spec() -> Spec:
    return {
        "path": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "grants": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "user": {"type": "str"},
                "group": {"type": "str"},
                "token": {"type": "str", "no_log": False},
                "role": {"type": "str", "required": True},
                "propagate": {"type": "bool", "default": True},
            },
        },
        "exact": {"type": "bool", "default": False},
        "allow_self": {"type": "bool", "default": False},
    }


def acl_info_spec() -> Spec:
    return {"path": {"type": "str"}}
