# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The argument specification of the connection, shared by every module."""

from __future__ import annotations

from typing import Any


def connection_spec() -> dict[str, dict[str, Any]]:
    """Return the options of the connection.

    They have neither defaults nor environment fallbacks here, because an option that is not set may
    still come from a site or from the environment; `_api/settings.py` decides.
    """
    return {
        "host": {"type": "str", "aliases": ["api_host", "endpoint", "url"]},
        "port": {"type": "int"},
        "user": {"type": "str", "aliases": ["api_user"]},
        "password": {"type": "str", "no_log": True, "aliases": ["api_password"]},
        "token_id": {"type": "str", "no_log": False, "aliases": ["api_token_id"]},
        "token_secret": {"type": "str", "no_log": True, "aliases": ["api_token_secret"]},
        "validate_certs": {"type": "bool"},
        "ca_path": {"type": "str", "aliases": ["ca_bundle"]},
        "client_cert": {"type": "path"},
        "client_key": {"type": "path", "no_log": False},
        "timeout": {"type": "float"},
        "retries": {"type": "int"},
        "retry_timeout": {"type": "float"},
        "lock_timeout": {"type": "float"},
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
                "password": {"type": "str", "no_log": True, "aliases": ["api_password"]},
                "token_id": {"type": "str", "no_log": False, "aliases": ["api_token_id"]},
                "token_secret": {"type": "str", "no_log": True, "aliases": ["api_token_secret"]},
                "validate_certs": {"type": "bool"},
                "ca_path": {"type": "str", "aliases": ["ca_bundle"]},
                "client_cert": {"type": "path"},
                "client_key": {"type": "path", "no_log": False},
                "timeout": {"type": "float"},
                "retries": {"type": "int"},
                "retry_timeout": {"type": "float"},
                "lock_timeout": {"type": "float"},
                "node": {"type": "str", "aliases": ["default_node"]},
                "nodes": {"type": "list", "elements": "str"},
                "storages": {"type": "list", "elements": "str"},
                "bridges": {"type": "list", "elements": "str"},
                "max_vms_per_node": {"type": "raw"},
            },
        },
        "sites_file": {"type": "path"},
    }


CONNECTION_OPTIONS = tuple(connection_spec())
