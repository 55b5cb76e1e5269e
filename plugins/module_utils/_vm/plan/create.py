# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans for new VMs: created in one request, or cloned and then changed as desired (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ..._cluster.tenant import parse_tags, tenants_of
from ..._guest.marker import Marker, join_notes
from ..._resource.plan import Plan, Step
from ..._schema.formats import parse_option, render_option
from ..config.actual import drives, is_cloud_init, is_disk, storage_of
from ..config.changes import Change, apply_to
from ..config.view import show
from ..model import Actual, Desired, Source
from . import power
from .steps import complete
from .update import check_data, grow, plan_update

_NIC = re.compile(r"^net\d+$")
# What a clone does not take over from its source (qemu-server, clone_vm).
_NOT_CLONED = frozenset(
    "template lock digest parent vmgenid smbios1 meta snapstate cipassword".split()
)


def plan_create(
    desired: Desired,
    change: Change,
    *,
    vmid: int,
    node: str,
    identity: str,
    run: str,
    contested: bool = False,
) -> Plan:
    """Return what creates a VM that is not a clone, in one request.

    `change` makes an empty VM the desired one. `identity` is the uuid it gets, by which the VM is
    recognized when the answer is lost. Where more steps follow, `run` marks the VM as made by this
    run until it is complete; where VMs of other runs can break its quota or place (`contested`),
    until that was checked.

    The tags of a VM in a pool are written once it is in the pool: PVE checks them on the VM alone,
    so a caller with rights on the pool only cannot give them when it creates the VM (qemu-server:
    API2/Qemu.pm, create_vm; pve-guest-common: GuestHelpers.pm, assert_tag_permissions).
    """
    data: dict[str, Any] = {"vmid": vmid, **change.sets}
    data["smbios1"] = _with_uuid(change.sets.get("smbios1", ""), identity)
    if desired.pool:
        data["pool"] = desired.pool
    config = apply_to(change, {})
    made = Actual(vmid, node, "stopped", live=config, target=config, pool=desired.pool)
    rest = [
        *grow(made, change.drives.grown_later),
        *power.finish(desired, made, running=False, waiting=False),
    ]
    tags = data.pop("tags", None) if desired.pool else None
    if rest or tags or contested:
        marker = Marker(run=run, tenant=desired.tenant_tag)
        data["description"] = join_notes(desired.description or "", marker)
        rest = complete(made, change, rest, tags=tags, contested=contested)
    label = _new_label(desired, vmid, node)
    check_data(label, data)
    create = Step(
        "create",
        f"Create {label}",
        method="POST",
        path=("nodes", node, "qemu"),
        data=data,
        reread=True,
    )
    after = show(made.target)
    after["status"] = power.status_after(desired, made)
    after["node"] = node
    after["vmid"] = vmid
    if desired.pool:
        after["pool"] = desired.pool
    return Plan((create, *rest), {}, after)


def _with_uuid(smbios: str, identity: str) -> str:
    """Return the option smbios1 with that uuid; a desired one is written when the VM is made."""
    values = parse_option("smbios1", smbios)
    values["uuid"] = identity
    return render_option("smbios1", values)


def plan_clone(
    desired: Desired,
    source: Actual,
    *,
    vmid: int,
    node: str,
    full: bool,
    run: str,
    shared: Collection[str],
    contested: bool = False,
) -> Plan:
    """Return what clones `source` to `node` and makes the clone the desired VM.

    `full` copies the disks, else the clone is linked; `run` marks the clone as made by this run
    until it is finished, and where it is `contested`, until its quota and place were checked. The
    steps after the first are a prediction: they are planned again once the clone exists.
    """
    from_ = desired.source or Source()
    at = source.node
    if _all_shared(source, shared):
        at = node
    label = _new_label(desired, vmid, at)
    data = _clone_data(desired, source, vmid=vmid, at=at, full=full, run=run)
    storage = from_.storage or _one_storage(desired, source)
    is_reached = at == source.node or storage in shared
    if full and storage and is_reached:
        data["storage"] = storage  # else its disks are moved once they are on their node
    origin = source.label
    if from_.snapshot:
        origin = f"snapshot '{from_.snapshot}' of {source.label}"
    kind = "full" if full else "linked"
    clone = Step(
        "clone",
        f"Clone {origin} to {label} ({kind})",
        "POST",
        ("nodes", source.node, "qemu", source.vmid, "clone"),
        data,
        reread=True,
    )
    made = clone_of(source, vmid=vmid, node=at, data=data)
    rest = plan_update(
        replace(desired, node=node), made, shared=shared, building=True, contested=contested
    )
    after = {**rest.after, "vmid": vmid, "node": node}
    if desired.pool:
        after["pool"] = desired.pool
    return Plan(
        steps=(clone, *rest.steps),
        after=after,
        pending=rest.pending,
        warnings=rest.warnings,
    )


