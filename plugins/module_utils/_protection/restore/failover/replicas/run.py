# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The failover of lost nodes to the replicas on other nodes of the cluster.

The module marks the replication jobs of the guests to move. The caller moves their configurations
with C(mv) on a node. The module, run again, then starts the guests in start order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....._foundation.cluster.state import fetch_cluster_state
from ....._foundation.core.errors import FleetError
from ....._foundation.core.result import Result
from ....._foundation.core.texts.plan_lines import with_lines
from ....._foundation.resource.engine import after_writes
from ....._guests.guest.flow.apply import require_permitted
from ....._operation.maintenance.read import read_members
from ..desired import DesiredFailover
from ..execute import FailoverContext, FailoverResult, bring_up_guests, context_of
from ..report import preview, report
from .find import ReplicaFacts, find_online
from .lines import LostNodes
from .mark import write_mark
from .plan import ReplicaPlan, plan_replicas

if TYPE_CHECKING:
    from ....._foundation.api.client import Client


def run_replicas(
    client: Client, desired: DesiredFailover, replicas: LostNodes, now: float, check_mode: bool
) -> Result:
    """Return the result with the C(moves) to make. No guest starts before all are moved."""
    cluster = fetch_cluster_state(client)
    facts = _read_facts(client)
    found = plan_replicas(client, desired, replicas, facts, cluster, check_mode=check_mode)
    context = context_of(client, desired, cluster, (), now)
    if check_mode:
        require_permitted(client, [one.plan for one in found.plan.guests])
    if check_mode or desired.rehearsal:
        result = preview(desired, found.plan, context)
        return replace(_with_moves(result, found), changed=result.changed and not desired.rehearsal)
    if found.moves:
        result = preview(desired, found.plan, context)
        done: list[str] = []
        for one in found.moves:
            with after_writes(done):
                done += write_mark(client, one.guest.job, one.guest.comment, one.mark)
        values = {**result.values, "done": done}
        return _with_moves(replace(result, changed=bool(done), values=values), found)

    def find_running(_guests: object) -> list[str]:
        return find_online(replicas, read_members(client)[1])

    outcome = bring_up_guests(FailoverContext(desired, (), context, find_running), found.plan)
    _unmark(client, found, outcome)
    seconds = client.clock.time() - now
    return _with_moves(report(desired, found.plan, context, outcome, seconds), found)


def _read_facts(client: Client) -> ReplicaFacts:
    """Return the facts of the cluster; four requests."""
    quorate, members = read_members(client)
    pools: dict[str, str] = {}
    for row in client.get("storage", attempted="Could not read the storages") or ():
        if row.get("pool"):
            pools[str(row["storage"])] = str(row["pool"])
    managed: set[str] = set()
    for row in client.get("cluster", "ha", "resources") or ():
        if row.get("state") != "ignored":
            managed.add(str(row["sid"]))
    jobs = client.get("cluster", "replication", attempted="Could not read the replication jobs")
    return ReplicaFacts(quorate, members, tuple(jobs or ()), pools, frozenset(managed))


def _unmark(client: Client, found: ReplicaPlan, outcome: FailoverResult) -> None:
    """Remove the marks of the guests that are up, and record the finished steps."""
    for one, result in outcome.guests:
        job = found.jobs[one.vmid]
        if result.error is not None:
            continue
        try:
            outcome.done += write_mark(client, str(job["id"]), job.get("comment"), None)
        except FleetError as error:
            result.error = error


def _with_moves(result: Result, found: ReplicaPlan) -> Result:
    """Return the result with the configurations to move."""
    moves: list[dict[str, Any]] = []
    lines: list[str] = []
    for move in found.moves:
        one, changes = move.guest, list(move.changes)
        name = one.chosen.name
        place = {"source": one.file_on(one.source), "destination": one.file_on(one.target)}
        row = {"vmid": one.vmid, "name": name, "node": one.target, **place}
        moves.append({**row, "changes": changes})
        lines += [f"  {name} ({one.vmid}): {change}" for change in changes]
    report = with_lines(result.values["report"], lines)
    return replace(result, values={**result.values, "moves": moves, "report": report})
