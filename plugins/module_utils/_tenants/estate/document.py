# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The estate of VMs that were read: the variables of an estate file (pure)."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..._foundation.cluster.quota import QuotaFigures
from ..._foundation.cluster.tenant import PREFIX
from ..._foundation.core.quantities import render_size
from ..._foundation.spec.generated.container_rules import ORDER as CONTAINER_ORDER
from ..._foundation.spec.generated.vm_rules import ORDER
from ..._guests.guest.export.settings import Options
from .guest import without_name
from .model import PRESENT, ExportChoices, ExportedEstate, ExportedVm, ExportItem, ExportReadings
from .shared import take_classes, take_defaults, take_networks, take_storage_classes, take_tenants

_BACKUP = "backup"
_PLACE = {name: place for place, name in enumerate((*ORDER, _BACKUP))}
_CONTAINER_PLACE = {name: place for place, name in enumerate((*CONTAINER_ORDER, _BACKUP))}
_TWICE = "another guest of the tenant has this name"


def estate_of(found: ExportReadings, choices: ExportChoices) -> ExportedEstate:
    """Return the estate of the VMs that were read. Their order does not matter."""
    exported = _named_once(found.vms)
    missing = sorted(found.missing, key=_place)
    listed: list[ExportItem] = [*exported, *missing]
    items: list[dict[str, Any]] = []
    containers: list[dict[str, Any]] = []
    for vm in sorted(listed, key=_place):
        if vm.is_listed:
            group = containers if vm.is_container else items
            group.append(copy.deepcopy(vm.item))
    state = "started" if choices.power else PRESENT
    for item in (*items, *containers):
        if item["state"] == state:
            del item["state"]
    use = _use(exported)
    variables = {"provision_state": state, **_layers(items, containers)}
    for name, one in found.networks.items():
        variables["tenants"].setdefault(name, {}).update(one.options)
    if choices.prefix != PREFIX:
        variables["provision_defaults"]["tenant_prefix"] = choices.prefix
    if choices.quotas:
        for name, settings in variables["tenants"].items():
            settings["quota"] = quota_of(use.get(name, QuotaFigures()))
    return ExportedEstate(variables, tuple(exported), tuple(missing), use, found.networks)


def _layers(items: list[dict[str, Any]], containers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the shared settings of the VMs, by variable, and the guests with the rest.

    If there are containers, options that containers also have are not shared: defaults and
    settings of tenants would apply to the containers too.
    """
    of_both: Collection[str] = (*CONTAINER_ORDER, _BACKUP) if containers else ()
    networks = take_networks(items)
    storage_classes = take_storage_classes(items)
    defaults = take_defaults(items, of_both)
    tenants = take_tenants(items, of_both)
    for item in containers:
        if item.get("tenant"):
            tenants.setdefault(item["tenant"], {})
    classes = take_classes(items)
    for settings in tenants.values():
        if "defaults" in settings:
            settings["defaults"] = in_order(settings["defaults"])
    for name, content in classes.items():
        classes[name] = in_order(content)
    return {
        "provision_defaults": in_order(defaults),
        "provision_classes": classes,
        "provision_networks": networks,
        "provision_storage_classes": storage_classes,
        "tenants": tenants,
        "provision_vms": list(map(in_order, items)),
        **_listed_containers(containers),
    }


def _listed_containers(items: list[dict[str, Any]]) -> dict[str, Any]:
    if not items:
        return {}
    return {"provision_containers": [_sorted(item, _CONTAINER_PLACE) for item in items]}


def _place(vm: ExportItem) -> tuple[bool, str, int]:
    """Return the sort key of a VM: its tenant, VMs without a tenant last, then its VMID."""
    is_free = not vm.tenant
    return is_free, vm.tenant, vm.vmid


def _named_once(vms: Iterable[ExportedVm]) -> list[ExportedVm]:
    """Return the VMs in their order. A VM whose name is already in use within the tenant gets only
    its VMID, because names in a list of module vms must be unique.
    """
    known: set[tuple[str, str]] = set()
    found: list[ExportedVm] = []
    for vm in sorted(vms, key=_place):
        name = str(vm.options.get("name", ""))
        key = (vm.tenant, name.lower())
        if name and key in known:
            vm = without_name(vm, _TWICE)
        known.add(key)
        found.append(vm)
    return found


def in_order(options: Options) -> dict[str, Any]:
    """Return the options of a VM in the order in which a person reads them."""
    return _sorted(options, _PLACE)


def _sorted(options: Options, places: Mapping[str, int]) -> dict[str, Any]:
    return {name: options[name] for name in sorted(options, key=places.__getitem__)}


def _use(vms: Iterable[ExportedVm]) -> dict[str, QuotaFigures]:
    """Return the usage of each tenant, as far as the configurations of its VMs show it."""
    use: dict[str, QuotaFigures] = {}
    for vm in vms:
        if vm.tenant:
            known = use.get(vm.tenant, QuotaFigures())
            use[vm.tenant] = known + vm.figures
    return use


def quota_of(figures: QuotaFigures) -> Mapping[str, Any]:
    """Return figures as a quota, sizes with their unit."""
    return {
        "vms": figures.vms,
        "cores": figures.cores,
        "memory": _size(figures.memory),
        "disk": _size(figures.disk),
    }


def _size(size: int) -> Any:
    return 0 if size == 0 else render_size(size)
