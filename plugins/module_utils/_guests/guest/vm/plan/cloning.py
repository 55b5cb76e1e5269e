# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides how a source can be cloned: linked or full, to which storage, from which snapshot
(pure).
"""

from __future__ import annotations

from ....._foundation.cluster.placement import require_storage
from ....._foundation.cluster.state import ClusterState
from ....._foundation.cluster.storages.types import RAW_ONLY
from ....._foundation.core.errors import Locked, NotSupported
from ....kinds.model import Actual, GuestSource
from ....kinds.vm.config.actual import drives, is_disk, storage_of
from ....kinds.vm.model import DesiredVm
from ...plan.allocation import Definitions

# The abilities of each storage with a volume (pve-storage: volume_has_feature of each plugin).
_LINKS_BASE = frozenset("lvmthin zfspool zfs rbd btrfs dir nfs cifs cephfs".split())
_LINKS_SNAPSHOT = frozenset("lvmthin rbd btrfs".split())
_COPIES_SNAPSHOT = frozenset("lvmthin rbd btrfs".split())
# A linked clone on these storages can move to a node without its template.
_MOVES_LINKED = frozenset(("lvmthin",))


def require_unlocked(source: Actual) -> None:
    """Raise Locked for a VM to clone that is still locked after the connection's lock_timeout."""
    if not source.lock:
        return
    raise Locked(
        attempted=f"{source.label} was not cloned",
        answer=f"it is locked ({source.lock})",
        next_step=f"Wait until the running {source.lock} is over, or raise lock_timeout",
        reason=f"locked ({source.lock})",
        dispatched=False,
    )


def nodes_for(desired: DesiredVm, source: Actual, cluster: ClusterState) -> frozenset[str] | None:
    """Return the nodes on which a clone can be made if the task names no node, or None for any."""
    if desired.guest.node:
        return None
    storages = {storage_of(drive) for drive in drives(source.target).values()}
    storages.add(_source_of(desired).storage)
    if storages <= {None, *cluster.shared_storages}:
        return None
    # Local disks are cloned on their own node; a move to another node follows.
    return frozenset((source.node,))


def storages_that_may_chain(desired: DesiredVm, cluster: ClusterState) -> frozenset[str]:
    """Return the LVM storages if the clone must be in format qcow2, which some of them accept."""
    if _source_of(desired).format != "qcow2":
        return frozenset()
    return frozenset(row.storage for row in cluster.storages if row.kind == "lvm")


def chained_in(definitions: Definitions) -> frozenset[str]:
    """Return the storages with disks in format qcow2 on LVM."""
    chained: set[str] = set()
    for name, definition in definitions.items():
        option = definition.get("snapshot-as-volume-chain") or 0
        if int(option):
            chained.add(name)
    return frozenset(chained)


def _source_of(desired: DesiredVm) -> GuestSource:
    """Return the source of the task, an empty one if it has none."""
    return GuestSource() if desired.guest.source is None else desired.guest.source


def decide_full(
    desired: DesiredVm, source: Actual, cluster: ClusterState, chained: frozenset[str] = frozenset()
) -> bool:
    """Return whether the clone copies the disks: as requested, else linked if PVE allows it.

    `chained` are LVM storages that take qcow2. Raises NotSupported for an impossible clone,
    ConfigurationError for a storage that a node lacks.
    """
    full = _source_of(desired).full
    reason = why_not_linked(desired, source, cluster)
    if reason and full is False:
        raise _cannot(
            f"A linked clone of {source.label}",
            reason,
            "Leave full out, or set it to true",
            "linked clone",
        )
    if full is None:
        full = reason is not None
    if full:
        _require_snapshot_copy(desired, source, cluster)
        _require_storage_of_clone(desired, source, cluster, chained)
    _require_move(desired, source, cluster)
    return full


def why_not_linked(desired: DesiredVm, source: Actual, cluster: ClusterState) -> str | None:
    """Return why the VM cannot be cloned linked, or None."""
    from_ = _source_of(desired)
    is_linked_to_snapshot = from_.snapshot and from_.full is False
    if not source.template and not is_linked_to_snapshot:
        return "it is not a template"
    requested = {"storage": from_.storage, "format": from_.format}
    names = " and ".join(name for name, value in requested.items() if value)
    if names:
        return (
            f"{names} is for full clones, the disks of a linked clone stay beside their template's"
        )
    for slot, storage, kind in _stored(source, cluster):
        reason = _why_disk_not_linked(
            desired, source, cluster, slot=slot, storage=storage, kind=kind
        )
        if reason is not None:
            return reason
    return None


