# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans for new guests: created in one request, or cloned or restored and then changed (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...._foundation.cluster.tenant import parse_tags, tenants_of
from ...._foundation.resource.plan import Plan, Step
from ...kinds.hardware import AnyDesired, DesiredGuest, Disk
from ...kinds.marker import Marker, join_notes
from ...kinds.model import Actual, Guest, GuestSource
from ..plan import power
from .archive import archived_vmid, remark_on_unsaved, warn_of_unsaved
from .copies import image_of_clone, is_shared
from .intent import Intent, Source
from .planner import CreationOptions, GuestPlanner, require_valid_data
from .steps import AnyUpdate, complete, grow, isolate

LIVE = "live-restore"  # PVE's parameter that starts a VM while its disks are restored


def plan_creation(
    planner: GuestPlanner[AnyDesired, AnyUpdate],
    intent: Intent[AnyDesired],
    *,
    shared: Collection[str],
) -> Plan:
    """Return the plan that creates a guest from its source. `shared` are the storages that all
    nodes share.
    """
    source = intent.source or Source()
    if source.template is not None:
        return _plan_clone(planner, intent, source.template, full=source.full, shared=shared)
    if source.archived is not None:
        return _plan_restore(planner, intent, source)
    return _plan_create(planner, intent, planner.creation_data(intent, source))


def starts_at_once(steps: Sequence[Step]) -> bool:
    """Return whether the first step starts the guest that it creates."""
    return bool(steps) and bool(steps[0].data.get(LIVE))


def _plan_create(
    planner: GuestPlanner[AnyDesired, AnyUpdate],
    intent: Intent[AnyDesired],
    data: Mapping[str, Any],
) -> Plan:
    """Return the plan that creates a guest that is not a clone, in one request.

    The change of the intent turns an empty guest into the desired guest; `data` are parameters of
    the request that do not come from an option, or replace one.

    The tags of a guest in a pool are written once it is in the pool: PVE requires the right to
    write tags on the guest itself, so a caller with rights on the pool only cannot create it with
    tags (qemu-server: API2/Qemu.pm, create_vm; pve-container: API2/LXC.pm, create_vm;
    pve-guest-common: GuestHelpers.pm, assert_tag_permissions).
    """
    kind, guest, change = planner.kind, intent.guest, intent.change
    vmid, node = intent.vmid, intent.node
    sent: dict[str, Any] = {"vmid": vmid, **change.sets}
    if guest.pool:
        sent["pool"] = guest.pool
    config = planner.applied(change, {})
    created = Actual(kind, vmid, node, "stopped", live=config, target=config, pool=guest.pool)
    rest = [
        *grow(created, change.drives.grown_later),
        *isolate(guest, created),
        *power.finish(guest, created, running=False, waiting=False),
    ]
    tags = sent.pop("tags", None) if guest.pool else None
    is_unclear = intent.contested or not kind.has_uuid
    if rest or tags or is_unclear:
        marker = Marker(run=intent.run, tenant=guest.tenant_tag)
        sent["description"] = join_notes(guest.description or "", marker)
        rest = complete(created, change, rest, tags=tags, contested=intent.contested)
    label = new_label(guest, vmid, node)
    require_valid_data(kind, label, sent)
    sent.update(data)
    create = Step(
        "create", f"Create {label}", method="POST", path=kind.path(node), data=sent, reread=True
    )
    status = power.status_after(guest, created)
    after = {**kind.formatted(created.target), "status": status, "node": node, "vmid": vmid}
    if guest.isolation is not None:
        after["isolated"] = True
    if guest.pool:
        after["pool"] = guest.pool
    return Plan((create, *rest), {}, after)


def _plan_clone(
    planner: GuestPlanner[AnyDesired, AnyUpdate],
    intent: Intent[AnyDesired],
    source: Actual,
    *,
    full: bool,
    shared: Collection[str],
) -> Plan:
    """Return the plan that clones `source` and changes the clone into the desired guest.

    `full` copies the disks, else the clone is linked. The steps after the first are a prediction:
    they are planned again once the clone exists.
    """
    vmid, node, guest = intent.vmid, intent.node, intent.guest
    from_ = guest.source or GuestSource()
    at = node if is_shared(source, shared) else source.node
    label = new_label(guest, vmid, at)
    data = _clone_data(intent, source, at=at, full=full)
    storage = from_.storage or _one_storage(intent.desired, source)
    is_reached = at == source.node or storage in shared
    if full and storage and is_reached:
        data["storage"] = storage  # else its disks are moved once they are on their node
    origin = source.label
    if from_.snapshot:
        origin = f"snapshot '{from_.snapshot}' of {source.label}"
    word = "full" if full else "linked"
    clone = Step(
        "clone",
        f"Clone {origin} to {label} ({word})",
        "POST",
        (*source.path, "clone"),
        data,
        reread=True,
    )
    created = planner.copy_of(source, restored=False, vmid=vmid, node=at, data=data)
    rest = planner.plan_update(
        intent.desired.with_guest(node=node),
        created,
        shared=shared,
        creating=CreationOptions(whole=True, contested=intent.contested),
    )
    after = {**rest.after, "vmid": vmid, "node": node}
    if guest.pool:
        after["pool"] = guest.pool
    return replace(rest, steps=(clone, *rest.steps), before={}, after=after)


