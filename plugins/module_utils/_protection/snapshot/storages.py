# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshot capabilities of storages (pure), from the storage plugins of pve-storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..._foundation.cluster.placement import PlacementNeeds, why_no_room
from ..._foundation.cluster.rules import PlacementRules
from ..._foundation.cluster.state import ClusterState
from ..._foundation.core.errors import Conflict, NotSupported, QuotaExceeded
from ..._foundation.core.quantities import read_size
from .model import Snapshot, SnapshotDisk, SnapshotVm

FILES = frozenset("dir nfs cifs cephfs glusterfs".split())
_ALWAYS = frozenset("lvmthin zfspool zfs rbd".split())
_NEVER = frozenset("iscsi iscsidirect esxi pbs".split())
# For the other kinds of storages, the formats of which PVE can take snapshots.
_FORMATS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(FILES, ("qcow2",)),
    "lvm": ("qcow2",),
    "btrfs": ("raw", "qcow2"),
}
# These kinds can only roll back to the newest snapshot.
_NEWEST_ONLY = frozenset("zfspool zfs lvm".split())


def disks_of(
    drives: Mapping[str, Mapping[str, str]], kinds: Mapping[str, str]
) -> tuple[SnapshotDisk, ...]:
    """Return the disks of `Kind.disks_in`; `kinds` maps storages to plugin types."""
    found: list[SnapshotDisk] = []
    for slot, drive in sorted(drives.items()):
        volume = drive.get("file", "none")
        if volume == "none":
            continue
        storage, colon, _name = volume.partition(":")
        if not colon:  # a device or file by its path
            storage = ""
        found.append(
            SnapshotDisk(
                slot=slot,
                volume=volume,
                storage=storage,
                kind=kinds.get(storage, ""),
                format=_format(volume),
                size=read_size(drive.get("size")),
            )
        )
    return tuple(found)


def can_snapshot(disk: SnapshotDisk) -> bool | None:
    """Return whether PVE can take snapshots of a disk, or None for an unknown kind of storage."""
    if not disk.storage:
        return False  # a device or file by its path
    if disk.kind in _ALWAYS:
        return True
    if disk.kind in _NEVER:
        return False
    formats = _FORMATS.get(disk.kind)
    return None if formats is None else disk.format in formats


def newest_only(disk: SnapshotDisk) -> bool:
    """Return whether a disk can only roll back to its newest snapshot."""
    if disk.kind in _NEWEST_ONLY:
        return True
    return disk.chained and disk.format == "qcow2"


def require_snapshots(vm: SnapshotVm, has_snapshots: bool) -> None:
    """Raise NotSupported if PVE cannot take snapshots of the VM."""
    if not has_snapshots:
        raise no_snapshots(vm)


def no_snapshots(vm: SnapshotVm) -> NotSupported:
    """Return the error for a VM that PVE cannot take snapshots of, with the disks that prevent it.

    The error lists the disks that certainly prevent it, or else the disks that may, or else all.
    """
    disks: dict[bool | None, list[SnapshotDisk]] = {False: [], None: [], True: []}
    for disk in vm.disks:
        disks[can_snapshot(disk)].append(disk)
    causes = disks[False] or disks[None] or list(vm.disks)
    listed = "; ".join(_label(disk) for disk in causes)
    formats = "qcow2 in files, LVM-thin, ZFS, Ceph, BTRFS"
    return NotSupported(
        f"Could not take a snapshot of {vm.label}: its storage cannot take snapshots of {listed}",
        f"Move the disks to a storage and format that can ({formats})",
        "no snapshots",
        details={
            "disks": [disk.slot for disk in causes],
            "storages": sorted({disk.storage for disk in causes}),
        },
    )


def require_state_room(cluster: ClusterState, vm: SnapshotVm) -> None:
    """Raise QuotaExceeded if the storage has no room for the memory of a VM."""
    if vm.node not in cluster.nodes:
        return
    needs = PlacementNeeds(room={vm.state_storage: vm.state_bytes})
    reason = why_no_room(cluster, vm.node, needs, PlacementRules())
    if reason is None:
        return
    raise QuotaExceeded(
        f"Could not take a snapshot of {vm.label} with its memory: {reason} (twice the memory and "
        "500 MiB)",
        "Take it without vmstate, make room, or set vmstatestorage of the VM with qm set",
        "no room",
        details={"node": vm.node, "storages": [vm.state_storage]},
    )


def would_be_lost(vm: SnapshotVm, name: str, newer: Iterable[Snapshot]) -> Conflict:
    """Return the error for a rollback that would delete newer snapshots."""
    lost = [one.name for one in newer]
    causes = [disk for disk in vm.disks if newest_only(disk)]
    listed = "; ".join(_label(disk) for disk in causes)
    reason = f"because a storage can only go back to the newest one: {listed}"
    return Conflict(
        f"{vm.label} was not rolled back to '{name}': newer snapshots would be lost: "
        f"{', '.join(lost)}, {reason}",
        "Set force=true to delete them first, or roll back to the newest one",
        "newer snapshots",
        details={"snapshots": lost, "disks": [disk.slot for disk in causes]},
    )


def _format(volume: str) -> str:
    """Return the format in a volume's name; a volume without a file extension is raw."""
    filename = volume.rpartition("/")[2]
    ending = filename.rpartition(".")[2].lower()
    return ending if ending in ("qcow2", "vmdk", "raw") else "raw"


def _label(disk: SnapshotDisk) -> str:
    place = "no storage"
    if disk.storage:
        kind = disk.kind or "unknown kind"
        place = f"storage {disk.storage} ({kind})"
    return f"{disk.slot}, {disk.format} on {place}"
