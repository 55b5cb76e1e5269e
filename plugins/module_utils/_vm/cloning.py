# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can be cloned and how: linked or full, to which storage, from which snapshot. Refuses before any request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from .._cluster.picture import Picture, VmRow
from .._cluster.placement import require_node, require_storage
from .._core.errors import FleetError, Locked, NotFound, NotSupported
from .._core.retry import TimeBudget
from .actual import drives, is_disk, storage_of
from .drives import RAW_ONLY
from .model import Actual, Desired, Disk, Source
from .moving import read_wherever

if TYPE_CHECKING:
    from .._api.client import Client

# What each storage can do with a volume (pve-storage: volume_has_feature of each plugin).
_LINKS_BASE = frozenset("lvmthin zfspool zfs rbd btrfs dir nfs cifs cephfs".split())
_LINKS_SNAPSHOT = frozenset("lvmthin rbd btrfs".split())
_COPIES_SNAPSHOT = frozenset("lvmthin rbd btrfs".split())
# A linked clone on these needs nothing of its template on the node it moves to.
_MOVES_LINKED = frozenset(("lvmthin",))
# What a snapshot's configuration has beside that of a VM.
_OF_SNAPSHOT = frozenset("snaptime snapstate vmstate parent runningmachine runningcpu running-nets-host-mtu".split())


def read_source(client: Client, row: VmRow, picture: Picture) -> Actual:
    """Return the VM to clone, wherever it is by now.

    A lock is waited for within the connection's lock_timeout. Raises Locked.
    """
    require_node(picture, row.node)
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
    there = [str(one["name"]) for one in client.get(*base, "snapshot") if one["name"] != "current"]
    if snapshot not in there:
        raise NotFound(
            attempted=f"Snapshot '{snapshot}' of {source.label} was not cloned",
            answer=f"its snapshots are {', '.join(sorted(there)) or 'none'}",
            next_step="Check the snapshot's name",
            reason="unknown snapshot",
        )
    rows = client.get(*base, "config", snapshot=snapshot)
    config = {key: str(value).strip("\n") for key, value in rows.items() if key not in _OF_SNAPSHOT | {"digest"}}
    return replace(source, live=config, target=config)


def spread_storage(desired: Desired, source: Actual) -> Desired:
    """Return the wish with the storage of the clone as that of each disk of the source that names none."""
    storage = desired.source.storage if desired.source else None
    if not storage:
        return desired
    said = {disk.slot for disk in desired.disks}
    disks = [disk if disk.storage or disk.is_cdrom else replace(disk, storage=storage) for disk in desired.disks]
    disks += [Disk(slot, storage=storage) for slot, _unused in _disks(source) if slot not in said]
    return replace(desired, disks=tuple(disks))


def nodes_for(desired: Desired, source: Actual, picture: Picture) -> frozenset[str] | None:
    """Return the nodes a clone without a wished node can be made on, or None for any."""
    if desired.node:
        return None
    storage = desired.source.storage if desired.source else None
    stores = {storage_of(drive) for drive in drives(source.target).values()} | ({storage} if storage else set())
    local = [store for store in stores if store and store not in picture.shared_storages]
    # Local disks are cloned where they are; a move to another node comes after.
    return frozenset((source.node,)) if local else None


def chained_stores(client: Client, desired: Desired, picture: Picture) -> frozenset[str]:
    """Return the LVM storages that have disks in format qcow2; one request where a clone is to be in that format.

    Who may not see the storages' configuration gets all of them: PVE then decides.
    """
    lvm = frozenset(row.storage for row in picture.storages if row.kind == "lvm")
    if not lvm or (desired.source or Source()).format != "qcow2":
        return frozenset()
    try:
        rows = client.get("storage") or []
    except FleetError:
        return lvm
    return frozenset(
        row["storage"] for row in rows if row["storage"] in lvm and int(row.get("snapshot-as-volume-chain") or 0)
    )


def decide_full(desired: Desired, source: Actual, picture: Picture, chained: frozenset[str] = frozenset()) -> bool:
    """Return whether the clone copies the disks: as asked, else linked wherever PVE allows it.

    `chained` are LVM storages that take qcow2. Raises NotSupported for what cannot be done, ConfigurationError for a
    storage that is not where it is needed.
    """
    said = desired.source or Source()
    reason = why_not_linked(desired, source, picture)
    if said.full is False and reason:
        raise _cannot(f"A linked clone of {source.label}", reason, "Leave full out, or set it to true", "linked clone")
    full = bool(reason) if said.full is None else said.full
    if full:
        _check_copy(desired, source, picture, chained)
    _check_move(desired, source, picture)
    return full


