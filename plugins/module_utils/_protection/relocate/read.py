# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads both sides of a move. Decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.api.tasks import find_task, read_task_log
from ..._foundation.cluster.find.restoring import is_bare
from ..._foundation.cluster.find.visible import is_in_use, probe_vmid, require_visible
from ..._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state
from ..._foundation.core.clock import poll
from ..._foundation.core.errors import TaskTimeout, UnknownVm
from ..._guests.guest.live.read import read_wherever
from ..._guests.guest.registry import list_of
from ..._guests.kinds.kind import Kind
from ..._guests.kinds.model import Actual
from ..._guests.kinds.move import ONLINE, MoveRecord, record_of
from ..._infrastructure.datacenter.ha.checks import RULES_SINCE
from ..._operation.maintenance.read import read_active
from .archive import BACKUP_TASK, ArchivePlace, read_last_state
from .belongings import Belongings, SiteObjects, belongings_of, parse_belongings, sid_of
from .decide import SideState, is_by_archive

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_TUNNELS = ("qmtunnel", "vzmtunnel")
_COMPLETED = "migration status: completed"
_CA = "pve-root-ca.pem"
_IDENTITY = 16  # digits
_REMOVAL = 300  # seconds; the scheduler of a node works each minute
_LONGEST = 5.0  # seconds between two looks at a task of another run


@dataclass(frozen=True)
class BothSides:
    """A guest as both sites have it, None if one has not. `clusters` are the identities of both.
    `busy` is the UPID of a running task that moves or creates it. `handed_over` is the fact for
    `decide`. `here` and `there` are the objects of the source and of the target. `archived` is the
    archive with the last state of the source, or empty.
    """

    source: Actual | None
    target: Actual | None
    clusters: tuple[str, str]
    busy: str = ""
    handed_over: bool | None = None
    here: SiteObjects = SiteObjects()
    there: SiteObjects = SiteObjects()
    archived: str = ""

    @property
    def states(self) -> tuple[SideState, SideState]:
        """The states of the source and of the target."""
        own, other = self.clusters
        return state_of(self.source, own, self.here), state_of(self.target, other, self.there)


@dataclass(frozen=True)
class Lookup:
    """A guest that is read at a site: its VMID, 0 if it is not known to exist, its node and its
    pool, empty if the last listing lacks it. `cluster` is the identity of the site.
    """

    client: Client
    cluster: str
    vmid: int
    node: str = ""
    pool: str = ""


def read_identity(client: Client, listing: ClusterState) -> str:
    """Return the identity of a cluster: the fingerprint of its CA, which no other cluster has
    (pve-manager: API2/Certificates.pm, info). One request, which every login may send.
    """
    node = next((name for name, row in sorted(listing.nodes.items()) if row.online), "localhost")
    for row in client.get("nodes", node, "certificates", "info") or ():
        if row["filename"] == _CA:
            return str(row.get("fingerprint") or "").replace(":", "")[:_IDENTITY].lower()
    return ""


def state_of(actual: Actual | None, cluster: str, objects: SiteObjects) -> SideState:
    """Return the state of one side (pure)."""
    if actual is None:
        return SideState()
    is_empty = not actual.live.keys() - {"lock"} or is_bare(actual.live)
    power = "stopped" if actual.status == "hibernated" else actual.status
    managed = sid_of(actual.kind, actual.vmid) in objects.resources
    record = record_of(actual.target, actual.vmid, cluster)
    return SideState(power, actual.lock or "", record, is_empty, managed)


def read_objects(client: Client, *, rules: bool, jobs: bool, sid: str = "") -> SiteObjects:
    """Return the HA resources of a site, its HA rules, and its jobs; a request for each kind. The
    rules of a guest that is not an HA resource are not read if C(sid) names it.
    """
    resources = client.get("cluster", "ha", "resources") or ()
    has_rules = client.version() >= RULES_SINCE
    rules = rules and (not sid or any(row["sid"] == sid for row in resources))
    rows = client.get("cluster", "ha", "rules") or () if rules and has_rules else ()
    return SiteObjects(
        {str(row["sid"]): row for row in resources},
        {str(row["rule"]): row for row in rows},
        has_rules,
        {
            str(row["id"]): row
            for row in _replication_jobs(client, jobs)
            if not row.get("remove_job")
        },
        {str(row["id"]): row for row in (client.get("cluster", "backup") or () if jobs else ())},
    )


def _replication_jobs(client: Client, is_needed: bool = True) -> Sequence[Mapping[str, Any]]:
    return client.get("cluster", "replication") or () if is_needed else ()


def await_unreplicated(client: Client, vmid: int) -> list[str]:
    """Wait until the node has removed the replication jobs of a guest, and return the remaining
    jobs: Proxmox VE refuses its move until none is listed (qemu-server: API2/Qemu.pm,
    remote_migrate_vm).
    """
    left: list[str] = []
    for _remaining in poll(client.clock, _REMOVAL, longest=_LONGEST):
        left = [str(one["id"]) for one in _replication_jobs(client)]
        left = [name for name in left if name.partition("-")[0] == str(vmid)]
        if not left:
            break
    return left


def require_unreplicated(vmid: int, left: Sequence[str]) -> None:
    """Raise TaskTimeout if replication jobs of a guest are left (pure)."""
    if not left:
        return
    raise TaskTimeout(
        f"Guest {vmid} was not moved: its node has not removed replication job {', '.join(left)} "
        f"in {_REMOVAL} s",
        "Run this again when the job is gone: pve.fleet.replication_info",
        "replication job",
    )


def read_row(client: Client, row: VmRow) -> Actual:
    """Return the guest of a row of the listing, read from its node."""
    kind = list_of(row.type).kind
    return read_wherever(client.direct(), kind, row.vmid, row.node, pool=row.pool)


