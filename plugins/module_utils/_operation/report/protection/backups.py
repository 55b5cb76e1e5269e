# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The backups of guests on the storages of the cluster: how many, and how old the newest is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ...._foundation.api.access.privileges import Privileges
from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.cluster.storages.contents import StorageContents, read_contents
from ...._foundation.core.errors import FleetError, PermissionDenied
from ...._guests.kinds.words import VM, label_of
from ...tasks.read import read_removals
from .model import CopySummary

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_VISIBLE = "Datastore.Audit"
_ALL = "Datastore.Allocate"
_ON_STORAGE, _ON_VM = "Datastore.AllocateSpace", "VM.Backup"


def read_backups(
    client: Client, cluster: ClusterState, rows: Iterable[VmRow], held: Privileges
) -> dict[int, CopySummary | FleetError]:
    """Return the backups of each guest by VMID, or the error if they are unknown.

    One request for each storage with backups, on each node if it is not shared. If there are
    backups, two more for each node that is online, about removed guests.
    """
    contents = read_contents(client, cluster, "backup")
    removals: Mapping[int, int] = {}
    if contents.volumes:
        online = [name for name, node in cluster.nodes.items() if node.online]
        removals = read_removals(client, online)
    found: dict[int, CopySummary | FleetError] = {}
    times_by_kind: dict[str, dict[int, list[int]]] = {}
    for row in rows:
        if row.type not in times_by_kind:
            times_by_kind[row.type] = times_of(contents, removals, row.type)
        times = times_by_kind[row.type].get(row.vmid, [])
        found[row.vmid] = find_copies(row, times, contents, held, cluster)
    return found


def times_of(
    contents: StorageContents, removals: Mapping[int, int], pve_type: str
) -> dict[int, list[int]]:
    """Return the times of the backups of each guest of a kind, by VMID (pure).

    VMIDs are reused: backups that are older than the last removal of a VMID are left out.
    """
    times_by_vmid: dict[int, list[int]] = {}
    for _row, volume in contents.volumes:
        if volume.get("subtype", VM.type) != pve_type or volume.get("vmid") is None:
            continue
        vmid = int(volume["vmid"])
        when = int(volume.get("ctime") or 0)
        if when > removals.get(vmid, -1):
            times_by_vmid.setdefault(vmid, []).append(when)
    return times_by_vmid


def find_copies(
    row: VmRow, times: list[int], contents: StorageContents, held: Privileges, cluster: ClusterState
) -> CopySummary | FleetError:
    """Return the backups of a guest, or an error if none is visible and some may be hidden (pure).

    `times` are the times of the visible backups. The result has an uncertainty if
    others may be hidden.
    """
    uncertainty = _find_uncertainty(row, contents, held, cluster)
    if uncertainty is not None and not times:
        return uncertainty
    return CopySummary(len(times), max(times, default=0), uncertainty)


def _find_uncertainty(
    guest: VmRow, contents: StorageContents, held: Privileges, cluster: ClusterState
) -> FleetError | None:
    """Return why backups of a guest may be missing among the found ones, or None."""
    attempted = f"Could not find out when {label_of(guest)} was backed up last"
    for _row, error in contents.unread:
        return error.on(attempted=attempted)
    missing = missing_privilege(guest.vmid, held, cluster)
    if not missing:
        return None
    return PermissionDenied(
        attempted=attempted,
        answer=f"the caller lacks {missing}",
        next_step="Grant it, or leave the backups out",
        reason=missing,
    )


def missing_privilege(vmid: int, held: Privileges, cluster: ClusterState) -> str:
    """Return a privilege without which backups of a guest are hidden, or an empty text (pure).

    PVE omits volumes from a listing if the caller has no right to use them (pve-storage:
    PVE/API2/Storage/Content.pm and PVE/Storage.pm, check_volume_access).
    """
    if _VISIBLE not in held.below("/storage"):
        return f"{_VISIBLE} on /storage"
    for row in cluster.storages:
        path = f"/storage/{row.storage}"
        on_storage = held.on(path)
        if "backup" not in row.content or _ALL in on_storage:
            continue
        if _ON_STORAGE not in on_storage:
            return f"{_ON_STORAGE} on {path}"
        if _ON_VM not in held.on(f"/vms/{vmid}"):
            return f"{_ON_VM} on /vms/{vmid}"
    return ""
