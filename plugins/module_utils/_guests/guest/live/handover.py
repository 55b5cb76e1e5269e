# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that move to another guest: refusals before the first write, and the last look at the guest
that gets the disk.

The rules come from qemu-server: API2/Qemu.pm, move_vm_disk, and pve-container: API2/LXC.pm,
move_volume.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.find.lookup import (
    require_own_guest,
    require_own_volume,
    require_unowned,
)
from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.storages.volume_users import VolumeUser, read_volume_users
from ...._foundation.cluster.tenant import owns, tenants_of
from ...._foundation.core.clock import poll
from ...._foundation.core.errors import (
    Conflict,
    ForeignTenant,
    NotFound,
    NotSupported,
    PermissionDenied,
)
from ...._foundation.resource.plan import Step
from ...kinds.hardware import MOVED, DesiredGuest, Disk
from ...kinds.marker import owner_tags
from ...kinds.model import Actual, Guest
from ..plan import power
from .read import read_wherever

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# The types of storages that cannot rename a volume (pve-storage: volume_has_feature).
_WITHOUT_RENAMING = frozenset(("zfs", "iscsi", "iscsidirect", "esxi", "pbs"))
# The seconds between the two writes of a move that an earlier run started.
_PATIENCE = 10.0


def require_nothing_moved(desired: DesiredGuest) -> None:
    """Raise Conflict if a new guest would hand over a disk, which it does not have (pure)."""
    slots = [disk.slot for disk in desired.hardware.disks if disk.state == MOVED]
    if slots:
        raise Conflict(
            f"{', '.join(slots)} of {desired.guest.label} could not be moved: the guest does not "
            "exist",
            "Correct its name, or leave out the disks with state=moved",
            "guest missing",
        )


def require_handover(
    client: Client, desired: DesiredGuest, actual: Actual, cluster: ClusterState
) -> None:
    """Raise FleetError for a disk that cannot move to the guest that the task names.

    One request for each disk to move, and several for each guest if the disk is still to be moved.
    """
    for disk in desired.hardware.disks:
        if disk.state != MOVED:
            continue
        if disk.slot not in actual.target:
            require_received(client, actual, [disk], desired.guest)
            continue
        receiver = _known(_read_receiver(client, actual, disk), actual, disk, desired.guest)
        _require_ready(desired.guest, actual, disk, receiver)
        _require_movable(client, desired.guest, actual, disk, cluster)


def require_received(
    client: Client, actual: Actual, disks: Iterable[Disk], desired: Guest | None = None
) -> None:
    """Raise NotFound unless the guests that get the disks have those that `actual` lacks.

    PVE writes the configuration that loses a disk first: a move in progress is awaited.
    """
    for disk in disks:
        if disk.state != MOVED or disk.slot in actual.target:
            continue
        receiver = _known(_read_receiver(client, actual, disk), actual, disk, desired)
        for _remaining in poll(client.clock, _PATIENCE, longest=1.0):
            if disk.target_slot in receiver.target:
                break
            receiver = _known(_read_receiver(client, actual, disk), actual, disk, desired)
        _require_slot(actual, disk, receiver)


def with_receiver(client: Client, desired: Guest, actual: Actual, step: Step) -> Step:
    """Return the step with the digest of the guest that gets the disk, which is read now: PVE then
    refuses the move to a guest that has changed, such as one with another owner.
    """
    vmid = int(step.data["target-vmid"])
    receiver = read_wherever(client, actual.kind, vmid, actual.node, status=actual.status)
    _require_owner(desired, actual, receiver)
    _require_on_node(f"{actual.label} did not give a disk", receiver, str(step.path[1]))
    return replace(step, data={**step.data, "target-digest": receiver.digest})


def _attempted(actual: Actual, disk: Disk) -> str:
    return f"{disk.slot} of {actual.label} was not moved to {actual.kind.noun} {disk.target_vmid}"


def _require_slot(actual: Actual, disk: Disk, receiver: Actual) -> None:
    """Raise NotFound unless the other guest has the disk (pure)."""
    if disk.target_slot in receiver.target:
        return
    raise NotFound(
        f"{_attempted(actual, disk)}: neither has it: {receiver.label} has no {disk.target_slot}",
        "Correct name and target_slot, or attach its volume with volume",
        "disk missing",
    )


def _read_receiver(client: Client, actual: Actual, disk: Disk) -> Actual | None:
    """Return the guest that gets the disk, None if it is not visible."""
    vmid = int(disk.target_vmid or 0)
    try:
        return read_wherever(client.direct(), actual.kind, vmid, actual.node, status=actual.status)
    except (NotFound, PermissionDenied):
        return None


def _known(receiver: Actual | None, actual: Actual, disk: Disk, desired: Guest | None) -> Actual:
    """Return the guest that gets the disk. Raises FleetError if it is not visible, or if the task
    may not touch it (pure).
    """
    if receiver is None:
        raise NotFound(
            f"{_attempted(actual, disk)}: no {actual.kind.noun} of number {disk.target_vmid} is "
            "visible",
            "Check target_vmid, and that the token has VM.Audit on it",
            "unknown guest",
        )
    if desired is not None:
        _require_owner(desired, actual, receiver)
    return receiver


