# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from token.yml: do not edit.
"""The options of modules token and token_info."""

from ..form import Spec


def token_spec() -> Spec:
    return {
        "owner": {"type": "str", "required": True},
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent", "rotated"], "default": "present"},
        "privilege_separation": {"type": "bool"},
        "expire": {"type": "str"},
        "comment": {"type": "str"},
        "successor": {"type": "str"},
        "credentials_file": {"type": "path"},
        "vault_password": {"type": "str", "no_log": True},
        "allow_self": {"type": "bool", "default": False},
    }


def token_info_spec() -> Spec:
    return {"owner": {"type": "str"}, "name": {"type": "str"}}
