# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a new disk takes all its room at once (thick) or as it is written (thin): PVE decides
that by the storage.

No request of PVE says it for a single disk (qemu-server: Qemu.pm, create_disks), so a storage class
that asks for one of them is held against its storage before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._cluster.allocation import ALWAYS, BY_PREALLOCATION, BY_SPARSE, allocation_of
from ..._cluster.state import ClusterState
from ..._core.errors import NotSupported
from ..config.actual import drives, storage_of
from ..model import Desired, Disk

if TYPE_CHECKING:
    from ..._api.client import Client

_REMEDIES: Mapping[str, str] = {
    **dict.fromkeys(BY_SPARSE, "its option sparse decides that"),
    **dict.fromkeys(BY_PREALLOCATION, "its option preallocation decides that, for raw and qcow2"),
}

# Kinds of storages that make base volumes (pve-storage: volume_has_feature, template).
_BASE_KINDS = frozenset("dir nfs cifs cephfs glusterfs btrfs lvmthin rbd zfspool zfs".split())


def base_storages(cluster: ClusterState) -> frozenset[str]:
    """Return the storages on which the disks of a template become base volumes."""
    return frozenset(row.storage for row in cluster.storages if row.kind in _BASE_KINDS)


def check_allocation(
    client: Client, desired: Desired, target: Mapping[str, str], cluster: ClusterState
) -> None:
    """Raise NotSupported for a disk whose storage class asks for what its storage does not do.

    `target` is the configuration that the VM has, or that of its template. The definitions of
    storages are read only where their kind does not tell.
    """
    kinds = {row.storage: row.kind for row in cluster.storages}
    found = drives(target)
    settings: dict[str, Mapping[str, Any]] = {}
    for disk in filter(_asks_for_allocation, desired.disks):
        drive = found.get(disk.slot, {})
        storage = disk.storage or storage_of(drive)
        if not storage:
            storage = desired.default_storage
        kind = kinds.get(storage)
        if kind is None:
            continue  # a storage that does not exist is refused by its name
        if kind not in ALWAYS and not settings:
            rows = client.get("storage")
            settings = {str(row["storage"]): row for row in rows}
        definition = settings.get(storage, {})
        actual = allocation_of(kind, definition, disk.format)
        if actual != disk.allocation:
            raise _refused(desired, disk, storage, kind, actual)


def _asks_for_allocation(disk: Disk) -> bool:
    if disk.state != "present" or disk.is_cdrom:
        return False
    return bool(disk.allocation)


def _refused(
    desired: Desired, disk: Disk, storage: str, kind: str, actual: str | None
) -> NotSupported:
    words = "does not tell how it allocates disks"
    if actual:
        words = f"allocates disks {actual}"
    remedy = ""
    if kind in _REMEDIES:
        remedy = f"; {_REMEDIES[kind]}"
    return NotSupported(
        attempted=f"Disk {disk.slot} of {desired.label} could not be planned",
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
