# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The estate as the text of an estate file, with comments (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._foundation.core.texts.checksum import with_checksum
from ..._foundation.core.texts.yaml_text import (
    CommentedValue,
    flow,
    item_lines,
    lines_of,
    one_line,
    quoted,
)
from ..._guests.guest.export.settings import Options
from .document import quota_of
from .model import ExportedEstate, ExportedVm, ExportItem, ExportReadings, UnreadVm

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