def why_not_linked(desired: Desired, source: Actual, picture: Picture) -> str | None:
    """Return why the VM cannot be cloned linked, or None."""
    said = desired.source or Source()
    if not source.template and not (said.snapshot and said.full is False):
        return "it is no template"
    asked = [name for name in ("storage", "format") if getattr(said, name)]
    if asked:
        return f"{' and '.join(asked)} is for full clones, the disks of a linked clone stay beside their template's"
    for slot, store, kind in _stored(source, picture):
        if kind not in (_LINKS_SNAPSHOT if said.snapshot else _LINKS_BASE):
            return f"{slot} is on storage {store} ({kind or 'unknown'}), which has no linked clones of it"
        wished = next((disk.storage for disk in desired.disks if disk.slot == slot), None)
        if wished and wished != store:
            return f"{slot} shall be on storage {wished}, a linked clone stays on {store}"
        stays = store in picture.shared_storages or kind in _MOVES_LINKED or desired.node in (None, source.node)
        if not stays:
            return f"{slot} is on storage {store} of node {source.node}, which a linked clone cannot leave"
    return None


def _check_copy(desired: Desired, source: Actual, picture: Picture, chained: frozenset[str]) -> None:
    """Refuse a full clone that PVE would refuse, or would make with another format than the one asked for."""
    said = desired.source or Source()
    for slot, store, kind in _stored(source, picture):
        text = source.target[slot].partition(",")[0]
        if said.snapshot and kind not in _COPIES_SNAPSHOT and not text.endswith(".qcow2"):
            raise _cannot(
                f"A clone of snapshot '{said.snapshot}' of {source.label}",
                f"{slot} is on storage {store} ({kind or 'unknown'}), which cannot copy a snapshot",
                "Clone the VM as it is now, or roll it back first",
                "snapshot copy",
            )
    if said.storage:
        require_storage(picture, said.storage, desired.node or source.node, "images")
    kinds = {row.storage: row.kind for row in picture.storages}
    stores = [said.storage] if said.storage else [store for _slot, store, _kind in _stored(source, picture)]
    for store in stores:
        raw_only = kinds.get(store) in RAW_ONLY or (kinds.get(store) == "lvm" and store not in chained)
        if said.format not in (None, "raw") and raw_only:
            raise _cannot(
                f"A clone of {source.label} in format {said.format}",
                f"storage {store} ({kinds[store]}) has disks in format raw only",
                "Leave format out, or choose a storage of files",
                "format",
            )


def _check_move(desired: Desired, source: Actual, picture: Picture) -> None:
    """Local disks are cloned on their node and then moved: refuse that where it is not allowed or cannot be."""
    node = desired.node
    if node is None or node == source.node:
        return
    local = sorted({store for _slot, store, _kind in _stored(source, picture) if store not in picture.shared_storages})
    if not local:
        return
    if not desired.migrate:
        raise _cannot(
            f"A clone of {source.label} on node {node}",
            f"its disks are on {', '.join(local)}, which only its own node sees, and migrate is false",
            f"Allow the move behind the clone with migrate=true, or clone to node {source.node}",
            "local storage",
        )
    said = desired.source or Source()
    for store in [said.storage] if said.storage else local:
        require_storage(picture, store, source.node, "images")
        require_storage(picture, store, node, "images")


def _disks(source: Actual) -> Iterator[tuple[str, dict[str, str]]]:
    return ((slot, drive) for slot, drive in sorted(drives(source.target).items()) if is_disk(drive))


def _stored(source: Actual, picture: Picture) -> list[tuple[str, str, str]]:
    """Return slot, storage and kind of storage of each disk."""
    kinds = {row.storage: row.kind for row in picture.storages}
    return [(slot, store, kinds.get(store, "")) for slot, drive in _disks(source) if (store := storage_of(drive))]


def _cannot(what: str, answer: str, next_step: str, reason: str) -> NotSupported:
    return NotSupported(
        attempted=f"{what} could not be planned", answer=answer, next_step=next_step, reason=reason, dispatched=False
    )
