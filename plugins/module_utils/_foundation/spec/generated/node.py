# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node.yml: do not edit.
"""The options of modules node and node_settings_info."""

from ..form import Spec


def node_spec() -> Spec:
    return {
        "node": {"type": "str", "required": True},
        "description": {"type": "str"},
        "startall_onboot_delay": {"type": "int"},
        "ballooning_target": {"type": "int"},
        "wakeonlan": {
            "type": "dict",
            "options": {
                "mac": {"type": "str"},
                "bind_interface": {"type": "str"},
                "broadcast_address": {"type": "str"},
            },
        },
        "acme": {
            "type": "dict",
            "options": {
                "account": {"type": "str", "default": "default"},
                "domains": {
                    "type": "list",
                    "elements": "dict",
                    "default": [],
                    "options": {
                        "domain": {"type": "str", "required": True},
                        "plugin": {"type": "str", "default": "standalone"},
                        "alias": {"type": "str"},
                    },
                },
            },
        },
        "location": {
            "type": "dict",
            "options": {
                "latitude": {"type": "str"},
                "longitude": {"type": "str"},
                "name": {"type": "str"},
            },
        },
        "dns": {
            "type": "dict",
            "options": {"search": {"type": "str"}, "servers": {"type": "list", "elements": "str"}},
        },
        "hosts": {
            "type": "list",
            "elements": "dict",
            "options": {
                "address": {"type": "str", "required": True},
                "names": {"type": "list", "elements": "str", "default": []},
            },
        },
        "timezone": {"type": "str"},
    }


def node_settings_info_spec() -> Spec:
    return {"node": {"type": "str", "required": True}}
