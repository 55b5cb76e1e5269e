# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specification of a fleet: the options of a VM, once for all and once for each."""

from __future__ import annotations

from typing import Any

from .generated import vms as own_options
from .generated.vm import Spec, life_spec
from .vm import common_spec, vm_spec


def item_spec() -> Spec:
    """Return the options of one item of O(vms).

    An option that an item does not set is None: another layer may set it.
    """
    return {**without_defaults(vm_spec()), "site": {"type": "str"}}


def shared_spec() -> Spec:
    """Return the options that can be said for all VMs."""
    return {**life_spec(), **common_spec()}


def fleet_spec() -> Spec:
    """Return the argument specification of the module vms, without the connection."""
    return {**shared_spec(), **own_options.fleet_spec()}


def without_defaults(spec: Spec) -> Spec:
    """Return a specification without defaults, from the environment or not, including nested
    dictionaries.

    The items of nested lists keep theirs: a list is taken whole from the layer that sets it.
    """
    bare: Spec = {}
    for name, rule in spec.items():
        rest = {key: value for key, value in rule.items() if key not in ("default", "fallback")}
        if rule.get("options") and rule["type"] == "dict":
            rest["options"] = without_defaults(rule["options"])
        bare[name] = rest
    return bare


def with_defaults(spec: Spec, params: dict[str, Any]) -> dict[str, Any]:
    """Return params with the defaults of a specification for options that are not set."""
    whole = dict(params)
    for name, rule in spec.items():
        value = whole.get(name)
        if value is None:
            whole[name] = rule.get("default")
        elif rule.get("options") and rule["type"] == "dict":
            whole[name] = with_defaults(rule["options"], value)
    return whole
