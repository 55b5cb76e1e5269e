# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory and storage that a plan needs, from the configurations before and after it, and how
storages allocate its disks (pure).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.storages.allocation import (
    ALWAYS,
    BY_PREALLOCATION,
    BY_SPARSE,
    allocation_of,
)
from ...._foundation.core.errors import NotSupported
from ...._foundation.core.quantities import read_size
from ...kinds.hardware import DesiredGuest, Disk
from ...kinds.kind import Kind

# The names of volumes in a planned configuration, until PVE has created them.
_PLANNED = frozenset(("new", "moved"))


@dataclass(frozen=True)
class Capacity:
    """The room in bytes that a guest needs on its node once its plan is carried out."""

    node: str
    memory: int = 0
    storages: Mapping[str, int] = field(default_factory=dict)


def new_bytes(
    kind: Kind,
    before: Mapping[str, str],
    after: Mapping[str, str],
    images: Mapping[str, int] | None = None,
    *,
    copied: bool = False,
) -> dict[str, int]:
    """Return the bytes of new volumes and of growth, by storage.

    `images` are the sizes of imported images by slot. With `copied` all disks are created, as in a
    full clone.
    """
    found: dict[str, int] = {}
    known = kind.disks_in(before)
    for slot, drive in kind.disks_in(after).items():
        storage, colon, _name = drive.get("file", "").partition(":")
        size = read_size(drive.get("size"))
        if not size and images and _is_planned(drive):
            size = images.get(slot)
        if not colon or not size:
            continue
        is_counted = copied or _is_planned(drive)
        if not is_counted:
            # a present size that the configuration does not show counts as the same
            size -= read_size(known.get(slot, {}).get("size")) or size
        if size > 0:
            so_far = found.get(storage, 0)
            found[storage] = so_far + size
    return found


def _is_planned(drive: Mapping[str, str]) -> bool:
    """Return whether PVE has not created the volume of a drive yet."""
    _storage, _colon, volume = drive["file"].rpartition(":")
    return volume in _PLANNED


def moved_bytes(kind: Kind, config: Mapping[str, str], shared: Collection[str]) -> dict[str, int]:
    """Return the bytes of the disks that are copied when a guest leaves its node, by storage."""
    copied = new_bytes(kind, {}, config, copied=True)
    for storage in shared:
        copied.pop(storage, None)
    return copied


def added(*several: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of bytes by storage."""
    total: dict[str, int] = {}
    for bytes_by_storage in several:
        for storage, size in bytes_by_storage.items():
            total[storage] = total.get(storage, 0) + size
    return total


# The definitions of storages, by name (GET /storage).
Definitions: TypeAlias = Mapping[str, Mapping[str, Any]]

_REMEDIES: Mapping[str, str] = {
    **dict.fromkeys(BY_SPARSE, "its option sparse decides that, for disks of VMs"),
    **dict.fromkeys(BY_PREALLOCATION, "its option preallocation decides that, for raw and qcow2"),
}


def needs_definitions(
    desired: DesiredGuest, target: Mapping[str, str], cluster: ClusterState
) -> bool:
    """Return whether the kind of a storage does not say whether its disks are thin or thick."""
    requested = _requested_allocations(desired, target, cluster)
    return any(kind not in ALWAYS for _disk, _storage, kind in requested)


def require_allocation(
    desired: DesiredGuest,
    target: Mapping[str, str],
    cluster: ClusterState,
    definitions: Definitions,
) -> None:
    """Raise NotSupported for a disk whose storage does not allocate as its storage class requires.

    `target` is the configuration of the guest, or of its template. The storage decides between thin
    and thick: no request can choose it for a single disk (qemu-server: Qemu.pm, create_disks;
    pve-container: LXC.pm, alloc_disk).
    """
    content = desired.guest.kind.content
    for disk, storage, kind in _requested_allocations(desired, target, cluster):
        definition = definitions.get(storage, {})
        actual = allocation_of(kind, definition, disk.format, content=content)
        if actual != disk.allocation:
            raise _other_allocation(
                f"{disk.slot} of {desired.guest.label}", disk, (storage, kind), actual
            )


def _requested_allocations(
    desired: DesiredGuest, target: Mapping[str, str], cluster: ClusterState
) -> Iterator[tuple[Disk, str, str]]:
    """Yield the disks that must be thin or thick, each with its storage and the storage's kind.

    Another check refuses a storage that does not exist.
    """
    disks = list(filter(_has_allocation, desired.hardware.disks))
    if not disks:
        return
    kinds = {row.storage: row.kind for row in cluster.storages}
    volumes = desired.guest.kind.volumes_in(target)
    for disk in disks:
        present = _storage_of(volumes.get(disk.slot, ""))
        storage = disk.storage or present or desired.hardware.default_storage
        kind = kinds.get(storage)
        if kind is not None:
            yield disk, storage, kind


def _storage_of(volume: str) -> str:
    """Return the storage of a volume, an empty text for a path of the node."""
    storage, colon, _name = volume.partition(":")
    return storage if colon else ""


def _has_allocation(disk: Disk) -> bool:
    if disk.state != "present" or disk.is_cdrom:
        return False
    return bool(disk.allocation)


def _other_allocation(
    label: str, disk: Disk, place: tuple[str, str], actual: str | None
) -> NotSupported:
    storage, kind = place
    words = "does not tell how it allocates disks"
    if actual:
        words = f"allocates disks {actual}"
    remedy = f"; {_REMEDIES[kind]}" if kind in _REMEDIES else ""
    return NotSupported(
        f"{label} could not be planned: its storage class asks for {disk.allocation}, and storage "
        f"{storage} ({kind}) {words}{remedy}",
        (
            f"Choose a storage that allocates {disk.allocation}, or leave type out of the storage"
            " class"
        ),
        "allocation",
    )