def _clone_data(
    desired: Desired, source: Actual, *, vmid: int, at: str, full: bool, run: str
) -> dict[str, Any]:
    """Return the data of the clone request, except the storage."""
    from_ = desired.source or Source()
    marker = Marker(
        origin=source.vmid,
        run=run,
        tenant=desired.tenant_tag,
        inherited_tags=_inherited_tags(desired, source),
    )
    data: dict[str, Any] = {"newid": vmid, "full": int(full)}
    data["description"] = join_notes(source.notes, marker)
    if at != source.node:
        data["target"] = at
    optional = {
        "name": desired.name,
        "pool": desired.pool,
        "format": from_.format,
        "snapname": from_.snapshot,
    }
    for key, value in optional.items():
        if value:
            data[key] = value
    return data


def _inherited_tags(desired: Desired, source: Actual) -> tuple[str, ...]:
    """Return the tags of the source that a clone does not keep; PVE copies all of them.

    Those are the tags of other tenants, and all that a template has: they describe the template,
    such as `image` (qemu-server, clone_vm).
    """
    tags = parse_tags(source.target.get("tags"))
    owners = set(tenants_of(tags, desired.tenant_prefix))
    removed: set[str] = set()
    if desired.tenant:
        removed = owners - {desired.tenant_tag}
    if source.template:
        lowered = {tag.lower() for tag in tags}
        kept = set(desired.tags or ())
        removed |= lowered - owners - kept
    return tuple(sorted(removed))


def clone_of(source: Actual, *, vmid: int, node: str, data: Mapping[str, Any]) -> Actual:
    """Return what a clone will look like before it is configured (qemu-server: clone_vm)."""
    config: dict[str, str] = {}
    for key, value in source.target.items():
        if key in _NOT_CLONED or key.startswith(("unused", "snap")):
            continue
        config[key] = value
        if _NIC.match(key):
            config[key] = _without_mac(key, value)
    storage = data.get("storage")
    if storage:
        config |= _drives_on(storage, config)
    config["name"] = data.get("name") or f"Copy-of-VM-{source.name}"
    config["description"] = data["description"]
    return Actual(vmid, node, "stopped", live=config, target=config, pool=data.get("pool"))


def _drives_on(storage: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the drives that a full clone to one storage puts there."""
    moved = {}
    for slot, drive in drives(config).items():
        if not storage_of(drive):
            continue
        if is_cloud_init(drive):
            moved[slot] = f"{storage}:vm-cloudinit,media=cdrom"
        elif is_disk(drive):
            _volume, _comma, options = config[slot].partition(",")
            moved[slot] = f"{storage}:new,{options}"
    return moved


def _without_mac(key: str, text: str) -> str:
    values = parse_option(key, text)
    values.pop("macaddr", None)
    return render_option(key, values)


def _all_shared(source: Actual, shared: Collection[str]) -> bool:
    """Return whether every volume of the source is on a storage that all nodes share."""
    for drive in drives(source.target).values():
        is_empty = drive.get("file") == "none"
        if not is_empty and storage_of(drive) not in shared:
            return False
    return True


def _one_storage(desired: Desired, source: Actual) -> str | None:
    """Return the one storage that all disks of the source are to be on, or None."""
    wanted: set[str | None] = set()
    for disk in desired.disks:
        if disk.slot in source.target and not disk.is_cdrom:
            wanted.add(disk.storage)
    existing: set[str | None] = set()
    for drive in drives(source.target).values():
        if drive.get("media") != "cdrom":
            existing.add(storage_of(drive))
    if len(wanted) != 1 or wanted == existing:
        return None
    return wanted.pop()


def _new_label(desired: Desired, vmid: int, node: str) -> str:
    numbered = replace(desired, vmid=vmid)
    return f"{numbered.label} on node {node}"
