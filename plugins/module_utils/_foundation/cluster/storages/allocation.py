# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a storage allocates new disks: whole (thick), or as the guest writes (thin)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..state import ClusterState, StorageRow

if TYPE_CHECKING:
    from ...api.client import Client

THIN, THICK = "thin", "thick"

# By kind of storage (pve-storage: LVMPlugin.pm, LvmThinPlugin.pm, RBDPlugin.pm).
ALWAYS: Mapping[str, str] = {"lvm": THICK, "lvmthin": THIN, "rbd": THIN}
# Kinds for which `sparse` decides (ZFSPoolPlugin.pm, zfs_create_zvol; ZFSPlugin.pm).
BY_SPARSE = frozenset(("zfspool", "zfs"))
# Kinds with files: `preallocation` decides (Plugin.pm, preallocation_cmd_opt).
BY_PREALLOCATION = frozenset(("dir", "nfs", "cifs", "btrfs"))
_PREALLOCATED_FORMATS = frozenset(("raw", "qcow2"))

# Kinds of storages that make base volumes (pve-storage: volume_has_feature, template).
_BASE_KINDS = frozenset("dir nfs cifs cephfs glusterfs btrfs lvmthin rbd zfspool zfs".split())


def allocation_of(
    kind: str, settings: Mapping[str, Any], disk_format: str | None, *, content: str = "images"
) -> str | None:
    """Return how a storage allocates a new disk of this content, thin or thick, or None if that is
    not known (pure).

    On ZFS, the volumes of containers are file systems, which reserve nothing (pve-container:
    LXC.pm, alloc_disk; pve-storage: ZFSPoolPlugin.pm, zfs_create_subvol).
    """
    if kind in ALWAYS:
        return ALWAYS[kind]
    if kind == "zfspool" and content == "rootdir":
        return THIN
    if kind in BY_SPARSE:
        return THIN if str(settings.get("sparse")) == "1" else THICK
    if kind in BY_PREALLOCATION:
        is_full = settings.get("preallocation") in ("falloc", "full")
        return THICK if is_full and (disk_format or "raw") in _PREALLOCATED_FORMATS else THIN
    return None


def with_allocations(
    client: Client, cluster: ClusterState, room: Mapping[str, int], content: str = "images"
) -> ClusterState:
    """Return the cluster state with the allocation of storages, if new bytes depend on that.

    `room` are the new bytes of this content by storage. One request if they exceed the free bytes
    of a storage whose kind does not decide, otherwise no request.
    """
    undecided = [row for row in cluster.storages if _is_undecided(row, room.get(row.storage, 0))]
    if not undecided:
        return cluster
    answer = client.get("storage")
    definitions = {str(definition["storage"]): definition for definition in answer}
    rows: list[StorageRow] = []
    for row in cluster.storages:
        definition = definitions.get(row.storage)
        if definition is not None and row.kind not in ALWAYS:
            thick = allocation_of(row.kind, definition, None, content=content) == THICK
            row = replace(row, thick=thick)
        rows.append(row)
    return replace(cluster, storages=tuple(rows))


def _is_undecided(row: StorageRow, size: int) -> bool:
    """Return whether a storage has room for new bytes only if it is thin, and this is unknown."""
    is_known = row.thick is not None
    if is_known or not row.total:
        return False
    if row.kind not in BY_SPARSE | BY_PREALLOCATION:
        return False
    wanted = size + row.planned
    free = row.total - row.used
    return size > 0 and wanted > free


def base_storages(cluster: ClusterState) -> frozenset[str]:
    """Return the storages on which the disks of a template become base volumes (pure)."""
    return frozenset(row.storage for row in cluster.storages if row.kind in _BASE_KINDS)
