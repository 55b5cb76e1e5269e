# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from acme_plugin.yml: do not edit.
"""The options of modules acme_plugin and acme_plugin_info."""

from ..form import Spec


def acme_plugin_spec() -> Spec:
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "type": {"type": "str", "choices": ["dns", "standalone"]},
        "api": {"type": "str"},
        "data": {"type": "dict", "no_log": True},
        "update_secrets": {
            "type": "str",
            "choices": ["on_create", "always"],
            "default": "on_create",
            "no_log": False,
        },
        "validation_delay": {"type": "int"},
        "nodes": {"type": "list", "elements": "str"},
        "disable": {"type": "bool"},
    }


def acme_plugin_info_spec() -> Spec:
    return {"name": {"type": "str"}}
