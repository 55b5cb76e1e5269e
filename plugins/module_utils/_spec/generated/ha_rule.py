# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules ha_rule and ha_rule_info.

Written by `make options` from ha_rule.yml: do not edit.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]


def ha_rule_spec() -> Spec:
    """Return the options of module ha_rule."""
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "type": {"type": "str", "choices": ["node-affinity", "resource-affinity"]},
        "resources": {"type": "list", "elements": "str"},
        "exact": {"type": "bool", "default": False},
        "nodes": {"type": "list", "elements": "str"},
        "strict": {"type": "bool"},
        "affinity": {"type": "str", "choices": ["positive", "negative"]},
        "disable": {"type": "bool"},
        "comment": {"type": "str"},
        "tenant": {"type": "str"},
    }


def ha_rule_info_spec() -> Spec:
    """Return the options of module ha_rule_info."""
    return {"name": {"type": "str"}}