def _require_owner(desired: Guest, actual: Actual, receiver: Actual) -> None:
    """Raise Conflict unless both guests belong to the tenant, or to the same tenants if the task
    has none (pure).
    """
    prefix = desired.tenant_prefix
    tags = owner_tags(receiver.target, prefix)
    if desired.only_unowned:
        require_unowned(receiver.label, tags, prefix)
    require_own_guest(receiver.label, tags, desired.tenant_tag, prefix, unnamed=receiver.unnamed)
    if desired.tenant_tag is not None:
        return
    owners = tenants_of(owner_tags(actual.target, prefix), prefix)
    if not all(owns(owner, tags, prefix) for owner in owners):
        raise ForeignTenant(
            f"A disk of {actual.label} was not moved to {receiver.label}: the two belong to "
            "different tenants",
            "Move it within a tenant, or copy the data",
            "foreign tenant",
        )


def _require_ready(desired: Guest, actual: Actual, disk: Disk, receiver: Actual) -> None:
    """Raise Conflict for guests that PVE moves no disk between (pure)."""
    _require_on_node(_attempted(actual, disk), receiver, actual.node)
    is_used = not disk.slot.startswith("unused")
    runs = actual.running and not power.stops_first(desired, actual)
    answer = step = ""
    if receiver.vmid == actual.vmid:
        answer, step = "it is the same guest", "Name another guest in target_vmid"
    elif disk.target_slot in receiver.target:
        answer = f"{receiver.label} has {disk.target_slot} already"
        step = "Name a free slot in target_slot"
    elif actual.template or receiver.template:
        answer, step = "one of them is a template", "Clone the template, or copy the data"
    elif runs and is_used:
        answer = f"the {actual.kind.noun} runs"
        step = "Stop it in the same task with state=stopped, or detach the disk first"
    if answer:
        raise Conflict(f"{_attempted(actual, disk)}: {answer}", step, "disk cannot move")


def _require_on_node(attempted: str, receiver: Actual, node: str) -> None:
    """Raise Conflict for a guest on another node (pure)."""
    if receiver.node == node:
        return
    raise Conflict(
        f"{attempted}: {receiver.label} is on another node",
        "Migrate one of them first",
        "disk cannot move",
    )


def _require_movable(
    client: Client, desired: Guest, actual: Actual, disk: Disk, cluster: ClusterState
) -> None:
    """Refuse a volume that PVE does not rename, that belongs to another tenant, or that a snapshot
    or another guest uses. Raises FleetError.
    """
    volume = actual.kind.volumes_in(actual.target).get(disk.slot, "")
    kinds = {row.storage: row.kind for row in cluster.storages}
    kind = kinds.get(volume.partition(":")[0], "")
    _require_renaming(actual, disk, volume, kind)
    prefix = desired.tenant_prefix
    require_own_volume(volume, cluster, desired.tenant_tag, prefix, desired.shared_sources)
    _require_unused(actual, disk, volume, read_volume_users(client.direct(), volume))
    if kind != "zfspool":
        _require_no_replica(actual, disk, client.get("cluster", "replication") or [])


def _require_renaming(actual: Actual, disk: Disk, volume: str, kind: str) -> None:
    """Raise NotSupported for a volume that no other guest can get (pure)."""
    storage, colon, _name = volume.partition(":")
    if colon and kind not in _WITHOUT_RENAMING and not volume.endswith(".subvol"):
        return
    answer = "it is not a volume of a storage"
    if colon:
        answer = f"storage {storage} cannot give {volume} to another guest"
    raise NotSupported(
        f"{_attempted(actual, disk)}: {answer}",
        "Copy the data, or move the disk to another storage first",
        "disk cannot move",
    )


def _require_unused(actual: Actual, disk: Disk, volume: str, users: Iterable[VolumeUser]) -> None:
    """Raise Conflict for a volume of a snapshot or of another guest (pure)."""
    for user in users:
        others = [place for place in user.places if place != disk.slot]
        if user.row.vmid != actual.vmid:
            others = [f"guest {user.row.vmid}"]
        if others:
            raise Conflict(
                f"{_attempted(actual, disk)}: {', '.join(others)} uses {volume}",
                "Remove the snapshot, or detach the volume there, first",
                "in use",
            )


def _require_no_replica(actual: Actual, disk: Disk, jobs: Iterable[Mapping[str, Any]]) -> None:
    """Raise Conflict if the guest that gets the disk is replicated: it needs a ZFS pool (pure)."""
    if all(int(job["guest"]) != disk.target_vmid for job in jobs):
        return
    raise Conflict(
        f"{_attempted(actual, disk)}: the guest is replicated, and the storage is not a ZFS pool",
        "Remove the replication job first, with module replication",
        "disk cannot move",
    )
