# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from realm_config.yml: do not edit.
"""The options of module realm."""

from ..form import Spec


def realm_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "type": {"type": "str", "choices": ["ad", "ldap", "openid", "pam", "pve"]},
        "comment": {"type": "str"},
        "default": {"type": "bool"},
        "tfa": {"type": "str"},
        "server1": {"type": "str"},
        "server2": {"type": "str"},
        "server_port": {"type": "int"},
        "mode": {"type": "str", "choices": ["ldap", "ldaps", "ldap+starttls"]},
        "verify": {"type": "bool"},
        "capath": {"type": "str"},
        "cert": {"type": "str"},
        "certkey": {"type": "str", "no_log": False},
        "sslversion": {"type": "str"},
        "domain": {"type": "str"},
        "case_sensitive": {"type": "bool"},
        "base_dn": {"type": "str"},
        "user_attr": {"type": "str"},
        "bind_dn": {"type": "str"},
        "bind_password": {"type": "str", "no_log": True},
        "filter": {"type": "str"},
        "user_classes": {"type": "str"},
        "group_dn": {"type": "str"},
        "group_filter": {"type": "str"},
        "group_name_attr": {"type": "str"},
        "group_classes": {"type": "str"},
        "sync_attributes": {"type": "str"},
        "sync_defaults_options": {"type": "str"},
        "issuer_url": {"type": "str"},
        "client_id": {"type": "str"},
        "client_secret": {"type": "str", "no_log": True},
        "username_claim": {"type": "str"},
        "scopes": {"type": "str"},
        "prompt": {"type": "str"},
        "acr_values": {"type": "str"},
        "audiences": {"type": "str"},
        "groups_claim": {"type": "str"},
        "autocreate": {"type": "bool"},
        "groups_autocreate": {"type": "bool"},
        "groups_overwrite": {"type": "bool"},
        "query_userinfo": {"type": "bool"},
        "update_secrets": {
            "type": "str",
            "choices": ["on_create", "always"],
            "default": "on_create",
            "no_log": False,
        },
    }
