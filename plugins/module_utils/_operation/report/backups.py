# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the backups and the snapshots of guests for reports and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._foundation.api.access.privileges import Privileges
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.cluster.storages.contents import StorageContents, read_contents
from ..._foundation.core.errors import FleetError, NodeUnhealthy, PermissionDenied
from ..._foundation.core.parallel import side_by_side
from ..._guests.kinds.words import VM, label_of
from ..._protection.backup.read import missing_for_archives
from ..._protection.snapshot.read import tree_of
from ..tasks.read import read_removals

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


_VISIBLE = "Datastore.Audit"
# A node that does not answer must not hold up the others for long.
_TRIES = 2


@dataclass(frozen=True)
class CopySummary:
    """Snapshots or backups of one VM: their number, and the time of the newest.

    The time is in seconds since the epoch, 0 without any. `uncertainty` is the reason why
    more or newer ones may exist.
    """

    number: int
    newest: int
    uncertainty: FleetError | None = None


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
    missing = _missing_privilege(guest.vmid, held, cluster)
    if not missing:
        return None
    return PermissionDenied(
        f"{attempted}: the caller lacks {missing}", "Grant it, or leave the backups out", missing
    )


def _missing_privilege(vmid: int, held: Privileges, cluster: ClusterState) -> str:
    """Return a privilege without which backups of a guest are hidden, or an empty text (pure).

    Without Datastore.Audit, a storage is missing in the listing.
    """
    if _VISIBLE not in held.below("/storage"):
        return f"{_VISIBLE} on /storage"
    for row in cluster.storages:
        if "backup" in row.content:
            privilege, path = missing_for_archives(row.storage, vmid, held)
            if privilege:
                return f"{privilege} on {path}"
    return ""


def read_snapshots(
    client: Client, cluster: ClusterState, rows: Iterable[VmRow]
) -> dict[int, CopySummary | FleetError]:
    """Return the snapshots of each guest by VMID, or the error if they are unknown.

    One request for each guest, none for a guest on an offline node.
    """
    chosen = list(rows)

    def read(row: VmRow) -> CopySummary | FleetError:
        node = cluster.nodes.get(row.node)
        if node is not None and not node.online:
            return _offline(row)
        attempted = f"Could not read the snapshots of {label_of(row)}"
        try:
            answer = client.get(*row.path, "snapshot", attempted=attempted, tries=_TRIES)
        except FleetError as error:
            return error
        return copies_of(answer)

    answers = side_by_side(read, chosen)
    return {row.vmid: answer for row, answer in zip(chosen, answers, strict=True)}


def copies_of(answer: Iterable[Mapping[str, Any]]) -> CopySummary:
    """Return the snapshots that are complete, from C(GET .../snapshot) (pure)."""
    snapshots = tree_of(answer).snapshots.values()
    times = [snapshot.time for snapshot in snapshots if snapshot.state is None]
    return CopySummary(len(times), max(times, default=0))


def _offline(row: VmRow) -> NodeUnhealthy:
    return NodeUnhealthy(
        f"Could not read the snapshots of {label_of(row)}: node {row.node} is offline",
        "Bring the node back",
        "node offline",
    )
