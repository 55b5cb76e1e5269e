# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The estate of VMs that were read: the variables of an estate file, and its text with comments
(pure).
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ..._foundation.cluster.quota import QuotaFigures
from ..._foundation.cluster.tenant import PREFIX
from ..._foundation.core.quantities import render_size
from ..._foundation.core.texts.checksum import with_checksum
from ..._foundation.core.texts.yaml_text import (
    CommentedValue,
    flow,
    item_lines,
    lines_of,
    one_line,
    quoted,
)
from ..._foundation.spec.generated.container_rules import ORDER as CONTAINER_ORDER
from ..._foundation.spec.generated.vm_rules import ORDER
from ..._guests.guest.export.settings import Options
from .guest import without_name
from .model import (
    PRESENT,
    ExportChoices,
    ExportedEstate,
    ExportedVm,
    ExportItem,
    ExportReadings,
    UnreadVm,
)
from .shared import take_classes, take_defaults, take_networks, take_storage_classes, take_tenants

_BACKUP = "backup"
_PLACE = {name: place for place, name in enumerate((*ORDER, _BACKUP))}
_CONTAINER_PLACE = {name: place for place, name in enumerate((*CONTAINER_ORDER, _BACKUP))}
_TWICE = "another guest of the tenant has this name"
_HEAD = """\
---
# An estate that pve.fleet.export wrote. Edit it, keep it in git, and run
#
#   ansible-playbook pve.fleet.provision -e @estate.yml
#
# Another export replaces this file only if it was not edited.
"""
_INCOMPLETE = "# NOT COMPLETE, and not to be used with provision_prune:"
_SECRETS = "# Secrets are not part of an export, because Proxmox VE does not return them:"
_RAW = "as Proxmox VE calls them"
_ABOUT: Mapping[str, str] = {
    "provision_state": "VMs that set no state of their own have this one.",
    "provision_defaults": "What all VMs have in common.",
    "provision_classes": "What VMs of a size have in common.",
    "provision_networks": "Networks with more than one NIC.",
    "provision_storage_classes": "Storages with the options that more than one disk has.",
    "tenants": "What all VMs of a tenant have in common.",
}
_SETTLED = ("running", "stopped")


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
    layers = {
        "provision_defaults": in_order(defaults),
        "provision_classes": classes,
        "provision_networks": networks,
        "provision_storage_classes": storage_classes,
        "tenants": tenants,
        "provision_vms": list(map(in_order, items)),
    }
    if containers:
        layers["provision_containers"] = [_sorted(item, _CONTAINER_PLACE) for item in containers]
    return layers


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


def text_of(estate: ExportedEstate, found: ExportReadings, scope: str) -> str:
    """Return the text of an estate file. The same estate has the same text in each run.

    `scope` describes the selection of VMs, empty for all VMs.
    """
    lines: list[str] = []
    if scope:
        lines.append(f"# VMs: {one_line(scope)}")
    lines += _unread(found)
    lines += _secrets(estate)
    for name, about in _ABOUT.items():
        value = estate.variables[name]
        if not value:
            continue
        lines += ["", f"# {about}"]
        if name == "tenants":
            lines += _tenants(value, estate)
        else:
            lines += lines_of({name: value})
    lines += ["", *_guests(estate, "provision_vms")]
    if "provision_containers" in estate.variables:
        lines += ["", *_guests(estate, "provision_containers")]
    lines.append("")
    rest = "\n".join(lines)
    return with_checksum(f"{_HEAD}{rest}", _HEAD)


def _unread(found: ExportReadings) -> Iterator[str]:
    """Yield comments about VMs that are missing in the file."""
    if found.complete:
        return
    yield "#"
    yield _INCOMPLETE
    for node in found.nodes:
        reason = one_line(node.reason)
        yield f"# - {reason}"
    for vm in sorted(found.missing, key=lambda vm: vm.vmid):
        text = one_line(f"{vm.label}: {vm.reason}")
        yield f"# - {text}"


def _secrets(estate: ExportedEstate) -> Iterator[str]:
    """Yield comments about secrets that are missing in the file."""
    head = ["#", _SECRETS]
    for vm in estate.exported:
        if not vm.secrets:
            continue
        yield from head
        head = []
        options = ", ".join(vm.secrets)
        text = one_line(f"{vm.label}: {options}")
        yield f"# - {text}"


def _tenants(settings: Mapping[str, Options], estate: ExportedEstate) -> Iterator[str]:
    """Yield the tenants with comments: usage if no quota is exported, steps of role tenant."""
    use, networks = estate.use, estate.networks
    yield "tenants:"
    for name, content in settings.items():
        yield from lines_of({name: content}, 1)
        if name in use and "quota" not in content:
            figures = flow(quota_of(use[name]))
            yield f"    # its VMs have {figures}"
        for step in networks[name].steps if name in networks else ():
            text = one_line(f"a run of role tenant does this in any case: {step}")
            yield f"    # {text}"


def _guests(estate: ExportedEstate, variable: str) -> Iterator[str]:
    """Yield a list of guests, each with comments about settings that its options lack."""
    about = {vm.vmid: vm for vm in (*estate.exported, *estate.missing)}
    items = estate.variables[variable]
    if not items:
        yield f"{variable}: []"
        return
    head = [f"{variable}:"]
    for item in items:
        yield from head
        head = [""]
        vm = about[item["vmid"]]
        yield from item_lines(_with_notes(item, vm), 1)
        for note in _notes(vm):
            text = one_line(note)
            yield f"    # {text}"


def _with_notes(item: Options, vm: ExportItem) -> dict[str, Any]:
    """Return an item of the list with comments after some of its options."""
    noted = dict(item)
    if "options" in noted:
        noted["options"] = CommentedValue(noted["options"], _RAW)
    if "state" not in noted or not isinstance(vm, ExportedVm):
        return noted
    status = vm.actual.status
    if status not in _SETTLED:
        noted["state"] = CommentedValue(noted["state"], f"it is {status}")
    return noted


def _notes(vm: ExportItem) -> Iterator[str]:
    """Yield comments about a VM."""
    if isinstance(vm, UnreadVm):
        yield f"unknown: {vm.reason}"
    if not isinstance(vm, ExportedVm):
        return
    for secret in vm.secrets:
        yield f"{secret} is not exported: Proxmox VE does not return it"
    for one in vm.lost:
        value = quoted(one.value)
        yield f"not expressed: {one.option}: {value} ({one.reason})"
    for step in vm.steps:
        yield f"the next run does this in any case: {step}"
