# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read one sample of a site, and the tasks since the last one. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..._foundation.api.access.privileges import Privileges
from ..._foundation.cluster.drill.copies import without_copies
from ..._foundation.cluster.state import CREATION_LOCKS, ClusterState, VmRow, cluster_state_of
from ..._foundation.cluster.storages.contents import StorageContents, disk_sizes, read_contents
from ..._foundation.cluster.tenant import tenant_of
from ..._foundation.core.errors import FleetError, PermissionDenied
from ..._guests.kinds.words import TYPES, contents_of, kind_name
from ..tasks.read import MAX_TASKS, TaskQuery, read_removals, read_tasks
from ..tasks.row import RUNNING, TaskRow, removals_of
from .archives import archives_of, place_of
from .model import ArchiveUse, GuestUse, Sample

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

# Seconds by which the clocks of nodes may differ, and in which a removal still matters.
_OVERLAP = 300
# The least tasks of a full list (pve-common: RESTEnvironment.pm, active_workers).
_FULL = 500
_NEEDED = (
    ("/vms", "VM.Audit", "guests"),
    ("/storage", "Datastore.Audit", "storages"),
    ("/nodes", "Sys.Audit", "tasks of other users"),
)


@dataclass
class SiteTasks:
    """The tasks of all nodes. `lost` are the nodes whose tasks are not known, with the reason."""

    ended: list[TaskRow] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)
    noted: set[str] = field(default_factory=set)
    oldest: int = 0


def read_sample(
    client: Client, before: Sample | None, prefix: str
) -> tuple[Sample, list[TaskRow], dict[str, str]]:
    """Return a sample, the tasks that ended since the last one, and the nodes without tasks.

    Two requests for each node, one for each storage with disks or backups, on each node if it is not
    shared, and two more. The tasks are read first: a guest that a known task removed cannot be in the
    later listing. Raises FleetError if the site cannot be read, or not completely by this login.
    """
    privileges = client.get("access", "permissions", attempted="Could not read the privileges")
    _require_privileges(Privileges(privileges))
    taken = int(client.clock.time())
    nodes = client.get("nodes", attempted="Could not read the nodes")
    tasks = _read_tasks(client, [row["node"] for row in nodes], before, taken)
    rows = client.get("cluster", "resources", attempted="Could not read the cluster")
    cluster = without_copies(cluster_state_of(rows, TYPES))
    fresh = [task for task in tasks.ended if before is None or task.upid not in before.seen]
    disks = [read_contents(client, cluster, name) for name in contents_of(cluster.vms.values())]
    guests, unknown = _guests(cluster, disks, prefix)
    archives, unread = _archives(client, cluster, before, guests, fresh)
    since = min([taken, tasks.oldest]) - _OVERLAP
    recent = {task.upid for task in tasks.ended if task.started >= since}
    sample = Sample(
        time=taken,
        guests=guests,
        unknown=unknown,
        archives=archives,
        unread=unread,
        tasks_since=since,
        seen=frozenset(recent),
        noted=frozenset(tasks.noted),
    )
    return sample, fresh, tasks.lost


def _require_privileges(held: Privileges) -> None:
    """Raise PermissionDenied for a login from which PVE hides a part."""
    for path, privilege, hidden in _NEEDED:
        if privilege not in held.below(path):
            raise PermissionDenied(
                f"Could not measure the use: the login lacks {privilege} on {path}, so {hidden} "
                "are hidden from it",
                "Grant it",
                privilege,
            )


def _read_tasks(
    client: Client, nodes: Iterable[str], before: Sample | None, taken: int
) -> SiteTasks:
    """Return the tasks since the last sample; without one, no task matters."""
    since = taken - _OVERLAP if before is None else before.tasks_since
    found = SiteTasks(oldest=taken)
    answers = read_tasks(client, nodes, TaskQuery(limit=MAX_TASKS, since=since))
    for node, answer in answers.items():
        if isinstance(answer, FleetError):
            found.lost[node] = answer.message
            continue
        found.ended += [task for task in answer if task.status != RUNNING]
        running = [task.started for task in answer if task.status == RUNNING]
        found.oldest = min([found.oldest, *running])
        if answer:
            found.noted.add(node)
    readable = [node for node in answers if node not in found.lost]
    earlier = read_tasks(client, readable, TaskQuery(limit=1, until=since - 1))
    for node in readable:
        if earlier[node]:
            found.noted.add(node)
            continue
        listed = answers[node]
        is_full = not isinstance(listed, FleetError) and len(listed) >= _FULL
        was_noted = before is not None and node in before.noted
        if before is not None and (is_full or (was_noted and not listed)):
            found.lost[node] = "its list of tasks no longer reaches back to the last sample"
    return found


def _guests(
    cluster: ClusterState, disks: Iterable[StorageContents], prefix: str
) -> tuple[dict[int, GuestUse], dict[int, str]]:
    """Return the guests with their sizes, and the guests whose size is not known, with the reason."""
    contents = list(disks)
    is_complete = not any(found.unread for found in contents)
    sizes: dict[int, int] = {}
    counts: dict[int, int] = {}
    for found in contents:
        for vmid, size in disk_sizes(found).items():
            sizes[vmid] = sizes.get(vmid, 0) + size
        for _row, volume in found.volumes:
            vmid = int(volume.get("vmid") or 0)
            counts[vmid] = counts.get(vmid, 0) + 1
    guests: dict[int, GuestUse] = {}
    unknown: dict[int, str] = {}
    for vmid, row in cluster.vms.items():
        reason = _why_unknown(row, cluster)
        if reason:
            unknown[vmid] = reason
            continue
        tenant, _why = tenant_of(row.tags, prefix)
        disk = max(row.disk, sizes.get(vmid, 0)) if is_complete else None
        guests[vmid] = GuestUse(
            kind=kind_name(row.type),
            vmid=vmid,
            name=row.own_name,
            tenant=tenant or "",
            node=row.node,
            cores=0 if row.template else row.cores,
            memory=0 if row.template else row.memory,
            disk=disk,
            disks=counts.get(vmid, 0),
        )
    return guests, unknown


def _why_unknown(row: VmRow, cluster: ClusterState) -> str:
    """Return why the size of a guest in the listing is not known, or an empty text."""
    node = cluster.nodes.get(row.node)
    if node is None or not node.online:
        return f"node {row.node} is offline"
    if row.lock in CREATION_LOCKS:
        return "it is being created"
    if not row.memory or not row.cores:
        return "the listing does not have its size yet"
    return ""


def _archives(
    client: Client,
    cluster: ClusterState,
    before: Sample | None,
    guests: Mapping[int, GuestUse],
    tasks: Iterable[TaskRow],
) -> tuple[dict[str, ArchiveUse], frozenset[str]]:
    """Return the backups, and the storages whose backups could not be listed. Their last known
    backups are kept, for their tenants.
    """
    found = read_contents(client, cluster, "backup")
    removals = removals_of(tasks)
    if before is None and found.volumes:
        removals = read_removals(
            client, [name for name, row in cluster.nodes.items() if row.online]
        )
    archives = archives_of(found.volumes, before, guests, removals)
    unread = frozenset(place_of(row) for row, _error in found.unread)
    for volid, archive in (before.archives if before is not None else {}).items():
        if archive.storage in unread:
            archives.setdefault(volid, archive)
    return archives, unread
