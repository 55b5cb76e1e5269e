# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The contents of a cluster's storages: volumes of one kind, such as disk images or backups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.errors import FleetError, NetworkError, NodeUnhealthy
from ...core.parallel import side_by_side
from ..state import ClusterState, StorageRow

if TYPE_CHECKING:
    from ...api.client import Client

# The errors of a node or a storage that is down. Another node may still list a shared storage.
_DOWN = (NetworkError, NodeUnhealthy)


@dataclass(frozen=True)
class StorageContents:
    """Volumes as the API lists them, each with its storage, and storages that could not be read."""

    volumes: tuple[tuple[StorageRow, Mapping[str, Any]], ...]
    unread: tuple[tuple[StorageRow, FleetError], ...]


def read_contents(client: Client, cluster: ClusterState, content: str) -> StorageContents:
    """Return the volumes of one kind of content that the caller may see.

    One request for each storage with that content, and for each node if it is not shared; the
    requests run in parallel.
    """
    places: dict[tuple[str, str], list[StorageRow]] = {}
    for row in cluster.storages:
        if content in row.content:
            places.setdefault((row.storage, row.place), []).append(row)

    def read(rows: list[StorageRow]) -> list[Mapping[str, Any]] | FleetError:
        """Return the volumes from the first node that lists them, or the last error."""
        failure: FleetError | None = None
        for row in rows:
            why = _why_unreadable(row, cluster)
            if why:
                failure = failure or NodeUnhealthy(
                    f"Could not list storage {row.storage}: {why}", "Repair it", "storage down"
                )
                continue
            path = ("nodes", row.node, "storage", row.storage, "content")
            attempted = f"Could not list storage {row.storage} on node {row.node}"
            try:
                answer: list[Mapping[str, Any]] = client.get(
                    *path, content=content, attempted=attempted
                )
            except FleetError as error:
                failure = error
                if isinstance(error, _DOWN):
                    continue
                break
            return answer
        return failure or FleetError()

    volumes: list[tuple[StorageRow, Mapping[str, Any]]] = []
    unread: list[tuple[StorageRow, FleetError]] = []
    answers = side_by_side(read, list(places.values()))
    for rows, answer in zip(places.values(), answers, strict=True):
        if isinstance(answer, FleetError):
            unread.append((rows[0], answer))
        else:
            volumes += [(rows[0], volume) for volume in answer]
    return StorageContents(tuple(volumes), tuple(unread))


def read_volumes(
    client: Client, cluster: ClusterState, contents: Iterable[str] = ("images",)
) -> dict[int, int]:
    """Return the bytes of all disks by VMID, without the disks on nodes and storages that are down.

    `contents` are the kinds of content with disks: a storage lists the disks of VMs and of
    containers separately (pve-storage: PVE/Storage/Plugin.pm, list_volumes). Each kind needs the
    requests of `read_contents`. Raises FleetError if a read is not allowed.
    """
    sizes: dict[int, int] = {}
    for content in contents:
        found = read_contents(client, cluster, content)
        require_allowed(found)
        sizes |= disk_sizes(found)
    return sizes


def require_allowed(found: StorageContents) -> None:
    """Raise FleetError for a read that is not allowed; nodes and storages may be down (pure)."""
    for _row, error in found.unread:
        if not isinstance(error, _DOWN):
            raise error


def disk_sizes(found: StorageContents) -> dict[int, int]:
    """Return the bytes of all disks by VMID, with detached disks, without cloud-init drives."""
    sizes: dict[str, tuple[int, int]] = {}
    for row, volume in found.volumes:
        volid = volume["volid"]
        if volume.get("vmid") and "cloudinit" not in volid:
            sizes[f"{row.place}/{volid}"] = (int(volume["vmid"]), _bytes_of(volume))
    used: dict[int, int] = {}
    for vmid, size in sizes.values():
        used[vmid] = used.get(vmid, 0) + size
    return used


def _why_unreadable(row: StorageRow, cluster: ClusterState) -> str:
    node = cluster.nodes.get(row.node)
    if node is not None and not node.online:
        return f"node {row.node} is offline"
    if not row.available:
        return f"the storage is not available on node {row.node}"
    return ""


def _bytes_of(volume: Mapping[str, Any]) -> int:
    """Return the size of a volume; for an inactive qcow2 volume on LVM it is approximate.

    Source: pve-storage, LVMPlugin.pm, list_images.
    """
    return int(volume.get("size") or volume.get("approximate-size") or 0)
