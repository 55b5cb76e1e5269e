# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can be cloned and how: linked or full, to which storage, from which snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..._cluster.placement import require_node, require_storage
from ..._cluster.state import ClusterState, VmRow
from ..._core.errors import FleetError, Locked, NotSupported, UnknownSnapshot
from ..._core.retry import TimeBudget
from ..config.actual import drives, is_disk, storage_of
from ..config.drives import RAW_ONLY
from ..live.read import read_wherever
from ..model import Actual, Desired, Disk, Source

if TYPE_CHECKING:
    from ..._api.client import Client

# What each storage can do with a volume (pve-storage: volume_has_feature of each plugin).
_LINKS_BASE = frozenset("lvmthin zfspool zfs rbd btrfs dir nfs cifs cephfs".split())
_LINKS_SNAPSHOT = frozenset("lvmthin rbd btrfs".split())
_COPIES_SNAPSHOT = frozenset("lvmthin rbd btrfs".split())
# A linked clone on these needs nothing of its template on the node it moves to.
_MOVES_LINKED = frozenset(("lvmthin",))
# Options of a snapshot that a VM does not have.
_OF_SNAPSHOT = frozenset(
    "snaptime snapstate vmstate parent runningmachine runningcpu running-nets-host-mtu".split()
)


def read_source(client: Client, row: VmRow, cluster: ClusterState) -> Actual:
    """Return the VM to clone, on whatever node it is, once it is not locked.

    Raises Locked when the connection's lock_timeout is over.
    """
    require_node(cluster, row.node)
    budget = TimeBudget(client.clock, client.connection.lock_timeout)
    while True:
        source = read_wherever(client, row.vmid, row.node, status=row.status, pool=row.pool)
        if not source.lock:
            return source
        if not budget.again():
            raise Locked(
                attempted=f"{source.label} was not cloned",
                answer=f"it is locked ({source.lock})",
                next_step=f"Wait until the running {source.lock} is over, or raise lock_timeout",
                reason=f"locked ({source.lock})",
                dispatched=False,
            )


def in_snapshot(client: Client, source: Actual, snapshot: str) -> Actual:
    """Return the VM as it was when the snapshot was taken. Raises NotFound for an unknown one."""
    base = ("nodes", source.node, "qemu", source.vmid)
    rows = client.get(*base, "snapshot")
    names = sorted(str(row["name"]) for row in rows if row["name"] != "current")
    if snapshot not in names:
        raise UnknownSnapshot(
            attempted=f"Snapshot '{snapshot}' of {source.label} was not cloned",
            answer=f"its snapshots are {', '.join(names) or 'none'}",
            next_step="Check the snapshot's name",
            reason="unknown snapshot",
        )
    config = {}
    for key, value in client.get(*base, "config", snapshot=snapshot).items():
        if key != "digest" and key not in _OF_SNAPSHOT:
            config[key] = str(value).strip("\n")
    return replace(source, live=config, target=config)


def spread_storage(desired: Desired, source: Actual) -> Desired:
    """Return the desired VM with the clone's storage for each disk that has no storage of its
    own.
    """
    storage = desired.source.storage if desired.source else None
    if not storage:
        return desired
    disks = {disk.slot: disk for disk in desired.disks}
    for slot, disk in disks.items():
        if not disk.storage and not disk.is_cdrom:
            disks[slot] = replace(disk, storage=storage)
    for slot, _drive in _disks(source):
        disks.setdefault(slot, Disk(slot, storage=storage))
    return replace(desired, disks=tuple(disks.values()))


def nodes_for(desired: Desired, source: Actual, cluster: ClusterState) -> frozenset[str] | None:
    """Return the nodes that a clone can be made on when no node is asked for, or None for any."""
    if desired.node:
        return None
    storages = {storage_of(drive) for drive in drives(source.target).values()}
    if desired.source is not None:
        storages.add(desired.source.storage)
    if storages <= {None, *cluster.shared_storages}:
        return None
    # Local disks are cloned where they are; a move to another node comes after.
    return frozenset((source.node,))


def chained_stores(client: Client, desired: Desired, cluster: ClusterState) -> frozenset[str]:
    """Return the LVM storages that have disks in format qcow2.

    One request where a clone is to be in that format.

    A user who may not read the configuration of storages gets all of them: PVE then decides.
    """
    lvm = frozenset(row.storage for row in cluster.storages if row.kind == "lvm")
    if not lvm or (desired.source or Source()).format != "qcow2":
        return frozenset()
    try:
        rows = client.get("storage") or []
    except FleetError:
        return lvm
    chained = [row["storage"] for row in rows if int(row.get("snapshot-as-volume-chain") or 0)]
    return lvm.intersection(chained)


def decide_full(
    desired: Desired, source: Actual, cluster: ClusterState, chained: frozenset[str] = frozenset()
) -> bool:
    """Return whether the clone copies the disks: as asked, else linked wherever PVE allows it.

    `chained` are LVM storages that take qcow2. Raises NotSupported for what cannot be done,
    ConfigurationError for a storage that a node lacks.
    """
    from_ = desired.source or Source()
    reason = why_not_linked(desired, source, cluster)
    if from_.full is False and reason:
        raise _cannot(
            f"A linked clone of {source.label}",
            reason,
            "Leave full out, or set it to true",
            "linked clone",
        )
    full = bool(reason) if from_.full is None else from_.full
    if full:
        _check_snapshot_copy(desired, source, cluster)
        _check_storage(desired, source, cluster, chained)
    _check_move(desired, source, cluster)
    return full


