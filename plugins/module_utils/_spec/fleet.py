# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specification of a fleet: the options of a VM, once for all and once for each."""

from __future__ import annotations

from typing import Any

from .vm import Spec, vm_spec


def item_spec() -> Spec:
    """Return the options of one item of O(vms). What an item does not say is None: another layer may say it."""
    return without_defaults(vm_spec())


def shared_spec() -> Spec:
    """Return the options that can be said for all VMs."""
    return {name: rule for name, rule in vm_spec().items() if name not in ("name", "vmid")}


def fleet_spec() -> Spec:
    """Return the argument specification of the module vms, without the connection."""
    return {
        "vms": {"type": "list", "elements": "dict", "options": item_spec(), "required": True},
        **shared_spec(),
        "prune": {"type": "bool", "default": False},
        "parallel": {"type": "int", "default": 32},
        "parallel_per_node": {"type": "int", "default": 4},
        "parallel_per_storage": {"type": "int", "default": 0},
        "parallel_per_template": {"type": "int", "default": 4},
    }


def without_defaults(spec: Spec) -> Spec:
    """Return a specification without defaults, those of nested dictionaries included.

    The items of nested lists keep theirs: a list is taken whole from where it is said.
    """
    bare: Spec = {}
    for name, rule in spec.items():
        rest = {key: value for key, value in rule.items() if key != "default"}
        if rule.get("options") and rule["type"] == "dict":
            rest["options"] = without_defaults(rule["options"])
        bare[name] = rest
    return bare


def with_defaults(spec: Spec, params: dict[str, Any]) -> dict[str, Any]:
    """Return params with the defaults of a specification where they say nothing."""
    whole = dict(params)
    for name, rule in spec.items():
        value = whole.get(name)
        if value is None:
            whole[name] = rule.get("default")
        elif rule.get("options") and rule["type"] == "dict":
            whole[name] = with_defaults(rule["options"], value)
    return whole
