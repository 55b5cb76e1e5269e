# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules acme_plugin and acme_plugin_info.

Written by `make options` from acme_plugin.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]


def acme_plugin_spec() -> Spec:
    """Return the options of module acme_plugin."""
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
    """Return the options of module acme_plugin_info."""
    return {"name": {"type": "str"}}