def why_not_linked(desired: Desired, source: Actual, cluster: ClusterState) -> str | None:
    """Return why the VM cannot be cloned linked, or None."""
    from_ = desired.source or Source()
    if not source.template and (not from_.snapshot or from_.full is not False):
        return "it is not a template"
    asked = [name for name in ("storage", "format") if getattr(from_, name)]
    if asked:
        return (
            f"{' and '.join(asked)} is for full clones, the disks of a linked clone stay beside"
            " their template's"
        )
    reasons = (
        _why_disk_not_linked(desired, source, cluster, *disk) for disk in _stored(source, cluster)
    )
    return next(filter(None, reasons), None)


def _why_disk_not_linked(
    desired: Desired, source: Actual, cluster: ClusterState, slot: str, storage: str, kind: str
) -> str | None:
    """Return why a clone cannot be linked to that disk, or None."""
    is_snapshot = desired.source is not None and desired.source.snapshot
    if kind not in (_LINKS_SNAPSHOT if is_snapshot else _LINKS_BASE):
        return (
            f"{slot} is on storage {storage} ({kind or 'unknown'}), which has no linked clones"
            " of it"
        )
    wanted = next((disk.storage for disk in desired.disks if disk.slot == slot), None)
    if wanted and wanted != storage:
        return f"{slot} would be on storage {wanted}, a linked clone stays on {storage}"
    if storage in cluster.shared_storages or kind in _MOVES_LINKED:
        return None
    if desired.node in (None, source.node):
        return None
    return (
        f"{slot} is on storage {storage} of node {source.node}, which a linked clone cannot leave"
    )


def _check_snapshot_copy(desired: Desired, source: Actual, cluster: ClusterState) -> None:
    """Raise NotSupported where PVE cannot copy a disk from the snapshot."""
    snapshot = desired.source.snapshot if desired.source else None
    if not snapshot:
        return
    for slot, storage, kind in _stored(source, cluster):
        volume = source.target[slot].partition(",")[0]
        if kind not in _COPIES_SNAPSHOT and not volume.endswith(".qcow2"):
            raise _cannot(
                f"A clone of snapshot '{snapshot}' of {source.label}",
                f"{slot} is on storage {storage} ({kind or 'unknown'}), which cannot copy a"
                " snapshot",
                "Clone the VM as it is now, or roll it back first",
                "snapshot copy",
            )


def _check_storage(
    desired: Desired, source: Actual, cluster: ClusterState, chained: frozenset[str]
) -> None:
    """Raise where the storage of a full clone is missing, or cannot hold the format asked for."""
    from_ = desired.source or Source()
    storages = [storage for _slot, storage, _kind in _stored(source, cluster)]
    if from_.storage:
        require_storage(cluster, from_.storage, desired.node or source.node, "images")
        storages = [from_.storage]
    if from_.format in (None, "raw"):
        return
    kinds = {row.storage: row.kind for row in cluster.storages}
    for storage in storages:
        kind = kinds.get(storage)
        if kind in RAW_ONLY or (kind == "lvm" and storage not in chained):
            raise _cannot(
                f"A clone of {source.label} in format {from_.format}",
                f"storage {storage} ({kind}) has disks in format raw only",
                "Leave format out, or choose a storage of files",
                "format",
            )


def _check_move(desired: Desired, source: Actual, cluster: ClusterState) -> None:
    """Raise where local disks cannot be moved to the node after they are cloned on their own."""
    node = desired.node
    if node is None or node == source.node:
        return
    storages = {storage for _slot, storage, _kind in _stored(source, cluster)}
    local = sorted(storages - cluster.shared_storages)
    if not local:
        return
    if not desired.migrate:
        raise _cannot(
            f"A clone of {source.label} on node {node}",
            f"its disks are on {', '.join(local)}, which only its own node sees, and migrate is"
            " false",
            f"Allow the move behind the clone with migrate=true, or clone to node {source.node}",
            "local storage",
        )
    if desired.source is not None and desired.source.storage:
        local = [desired.source.storage]
    for storage in local:
        require_storage(cluster, storage, source.node, "images")
        require_storage(cluster, storage, node, "images")


def _disks(source: Actual) -> list[tuple[str, dict[str, str]]]:
    return [
        (slot, drive) for slot, drive in sorted(drives(source.target).items()) if is_disk(drive)
    ]


def _stored(source: Actual, cluster: ClusterState) -> list[tuple[str, str, str]]:
    """Return slot, storage and kind of storage of each disk."""
    kinds = {row.storage: row.kind for row in cluster.storages}
    found = []
    for slot, drive in _disks(source):
        storage = storage_of(drive)
        if storage:
            found.append((slot, storage, kinds.get(storage, "")))
    return found


def _cannot(what: str, answer: str, next_step: str, reason: str) -> NotSupported:
    return NotSupported(
        attempted=f"{what} could not be planned",
        answer=answer,
        next_step=next_step,
        reason=reason,
        dispatched=False,
    )
