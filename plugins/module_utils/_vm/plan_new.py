# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans for VMs that do not exist yet: created in one request, or cloned and then made what they should be. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from .._cluster.tenant import parse_tags, tenants_of
from .._core.propstring import parse, render
from .._core.quantities import render_size
from .._schema.formats import format_of
from . import power
from .actual import drives, is_cloud_init, is_disk, storage_of
from .config import apply_to, changes
from .marker import Marker, join_notes, split_notes
from .model import Actual, Desired, Plan, Source, Step
from .plan import check_data, grow, plan_update
from .view import show

# What a clone does not take over from its source (qemu-server, clone_vm).
_NOT_CLONED = frozenset("template lock digest parent vmgenid smbios1 meta snapstate cipassword".split())


def plan_create(
    desired: Desired, *, vmid: int, node: str, identity: str, images: Mapping[str, int] | None = None
) -> Plan:
    """Return what creates a VM that is no clone, in one request.

    `identity` is the uuid it gets: a look can tell by it whether the VM of that number is the one we made. `images`
    says how large (in bytes) the images are that its disks import: such a disk grows after it is made.
    """
    change = changes(desired, {}, new=True)
    for disk in desired.disks:
        size = (images or {}).get(disk.slot)
        if size and disk.size is None:
            change.drives.shown[disk.slot] += f",size={render_size(size)}"
        elif size and disk.size and disk.size > size:
            change.drives.grown[disk.slot] = disk.size
    # A uuid of one's own comes after that: until then the VM is known by the one that is ours.
    hardware = {**parse(change.sets.get("smbios1", ""), format_of("smbios1") or {}), "uuid": identity}
    data: dict[str, Any] = {"vmid": vmid, **change.sets, "smbios1": render(hardware, format_of("smbios1") or {})}
    if desired.pool:
        data["pool"] = desired.pool
    if desired.description is not None and desired.description:
        data["description"] = desired.description
    label = _new_label(desired, vmid, node)
    check_data(label, data)
    create = Step("create", f"Create {label}", "POST", ("nodes", node, "qemu"), data, reread=True)
    if desired.state == "template":
        change.follows["template"] = "1"
    config = apply_to(change, {})
    made = Actual(vmid, node, "stopped", config, config, pool=desired.pool)
    steps = [create, *grow(made, change), *power.finish(desired, made, running=False, waiting=False)]
    after = show(made.target) | {"status": power.status_after(desired, made), "node": node, "vmid": vmid}
    if desired.pool:
        after["pool"] = desired.pool
    return Plan(tuple(steps), {}, after)


def plan_clone(
    desired: Desired, source: Actual, *, vmid: int, node: str, full: bool, run: str, shared: Collection[str]
) -> Plan:
    """Return what clones `source` to `node` and makes the clone the desired VM.

    `full` copies the disks, else the clone is linked; `run` marks the clone as made by this run until it is finished.
    The steps behind the first are a prediction: after the clone they are planned again from what is there.
    """
    said = desired.source or Source()
    direct = source.node == node or _all_shared(source, shared)
    at = node if direct else source.node
    owners = tenants_of(parse_tags(source.target.get("tags")), desired.tenant_prefix)
    shed = tuple(tag for tag in owners if tag != desired.tenant_tag) if desired.tenant else ()
    marker = Marker(origin=source.vmid, run=run, tenant=desired.tenant_tag, shed=shed)
    notes = split_notes(source.target.get("description"))[0]
    label = _new_label(desired, vmid, at)
    data: dict[str, Any] = {"newid": vmid, "full": int(full), "description": join_notes(notes, marker)}
    if desired.name:
        data["name"] = desired.name
    if at != source.node:
        data["target"] = at
    if desired.pool:
        data["pool"] = desired.pool
    storage = (said.storage or _one_storage(desired, source)) if full else None
    if storage and (at == source.node or storage in shared):  # else its disks are moved once they are there
        data["storage"] = storage
    if said.format:
        data["format"] = said.format
    if said.snapshot:
        data["snapname"] = said.snapshot
    kind = "full" if full else "linked"
    of = f"snapshot '{said.snapshot}' of {source.label}" if said.snapshot else source.label
    clone = Step(
        "clone",
        f"Clone {of} to {label} ({kind})",
        "POST",
        ("nodes", source.node, "qemu", source.vmid, "clone"),
        data,
        reread=True,
    )
    made = clone_of(source, vmid=vmid, node=at, data=data)
    rest = plan_update(replace(desired, node=node), made, shared=shared, building=True)
    after = {**rest.after, "vmid": vmid, "node": node}
    if desired.pool:
        after["pool"] = desired.pool
    return Plan((clone, *rest.steps), {}, after, rest.pending, rest.warnings)


def clone_of(source: Actual, *, vmid: int, node: str, data: Mapping[str, Any]) -> Actual:
    """Return what a clone will look like before it is configured (qemu-server: clone_vm)."""
    config = {
        key: value
        for key, value in source.target.items()
        if key not in _NOT_CLONED and not key.startswith(("unused", "snap"))
    }
    for key in list(config):
        if key.startswith("net") and key[3:].isdigit():
            config[key] = _without_mac(key, config[key])
    for slot, drive in drives(config).items():
        if not data.get("storage") or not storage_of(drive):
            continue
        if is_cloud_init(drive):
            config[slot] = f"{data['storage']}:vm-cloudinit,media=cdrom"
        elif is_disk(drive):
            config[slot] = f"{data['storage']}:new,{config[slot].partition(',')[2]}"
    config["name"] = data.get("name") or f"Copy-of-VM-{source.name}"
    config["description"] = data["description"]
    return Actual(vmid, node, "stopped", config, config, pool=data.get("pool"))


def _without_mac(key: str, text: str) -> str:
    fmt = format_of(key) or {}
    parts = parse(text, fmt)
    parts.pop("macaddr", None)
    return render(parts, fmt)


def _all_shared(source: Actual, shared: Collection[str]) -> bool:
    stores = {storage_of(drive) for drive in drives(source.target).values() if drive.get("file") != "none"}
    return all(store in shared for store in stores)


def _one_storage(desired: Desired, source: Actual) -> str | None:
    """Return the storage that all disks of the source are wished on, or None where they stay or differ."""
    disks = [disk for disk in desired.disks if disk.slot in source.target and not disk.is_cdrom]
    wished = {disk.storage for disk in disks}
    there = {storage_of(drive) for slot, drive in drives(source.target).items() if drive.get("media") != "cdrom"}
    if len(wished) == 1 and None not in wished and wished != there:
        return wished.pop()
    return None


def _new_label(desired: Desired, vmid: int, node: str) -> str:
    return f"VM '{desired.name}' ({vmid}) on node {node}" if desired.name else f"VM {vmid} on node {node}"
