# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specification of a fleet: the options for all VMs, and for each VM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.arguments.options import parse_options
from .container import container_spec
from .form import Spec
from .generated import container, vm
from .generated import vms as own_options
from .vm import common_spec, vm_spec

_OF_CLASSES = ("class", "classes")
# A guest of a list cannot change what its tenant may use, and where.
_OF_TENANTS = ("allowed", "quota_sites", "site_quotas")
# In classes and shared options, these options apply to VMs only.
_OF_VMS_ONLY = ("source", "full")


@dataclass(frozen=True)
class GuestSpecs:
    """The options of one kind of guests in a list.

    `whole` are all options of a guest, with defaults. The other options have no defaults: `item`
    for an item of the list, `shared` for all items, `of_class` for a class. `foreign` are options
    of the other kind, which classes and defaults can have too. `other_forms` are the shared options
    whose form differs from the form for a VM.
    """

    whole: Spec
    item: Spec
    shared: Spec
    of_class: Spec
    foreign: frozenset[str]
    other_forms: Spec

    def own(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options for several guests without options of the other kind."""
        return {name: value for name, value in options.items() if name not in self.foreign}

    def shared_of(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the shared options, in their form for this kind.

        Raises ValidationFailed for values that a guest of this kind cannot have.
        """
        found = {name: options.get(name) for name in self.shared}
        given: dict[str, Any] = {}
        for name in self.other_forms:
            if found[name] is not None:
                given[name] = _without_unset(found[name])
        return {**found, **parse_options(self.other_forms, given)} if given else found


def _without_unset(value: Any) -> Any:
    """Return a list of dictionaries without unset keys; other values are unchanged."""
    if not isinstance(value, list):
        return value
    bare: list[Any] = []
    for item in value:
        if isinstance(item, Mapping):
            item = {key: one for key, one in item.items() if one is not None}
        bare.append(item)
    return bare


def _item(options: Spec) -> Spec:
    """Return the options of an item of a list from the options of a guest."""
    own = {name: rule for name, rule in options.items() if name not in _OF_TENANTS}
    return {**own, "site": {"type": "str"}}


def _vm_specs() -> GuestSpecs:
    whole = without_defaults(vm_spec())
    listed = own_options.listed_spec()
    of_class = {**without_defaults(vm.hardware_spec()), **listed}
    of_class |= {name: whole[name] for name in _OF_VMS_ONLY}
    return GuestSpecs(
        whole=vm_spec(),
        item=_item({**whole, **listed}),
        shared=without_defaults(shared_spec()),
        of_class=of_class,
        foreign=frozenset(container_spec().keys() - whole.keys()),
        other_forms={},
    )


def _container_specs() -> GuestSpecs:
    whole = without_defaults(container_spec())
    presets = without_defaults(vm.presets_spec())
    classes = {name: presets[name] for name in _OF_CLASSES}
    listed = own_options.listed_spec()
    shared = {**whole, **classes, **listed}
    for name in (*vm.identity_spec(), *_OF_VMS_ONLY, "snapshot"):
        shared.pop(name, None)
    of_class = {**without_defaults(container.hardware_spec()), **listed}
    for name in (*_OF_VMS_ONLY, "snapshot"):
        of_class.pop(name, None)
    of_vms = without_defaults(shared_spec())
    other_forms: Spec = {}
    for name in shared.keys() & of_vms.keys():
        if shared[name] != of_vms[name]:
            other_forms[name] = shared[name]
    return GuestSpecs(
        whole=container_spec(),
        item=_item({**whole, **classes, **listed}),
        shared=shared,
        of_class=of_class,
        foreign=frozenset((vm_spec().keys() - whole.keys() - classes.keys()) | set(_OF_VMS_ONLY)),
        other_forms=other_forms,
    )


def shared_spec() -> Spec:
    """Return the options of a VM that can be set for all VMs."""
    return {**vm.life_spec(), **common_spec(), **own_options.listed_spec()}


def defaults_spec() -> Spec:
    """Return the options of O(defaults): all shared options of VMs and of containers."""
    return {**CONTAINER_SPECS.shared, **VM_SPECS.shared}


def fleet_spec() -> Spec:
    """Return the argument specification of the module vms, without the connection."""
    return {**shared_spec(), **own_options.fleet_spec()}


def without_defaults(spec: Spec) -> Spec:
    """Return a specification without defaults and fallbacks, also in nested dictionaries.

    Items of nested lists keep their defaults, because a list is taken whole from one layer.
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


VM_SPECS = _vm_specs()
CONTAINER_SPECS = _container_specs()
