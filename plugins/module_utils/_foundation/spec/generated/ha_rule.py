# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_rule.yml: do not edit.
"""The options of modules ha_rule and ha_rule_info."""

from ..form import Spec


def ha_rule_spec() -> Spec:
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
    return {"name": {"type": "str"}}
