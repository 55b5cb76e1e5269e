# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from connection.yml: do not edit.
"""The connection, shared by modules, the inventory plugin and lookups."""

from ..form import Spec


def connection_spec() -> Spec:
    """Return the options of the connection."""
    return {
        "host": {"type": "str", "aliases": ["api_host", "endpoint", "url"]},
        "port": {"type": "int"},
        "user": {"type": "str", "aliases": ["api_user"]},
        "password": {"type": "str", "aliases": ["api_password"], "no_log": True},
        "token_id": {"type": "str", "aliases": ["api_token_id"], "no_log": False},
        "token_secret": {"type": "str", "aliases": ["api_token_secret"], "no_log": True},
        "validate_certs": {"type": "bool"},
        "ca_path": {"type": "str", "aliases": ["ca_bundle"]},
        "client_cert": {"type": "path"},
        "client_key": {"type": "path", "no_log": False},
        "timeout": {"type": "float"},
        "retries": {"type": "int"},
        "retry_timeout": {"type": "float"},
        "lock_timeout": {"type": "float"},
        "max_answer_size": {"type": "str"},
        "require_tenant": {"type": "bool"},
        "site": {"type": "str"},
        "sites": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str", "required": True},
                "default": {"type": "bool"},
                "host": {"type": "str", "aliases": ["api_host", "endpoint", "url"]},
                "port": {"type": "int"},
                "user": {"type": "str", "aliases": ["api_user"]},
                "password": {"type": "str", "aliases": ["api_password"], "no_log": True},
                "token_id": {"type": "str", "aliases": ["api_token_id"], "no_log": False},
                "token_secret": {"type": "str", "aliases": ["api_token_secret"], "no_log": True},
                "validate_certs": {"type": "bool"},
                "ca_path": {"type": "str", "aliases": ["ca_bundle"]},
                "client_cert": {"type": "path"},
                "client_key": {"type": "path", "no_log": False},
                "timeout": {"type": "float"},
                "retries": {"type": "int"},
                "retry_timeout": {"type": "float"},
                "lock_timeout": {"type": "float"},
                "max_answer_size": {"type": "str"},
                "require_tenant": {"type": "bool"},
                "node": {"type": "str", "aliases": ["default_node"]},
                "nodes": {"type": "list", "elements": "str"},
                "storages": {"type": "list", "elements": "str"},
                "bridges": {"type": "list", "elements": "str"},
                "max_vms_per_node": {"type": "raw"},
                "fingerprint": {"type": "str"},
                "other_hosts": {"type": "list", "elements": "str"},
                "labels": {"type": "dict"},
                "state": {"type": "str", "choices": ["active", "draining", "closed"]},
            },
        },
        "sites_file": {"type": "path"},
    }
