# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Thin and thick disks: compares the allocation of a storage class with its storage (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.storages.allocation import (
    ALWAYS,
    BY_PREALLOCATION,
    BY_SPARSE,
    allocation_of,
)
from ...._foundation.core.errors import NotSupported
from ...kinds.hardware import DesiredGuest, Disk

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
    kinds = {row.storage: row.kind for row in cluster.storages}
    volumes = desired.guest.kind.volumes_in(target)
    for disk in filter(_has_allocation, desired.hardware.disks):
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
        attempted=f"{label} could not be planned",
        answer=(
            f"its storage class asks for {disk.allocation}, and storage {storage} ({kind})"
            f" {words}{remedy}"
        ),
        next_step=(
            f"Choose a storage that allocates {disk.allocation}, or leave type out of the storage"
            " class"
        ),
        reason="allocation",
    )