def spread_storage(desired: AnyDesired, source: Actual) -> AnyDesired:
    """Return the desired guest with the clone's storage for each disk without one of its own."""
    storage = desired.guest.source.storage if desired.guest.source else None
    if not storage:
        return desired
    disks: dict[str, Disk] = {}
    for disk in desired.hardware.disks:
        has_place = disk.storage or disk.is_cdrom or disk.volume
        if not has_place:
            disk = replace(disk, storage=storage)
        disks[disk.slot] = disk
    for slot in sorted(source.kind.disks_in(source.target)):
        disks.setdefault(slot, Disk(slot, storage=storage))
    return desired.with_hardware(disks=tuple(disks.values()))


def _plan_restore(
    planner: GuestPlanner[AnyDesired, AnyUpdate], intent: Intent[AnyDesired], archive: Source
) -> Plan:
    """Return the plan that restores a guest from an archive and changes it into the desired guest.

    PVE applies options in the request to the restored guest, so it has its marker, its notes and an
    exact list of tags as soon as the restore ends (qemu-server: API2/Qemu.pm, create_vm;
    pve-container: LXC/Create.pm, restore_configuration). The steps after the first are a
    prediction, as for a clone.

    If the archive is of the guest itself, which a failed restore has removed, the marker keeps the
    origin of the guest.
    """
    guest, vmid, node = intent.guest, intent.vmid, intent.node
    source = archive.archived_guest(planner.kind, node)
    data = planner.restore_data(intent.desired, archive)
    label = new_label(guest, vmid, node)
    notes = source.notes if guest.description is None else guest.description
    is_itself = guest.source is not None and guest.source.in_place
    marker = Marker(
        origin=source.marker.origin if is_itself else archived_vmid(archive.volume),
        image=source.marker.image,
        restored=source.marker.restored or not is_itself,
        run=intent.run,
        tenant=guest.tenant_tag,
        inherited_tags=_inherited_tags(guest, source),
    )
    sent: dict[str, Any] = {"vmid": vmid, "description": join_notes(notes, marker), **data}
    named = {
        planner.kind.name_option: guest.name,
        "pool": guest.pool,
        "tags": _exact_tags(guest, source),
    }
    for key, value in named.items():
        if value:
            sent[key] = value
    summary = f"Restore {label} from {archive.volume}"
    if is_itself:
        summary += ", as a failed restore has removed it"
    summary += remark_on_unsaved(planner.kind, source.target)
    path = planner.kind.path(node)
    step = Step("create", summary, method="POST", path=path, data=sent, reread=True)
    created = planner.copy_of(source, restored=True, vmid=vmid, node=node, data=sent)
    created = replace(created, status="running" if data.get(LIVE) else "stopped")
    creating = CreationOptions(whole=True, contested=intent.contested)
    rest = planner.plan_update(intent.desired.with_guest(node=node), created, creating=creating)
    after = {**rest.after, "vmid": vmid, "node": node}
    if guest.pool:
        after["pool"] = guest.pool
    warnings = (*warn_of_unsaved(planner.kind, label, source.target), *rest.warnings)
    return replace(rest, steps=(step, *rest.steps), before={}, after=after, warnings=warnings)


def _exact_tags(desired: Guest, source: Actual) -> str:
    """Return the tags of a restored guest with an exact list of tags, else an empty text."""
    if desired.keeps_other_tags:
        return ""
    owners = tenants_of(parse_tags(source.target.get("tags")), desired.tenant_prefix)
    kept = set(owners) - set(_inherited_tags(desired, source))
    return ";".join(sorted(desired.own_tags | kept))


def _clone_data(intent: Intent[Any], source: Actual, *, at: str, full: bool) -> dict[str, Any]:
    """Return the data of the clone request, except the storage."""
    desired = intent.guest
    from_ = desired.source or GuestSource()
    marker = Marker(
        origin=source.vmid,
        image=image_of_clone(source),
        run=intent.run,
        tenant=desired.tenant_tag,
        inherited_tags=_inherited_tags(desired, source),
    )
    data: dict[str, Any] = {"newid": intent.vmid, "full": int(full)}
    data["description"] = join_notes(source.notes, marker)
    if at != source.node:
        data["target"] = at
    optional = {
        desired.kind.name_option: desired.name,
        "pool": desired.pool,
        "format": from_.format,
        "snapname": from_.snapshot,
    }
    for key, value in optional.items():
        if value:
            data[key] = value
    return data


def _inherited_tags(desired: Guest, source: Actual) -> tuple[str, ...]:
    """Return the tags of the source that a clone does not keep; PVE copies all of them.

    These are the tags of other tenants, and all tags of a template: they describe the template,
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


def _one_storage(desired: DesiredGuest, source: Actual) -> str | None:
    """Return the one storage for all disks of the source, or None."""
    wanted: set[str | None] = set()
    for disk in desired.hardware.disks:
        if disk.slot in source.target and not disk.is_cdrom:
            wanted.add(disk.storage)
    existing: set[str | None] = set()
    for drive in source.kind.disks_in(source.target).values():
        existing.add(drive.get("file", "").partition(":")[0])
    if len(wanted) != 1 or wanted == existing:
        return None
    return wanted.pop()


def new_label(desired: Guest, vmid: int, node: str) -> str:
    """Return the name of a new guest in messages."""
    with_number = replace(desired, vmid=vmid)
    return f"{with_number.label} on node {node}"