def _read_side(kind: Kind, place: Lookup, types: Collection[str]) -> tuple[Actual | None, str]:
    """Return the guest, and the UPID of a running task of it of one of these types.

    The guest is read on its known node, and listed only if it is not there. The tasks are read
    first: a task that ends afterwards shows in the guest. Raises PermissionDenied for a guest that
    the login may not see: it must not count as absent.
    """
    client, vmid = place.client, place.vmid
    if not vmid:
        return None, ""
    direct = client.direct()
    if place.node:
        busy = _find_busy(client, place.node, vmid, types)
        try:
            return read_wherever(direct, kind, vmid, place.node, pool=place.pool or None), busy
        except UnknownVm:
            pass
    elif not is_in_use(direct, vmid):
        return None, ""
    cluster = fetch_cluster_state(direct)
    row = cluster.guest(vmid)
    if row is None:
        require_visible(probe_vmid(direct, cluster, vmid), vmid, "No guest was moved")
        return None, ""
    busy = _find_busy(client, row.node, vmid, types)
    return read_row(client, row), busy


def _find_busy(client: Client, node: str, vmid: int, types: Collection[str]) -> str:
    busy = ""
    for task in read_active(client, node):
        # a backup of all guests of the node has no ID
        if task.get("type") in types and str(task.get("id")) in (str(vmid), ""):
            busy = str(task["upid"])
    return busy


def read_both(
    kind: Kind,
    source: Lookup,
    target: Lookup,
    *,
    wait: int,
    own: Belongings | None = None,
    archive: ArchivePlace | None = None,
) -> BothSides:
    """Return both sides of a guest. `own` are its belongings as far as they are known, `archive` is
    the storage of its archive if it moves by one.

    Waits up to `wait` seconds for the end of a migration that another run has started. Raises
    TaskTimeout after it, unless `wait` is 0.
    """
    known = own or Belongings()
    sides = _read_once(kind, source, target, known)
    if not wait:
        return _with_archive(sides, source, target, archive)
    for _remaining in poll(source.client.clock, wait, longest=_LONGEST):
        if not sides.busy:
            break
        sides = _read_once(kind, source, target, known)
    _require_ended(sides.busy, wait)
    return _with_archive(sides, source, target, archive)


def _with_archive(
    sides: BothSides, source: Lookup, target: Lookup, archive: ArchivePlace | None
) -> BothSides:
    """Return both sides with the archive of the last state of a stopped source without a target."""
    here, there = sides.states
    if archive is None or sides.source is None or sides.busy or here.executes:
        return sides
    if here.record is None or not is_by_archive(here) or there.exists:
        return sides
    clients = source.client, target.client
    archived = read_last_state(*clients, sides.source, archive, here.record.id)
    return replace(sides, archived=archived)


def _read_once(kind: Kind, source: Lookup, target: Lookup, own: Belongings) -> BothSides:
    here, busy = _read_side(kind, source, (kind.migration_task, BACKUP_TASK))
    there, tunnel = _read_side(kind, target, (*_TUNNELS, *kind.creation_tasks))
    sides = BothSides(here, there, (source.cluster, target.cluster), busy or tunnel)
    if f":{BACKUP_TASK}:" in busy and not is_by_archive(sides.states[0]):
        sides = replace(sides, busy=tunnel)
    objects, others = _read_both_objects(source.client, target.client, sides, own)
    sides = replace(sides, here=objects, there=others)
    is_unclear = all(one.lock and one.power == "stopped" for one in sides.states)
    record = sides.states[0].record
    if here is not None and is_unclear and record is not None and record.mode == ONLINE:
        return replace(sides, handed_over=_has_handed_over(source.client, here, record))
    return sides


def _read_both_objects(
    source: Client, target: Client, sides: BothSides, known: Belongings
) -> tuple[SiteObjects, SiteObjects]:
    """Return the objects of both sites: the HA resources, and the lists in which the guest is or
    was.
    """
    here, there = sides.source, sides.target
    own = known.merged(recorded_in(here, sides.clusters[0]))
    own = own.merged(recorded_in(there, sides.clusters[1]))
    objects = others = SiteObjects()
    if here is not None:
        rules, sid = own.ha is not None or not here.lock, sid_of(here.kind, here.vmid)
        jobs = bool(own.replicas) and not here.lock
        objects = read_objects(source, rules=rules, jobs=jobs, sid="" if own.ha else sid)
        own = own.merged(belongings_of(sid, objects))
    if there is not None or own:
        jobs = bool(own.replicas or own.backups)
        others = read_objects(target, rules=own.ha is not None, jobs=jobs)
    return objects, others


def recorded_in(actual: Actual | None, cluster: str) -> Belongings:
    """Return the belongings in the record of a guest (pure)."""
    record = None if actual is None else record_of(actual.target, actual.vmid, cluster)
    return parse_belongings("" if record is None else record.belongings)


def _has_handed_over(client: Client, actual: Actual, record: MoveRecord) -> bool | None:
    """Return whether the log of the migration shows that the memory has arrived; None if there is
    no log (qemu-server: QemuMigrate.pm, phase2).
    """
    kind, vmid = actual.kind, actual.vmid
    upid = find_task(
        client, actual.node, type=kind.migration_task, vmid=vmid, since=record.began - 60
    )
    if upid is None:
        return None
    return any(_COMPLETED in line for line in read_task_log(client, upid))


def _require_ended(upid: str, wait: int) -> None:
    """Raise TaskTimeout if a migration still runs (pure)."""
    if not upid:
        return
    raise TaskTimeout(
        f"Timed out after {wait} s waiting for a migration of another run: {upid} still runs",
        "Run this again when it has ended",
        "migration runs",
        upid=upid,
    )
