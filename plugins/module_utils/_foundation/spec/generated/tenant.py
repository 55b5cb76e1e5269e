# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from tenant.yml: do not edit.
"""The options of modules tenant and tenant_info."""

from ..form import Spec


def tenant_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "tenant_prefix": {"type": "str", "default": "tenant_"},
        "state": {"type": "str", "choices": ["present", "rotated", "absent"], "default": "present"},
        "comment": {"type": "str"},
        "pool": {"type": "str"},
        "operations": {
            "type": "list",
            "elements": "str",
            "choices": ["read", "operate", "provision", "snapshot", "images", "backup"],
            "default": ["read", "operate", "provision", "snapshot"],
        },
        "templates": {"type": "list", "elements": "str", "default": []},
        "storages": {"type": "list", "elements": "str", "default": []},
        "image_storages": {"type": "list", "elements": "str", "default": []},
        "bridges": {"type": "list", "elements": "str", "default": []},
        "networks": {"type": "dict", "default": {}},
        "isolation": {"type": "str", "choices": ["own", "shared", "none"]},
        "peers": {"type": "list", "elements": "str", "default": []},
        "nodes": {"type": "list", "elements": "str", "default": []},
        "owner": {"type": "str"},
        "group": {"type": "str"},
        "adopt": {"type": "bool", "default": False},
        "members": {"type": "list", "elements": "str", "default": []},
        "token": {"type": "str", "no_log": False},
        "expire": {"type": "str"},
        "token_life": {"type": "int", "default": 90, "no_log": False},
        "expires_within": {"type": "int"},
        "registered_tag": {"type": "bool"},
        "quota": {"type": "dict"},
        "allow_privileged": {"type": "bool", "default": True},
        "credentials_file": {"type": "path"},
        "vault_password": {"type": "str", "no_log": True},
        "old_token": {"type": "str", "choices": ["remove", "keep"], "default": "remove"},
        "finish": {"type": "bool", "default": False},
        "current_token": {"type": "str", "no_log": False},
        "current_secret": {"type": "str", "no_log": True},
        "strays": {"type": "str", "choices": ["stop", "keep", "remove"], "default": "stop"},
        "confirm": {"type": "str"},
        "protection": {"type": "bool"},
        "allow_self": {"type": "bool", "default": False},
    }


def tenant_info_spec() -> Spec:
    return {"name": {"type": "str"}, "tenant_prefix": {"type": "str", "default": "tenant_"}}