def _why_disk_not_linked(
    desired: DesiredVm, source: Actual, cluster: ClusterState, *, slot: str, storage: str, kind: str
) -> str | None:
    """Return why a clone cannot be linked to that disk, or None."""
    kinds = _LINKS_SNAPSHOT if _source_of(desired).snapshot else _LINKS_BASE
    if kind not in kinds:
        type_name = kind or "unknown"
        return f"{slot} is on storage {storage} ({type_name}), which has no linked clones of it"
    wanted = {disk.slot: disk.storage for disk in desired.hardware.disks}.get(slot)
    if wanted not in (None, "", storage):
        return f"{slot} would be on storage {wanted}, a linked clone stays on {storage}"
    if storage in cluster.shared_storages:
        return None
    if kind in _MOVES_LINKED:
        return None
    if desired.guest.node in (None, source.node):
        return None
    return (
        f"{slot} is on storage {storage} of node {source.node}, which a linked clone cannot leave"
    )


def _require_snapshot_copy(desired: DesiredVm, source: Actual, cluster: ClusterState) -> None:
    """Raise NotSupported if PVE cannot copy a disk from the snapshot."""
    snapshot = _source_of(desired).snapshot
    if not snapshot:
        return
    for slot, storage, kind in _stored(source, cluster):
        if kind in _COPIES_SNAPSHOT:
            continue
        volume, _comma, _options = source.target[slot].partition(",")
        if volume.endswith(".qcow2"):
            continue
        type_name = kind or "unknown"
        raise _cannot(
            f"A clone of snapshot '{snapshot}' of {source.label}",
            f"{slot} is on storage {storage} ({type_name}), which cannot copy a snapshot",
            "Clone the VM as it is now, or roll it back first",
            "snapshot copy",
        )


def _require_storage_of_clone(
    desired: DesiredVm, source: Actual, cluster: ClusterState, chained: frozenset[str]
) -> None:
    """Raise if the storage of a full clone is missing, or cannot hold the requested format."""
    from_ = _source_of(desired)
    storages = [storage for _slot, storage, _kind in _stored(source, cluster)]
    if from_.storage:
        node = desired.guest.node or source.node
        require_storage(cluster, from_.storage, node, "images")
        storages = [from_.storage]
    if from_.format in (None, "raw"):
        return
    kinds = {row.storage: row.kind for row in cluster.storages}
    for storage in storages:
        kind = kinds.get(storage)
        is_raw_only = storage not in chained if kind == "lvm" else kind in RAW_ONLY
        if not is_raw_only:
            continue
        raise _cannot(
            f"A clone of {source.label} in format {from_.format}",
            f"storage {storage} ({kind}) has disks in format raw only",
            "Leave format out, or choose a storage of files",
            "format",
        )


def _require_move(desired: DesiredVm, source: Actual, cluster: ClusterState) -> None:
    """Raise if local disks, which are cloned on their own node, cannot be moved to the new node."""
    node = desired.guest.node
    if node is None or node == source.node:
        return
    storages = {storage for _slot, storage, _kind in _stored(source, cluster)}
    local = sorted(storages - cluster.shared_storages)
    if not local:
        return
    if not desired.guest.migrate:
        names = ", ".join(local)
        raise _cannot(
            f"A clone of {source.label} on node {node}",
            f"its disks are on {names}, which only its own node sees, and migrate is false",
            f"Allow the move behind the clone with migrate=true, or clone to node {source.node}",
            "local storage",
        )
    storage_of_clone = _source_of(desired).storage
    if storage_of_clone:
        local = [storage_of_clone]
    for storage in local:
        require_storage(cluster, storage, source.node, "images")
        require_storage(cluster, storage, node, "images")


def _stored(source: Actual, cluster: ClusterState) -> list[tuple[str, str, str]]:
    """Return slot, storage and kind of storage of each disk."""
    kinds = {row.storage: row.kind for row in cluster.storages}
    found = []
    for slot, drive in sorted(drives(source.target).items()):
        storage = storage_of(drive)
        if storage and is_disk(drive):
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
