# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a site for its events. Nothing is written.

Without news this takes two requests, and one for each online node. The tasks are read before the
listing, so the listing is never older than the known tasks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.api.tasks import task_log
from ..._foundation.cluster.state import ClusterState, cluster_state_of, query_nodes
from ..._foundation.core.errors import FleetError
from ..._foundation.core.parallel import side_by_side
from ..._guests.kinds.words import TYPES
from ..._infrastructure.facts.nodes import CapacityRules
from ..._infrastructure.facts.partial_read import standing
from ..drift import run_info as drift_info
from ..report.metrics import model as metrics
from ..report.metrics.model import MetricsOptions, SiteFacts
from ..report.metrics.read_site import read_site as read_measured
from ..tasks.read import MAX_TASKS, TaskQuery, read_tasks
from ..tasks.row import TaskRow
from .advance import is_slow_due
from .guests import new_removals
from .model import (
    BACKUPS,
    DISKS,
    DRIFT,
    EventOptions,
    EventReading,
    NodeAnswers,
    ReadFailure,
    SitePosition,
    SlowChecks,
)
from .tasks import new_failed_backups

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

# The line in the log of a backup about a guest whose backup failed (pve-manager: PVE/VZDump.pm).
_FAILED_GUEST = re.compile(r"Backup of VM ([0-9]{1,9}) failed")


def read_site(client: Client, position: SitePosition, wanted: EventOptions) -> EventReading:
    """Return a reading. If the site does not answer, it contains only the error."""
    taken = client.clock.time()
    try:
        return _read(client, position, wanted, taken)
    except FleetError as error:
        return EventReading(client.site, taken, error=error)


def _read(
    client: Client, position: SitePosition, wanted: EventOptions, taken: float
) -> EventReading:
    status = client.get("cluster", "status", attempted="Could not read the cluster's status")
    head = standing(status)
    online = {node: bool(member["online"]) for node, member in head["members"].items()}

    def tasks_of(node: str) -> NodeAnswers:  # since the start of the node's known tasks
        known = position.tasks.get(node)
        since = known.since if known else None
        return read_tasks(client, [node], TaskQuery(limit=MAX_TASKS, since=since))

    nodes = sorted(node for node, is_online in online.items() if is_online)
    tasks: dict[str, list[TaskRow] | FleetError] = {}
    for answer in side_by_side(tasks_of, nodes):
        tasks.update(answer)
    failed = new_failed_backups(position, tasks)
    rows = client.get("cluster", "resources", attempted="Could not read the listing of the cluster")
    cluster = _with_new_names(client, position, cluster_state_of(rows, TYPES), tasks)
    checks = _read_checks(client, wanted) if is_slow_due(position, taken, wanted) else None
    return EventReading(
        site=client.site,
        taken=taken,
        online=online,
        quorate=bool(head["quorate"]),
        tasks=tasks,
        cluster=cluster,
        failed_guests={task.upid: _failed_guests(client, task) for task in failed},
        checks=checks,
    )


def _failed_guests(client: Client, task: TaskRow) -> tuple[int, ...]:
    """Return the guests whose backup failed according to the log of the task."""
    matches = filter(None, map(_FAILED_GUEST.search, task_log(client, task.upid)))
    return tuple(dict.fromkeys(int(match[1]) for match in matches))


def _with_new_names(
    client: Client, position: SitePosition, cluster: ClusterState, tasks: NodeAnswers
) -> ClusterState:
    """Return the listing with the names and states of new guests from their nodes.

    For some seconds the listing contains the values of the last guest with the same VMID, or none
    (pve-manager: PVE/API2Tools.pm, extract_vm_stats). If there is no new guest, no node is queried.
    """
    if position.is_new:
        return cluster
    removed = new_removals(position, tasks)
    nodes: set[str] = set()
    for vmid, row in cluster.vms.items():
        if vmid not in position.guests or vmid in removed:
            nodes.add(row.node)
    return query_nodes(client, cluster, nodes)


def _read_checks(client: Client, wanted: EventOptions) -> SlowChecks:
    """Read backups, the sizes of disks, and drift, each only if it is wanted."""
    failed: dict[str, ReadFailure] = {}
    newest: dict[int, int] | None = None
    disks: Mapping[int, int] | None = None
    drift: Mapping[str, Any] | None = None
    if wanted.max_age is not None or wanted.counts_disks:
        site = read_measured(
            client,
            MetricsOptions(
                prefix=wanted.prefix,
                rules=CapacityRules(),
                backups=wanted.max_age is not None,
                disks=wanted.counts_disks,
            ),
            client.site,
        )
        failed |= _failures(site, wanted)
        if BACKUPS not in failed and wanted.max_age is not None:
            newest = {vmid: copies.newest for vmid, copies in site.backups.items()}
        if DISKS not in failed and wanted.counts_disks:
            disks = site.disks
    if wanted.drift is not None:
        drift = _read_drift(client, wanted.drift, failed)
    return SlowChecks(newest, disks, drift, failed)


def _failures(site: SiteFacts, wanted: EventOptions) -> dict[str, ReadFailure]:
    """Return why backups or disks are not known.

    If only the backups of single guests are not known, these guests are left out of the figures; a
    missing size makes the use of its tenant unknown.
    """
    found: dict[str, ReadFailure] = {}
    for one in site.missing:
        failure = ReadFailure(one.category, one.reason)
        if one.part in (metrics.SITE, metrics.PRIVILEGES) and not one.subject:
            found.setdefault(BACKUPS, failure)
            found.setdefault(DISKS, failure)
        elif one.part == metrics.DISK:
            found.setdefault(DISKS, failure)
        elif one.part == metrics.BACKUPS:
            found.setdefault(f"{BACKUPS} of single guests", failure)
    if wanted.max_age is None:
        found.pop(BACKUPS, None)
    if not wanted.counts_disks:
        found.pop(DISKS, None)
    return found


def _read_drift(
    client: Client, options: Mapping[str, Any], failed: dict[str, ReadFailure]
) -> Mapping[str, Any] | None:
    """Return the report of module drift_info, or None with the reason in `failed`."""
    guests = [*(options.get("vms") or ()), *(options.get("containers") or ())]
    names_sites = any(guest.get("site") for guest in guests)
    names = [client.site] if client.site and names_sites else []
    try:
        result = drift_info.run_at_sites(options, [(names, client)])
    except FleetError as error:
        failed[DRIFT] = ReadFailure.of(error)
        return None
    report: Mapping[str, Any] = result.values["drift"]
    for site in report["sites"]:
        if site["reason"]:
            failed[DRIFT] = ReadFailure("NetworkError", str(site["reason"]))
            return None
    return report
