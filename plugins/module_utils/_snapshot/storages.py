# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What storages do with snapshots (pure). The facts are those of the storage plugins of pve-storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._core.errors import Conflict, NotSupported
from .._vm.actual import drives, is_disk, storage_of
from .model import Disk, Machine, Snapshot

FILES = frozenset("dir nfs cifs cephfs glusterfs".split())
_ALWAYS = frozenset("lvmthin zfspool zfs rbd".split())
_NEVER = frozenset("iscsi iscsidirect esxi pbs".split())
# These go back to their newest snapshot only.
_NEWEST_ONLY = frozenset("zfspool zfs lvm".split())


def disks_of(
    config: Mapping[str, str], kinds: Mapping[str, str], chained: frozenset[str] = frozenset()
) -> tuple[Disk, ...]:
    """Return the disks of a configuration. `kinds` maps storages to plugin types, `chained` keep chains of volumes."""
    found: list[Disk] = []
    for slot, drive in sorted(drives(config).items()):
        storage = storage_of(drive)
        if not is_disk(drive) or drive.get("file") in (None, "none"):
            continue
        volume = drive["file"]
        kind = kinds.get(storage or "", "")
        found.append(Disk(slot, volume, storage or "", kind, _format(volume), storage in chained))
    return tuple(found)


def can_snapshot(disk: Disk) -> bool | None:
    """Return whether PVE can take snapshots of a disk; None where the kind of storage is not known here."""
    if not disk.storage:
        return False  # a device or file by its path
    if disk.kind in _ALWAYS:
        return True
    if disk.kind in _NEVER:
        return False
    if disk.kind == "btrfs":
        return disk.format in ("raw", "qcow2")
    if disk.kind == "lvm" or disk.kind in FILES:
        return disk.format == "qcow2"
    return None


def newest_only(disk: Disk) -> bool:
    """Return whether a disk can only go back to its newest snapshot, so that newer ones must be deleted first."""
    return disk.kind in _NEWEST_ONLY or (disk.chained and disk.format == "qcow2")


def no_snapshots(machine: Machine) -> NotSupported:
    """Return the error for a VM of which PVE says that it cannot be snapshotted, with the disks that are to blame."""
    blamed = [disk for disk in machine.disks if can_snapshot(disk) is False]
    blamed = blamed or [disk for disk in machine.disks if can_snapshot(disk) is None] or list(machine.disks)
    return NotSupported(
        attempted=f"Could not take a snapshot of {machine.label}",
        answer="its storage cannot take snapshots of " + "; ".join(_said(disk) for disk in blamed),
        next_step="Move the disks to a storage and format that can (qcow2 in files, LVM-thin, ZFS, Ceph, BTRFS)",
        reason="no snapshots",
        details={"disks": [disk.slot for disk in blamed], "storages": sorted({disk.storage for disk in blamed})},
    )


def would_be_lost(machine: Machine, name: str, newer: Iterable[Snapshot]) -> Conflict:
    """Return the error for a rollback that would cost newer snapshots."""
    lost = [one.name for one in newer]
    stuck = [disk for disk in machine.disks if newest_only(disk)]
    return Conflict(
        attempted=f"{machine.label} was not rolled back to '{name}'",
        answer=f"newer snapshots would be lost: {', '.join(lost)}, because a storage can only go back to the newest "
        f"one: {'; '.join(_said(disk) for disk in stuck)}",
        next_step="Set force=true to delete them first, or roll back to the newest one",
        reason="newer snapshots",
        details={"snapshots": lost, "disks": [disk.slot for disk in stuck]},
    )


def _format(volume: str) -> str:
    """Return the format that a volume's name tells: files and volumes of LVM have an ending, all else is raw."""
    ending = volume.rpartition("/")[2].rpartition(".")[2].lower()
    return ending if ending in ("qcow2", "vmdk", "raw") else "raw"


def _said(disk: Disk) -> str:
    where = f"storage {disk.storage} ({disk.kind or 'unknown kind'})" if disk.storage else "no storage"
    return f"{disk.slot}, {disk.format} on {where}"
