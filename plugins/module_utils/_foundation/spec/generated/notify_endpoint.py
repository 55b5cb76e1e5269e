# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from notify_endpoint.yml: do not edit.
"""The options of modules notification_endpoint and notification_endpoint_info."""

from ..form import Spec


def notification_endpoint_spec() -> Spec:
    return {
        "type": {
            "type": "str",
            "required": True,
            "choices": ["gotify", "sendmail", "smtp", "webhook"],
        },
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "comment": {"type": "str"},
        "disable": {"type": "bool"},
        "mailto": {"type": "list", "elements": "str"},
        "mailto_user": {"type": "list", "elements": "str"},
        "from_address": {"type": "str"},
        "author": {"type": "str"},
        "server": {"type": "str"},
        "server_port": {"type": "int"},
        "mode": {"type": "str", "choices": ["insecure", "starttls", "tls"]},
        "username": {"type": "str"},
        "smtp_password": {"type": "str", "no_log": True},
        "token": {"type": "str", "no_log": True},
        "webhook_url": {"type": "str"},
        "method": {"type": "str", "choices": ["get", "post", "put"]},
        "headers": {"type": "dict"},
        "body": {"type": "str"},
        "test": {"type": "bool", "default": False},
        "update_secrets": {
            "type": "str",
            "choices": ["on_create", "always"],
            "default": "on_create",
            "no_log": False,
        },
    }


def notification_endpoint_info_spec() -> Spec:
    return {
        "type": {"type": "str", "choices": ["gotify", "sendmail", "smtp", "webhook"]},
        "name": {"type": "str"},
    }
