# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The states recorded and evacuated: check, record, move the guests of a node away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from ..._foundation.cluster.placement import require_node
from ..._foundation.cluster.state import ClusterState, fetch_cluster_state
from ..._foundation.core.clock import poll
from ..._foundation.core.errors import FleetError, NotApproved, NotFound
from ..._foundation.core.formatting import counted
from ..._foundation.core.result import Result
from ..._guests.guest.flow.apply import require_permitted
from ..._guests.kinds.move import last_record_of
from ..._infrastructure.node.record import (
    EVACUATED,
    EVACUATING,
    MAINTAINED,
    PENDING,
    RETURNING,
    NodeRecord,
)
from .approval import keep_leaving, keep_record_writes, keep_returning, require_approved_ha
from .execute import MaintenanceOutcomes, await_ha, execute, set_noout
from .give_back import decide_return
from .guests import fingerprint
from .keep import keep_record, recording
from .model import FAIL, HA, RECORDED, STAY, STOP, GuestDecision, MaintenanceOptions
from .planning import Evacuation, plan_evacuation, runs
from .read import MaintenanceFacts, is_maintained, read_active, read_facts, read_members, read_node
from .report import (
    MOVES,
    MaintenanceProgress,
    blocked,
    estimate,
    failed,
    merged,
    not_moved,
    result_of,
    stuck,
)
from .standing import find_balancing, find_blockers, find_busy, find_late, own_tasks
from .times.windows import remaining

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

# How many times the node is searched for guests that arrived while others left.
_ROUNDS = 4
_LEAVING = (*MOVES, HA, STOP)


@dataclass
class _EvacuationRun(MaintenanceOutcomes):
    """One run on a node: its decisions and its finished steps."""

    client: Client
    options: MaintenanceOptions
    facts: MaintenanceFacts
    record: NodeRecord | None
    decisions: dict[int, GuestDecision] = field(default_factory=dict)

    @property
    def known(self) -> dict[int, str]:
        """The reason why each guest could not leave, by VMID."""
        return {vmid: error.message for vmid, error in self.failed.items()}

    @property
    def phase(self) -> str:
        """The phase in the record, PENDING without a record."""
        return self.record.phase if self.record is not None else PENDING


def run_evacuation(options: MaintenanceOptions, client: Client) -> Result:
    """Evacuate a node, or only record its guests; check mode plans both."""
    _await_node(client, options)
    if is_maintained(client, options.node):
        return result_of(MaintenanceProgress(options, MAINTAINED))
    facts = read_facts(client, options.node)
    work = _EvacuationRun(client, options, facts, facts.records.get(options.node))
    if work.phase == RETURNING:
        if options.check_mode:
            _keep(work, ())
        return result_of(MaintenanceProgress(options, RETURNING))
    if not options.check_mode:
        _await_own_tasks(work)
    evacuation = plan_evacuation(client, options, facts.ha, work.known)
    plan = _plan_of(work, evacuation)
    if plan:
        _require_ready(work, evacuation)
    _require_movable(options, evacuation)
    if options.check_mode:
        leaving = [one.planned for one in evacuation.with_action(*_LEAVING) if one.planned]
        first = recording(options.node, _recording(work)) if plan else None
        require_permitted(client, [one.vm_plan for one in leaving], first)
        _keep(work, evacuation.with_action(*_LEAVING))
    if options.check_mode or not plan:
        return result_of(_progress(work, evacuation, work.phase, plan))
    require_approved_ha(client, options, evacuation.decisions)
    if options.state == RECORDED:
        _record(work, evacuation)
        return result_of(_progress(work, evacuation, EVACUATING, plan))
    return _execute(work, evacuation, plan)


def _keep(work: _EvacuationRun, leaving: Iterable[GuestDecision]) -> None:
    """Show the plan of the whole maintenance for an approval: guests that leave, and the return of
    all guests, those that left before included.
    """
    client, options, record = work.client, work.options, work.record
    noout = _sets_noout(work) or (record is not None and record.noout)
    keep_record_writes(client, options, _recording(work), noout=noout)
    keep_leaving(client, options, leaving)
    if record is not None:
        keep_returning(client, decide_return(options, client, record)[0])


def _await_node(client: Client, options: MaintenanceOptions) -> None:
    """Wait for a node that reboots: its record can be read once it is back. Raises FleetError."""
    cluster = fetch_cluster_state(client)
    row = cluster.nodes.get(options.node)
    if row is not None and not row.online and not options.check_mode:
        for _remaining in poll(client.clock, options.wait_timeout, longest=5.0):
            if read_members(client)[1].get(options.node, True):
                break
        cluster = fetch_cluster_state(client.direct())
    require_node(cluster, options.node)


def _await_own_tasks(work: _EvacuationRun) -> None:
    client, node = work.client, work.options.node
    for _remaining in poll(client.clock, work.options.task_timeout, longest=5.0):
        if not own_tasks(work.facts.tasks, work.record):
            break
        work.facts = replace(work.facts, tasks=read_active(client, node))


def _require_ready(work: _EvacuationRun, evacuation: Evacuation) -> None:
    """Raise NodeUnhealthy if the cluster cannot lose the node now."""
    options = work.options
    blockers = find_blockers(work.facts, options.node, options.extra_votes)
    blockers += find_balancing(work.facts.ha, options.ha_maintenance)
    held = _held_by_moves(work, evacuation.cluster)
    blockers += find_busy(work.facts, options.node, evacuation.cluster, work.record, held)
    blockers += _late(work, evacuation)
    if blockers:
        attempted = f"Node {options.node} was not evacuated"
        raise blocked(attempted, blockers, "cannot lose the node")


def _held_by_moves(work: _EvacuationRun, cluster: ClusterState) -> dict[int, str]:
    """Return the target site of each guest of the node that a move to another cluster keeps locked;
    one request for each guest with the lock of a migration.
    """
    held: dict[int, str] = {}
    for row in cluster.guests:
        if row.node != work.options.node or row.lock != "migrate":
            continue
        try:
            config = work.client.get(*row.path, "config") or {}
        except NotFound:  # its migration has just ended, and the listing is older
            continue
        record = last_record_of(config)
        if record is not None and record.source == row.vmid:
            held[row.vmid] = record.site
    return held


def _require_movable(options: MaintenanceOptions, evacuation: Evacuation) -> None:
    """Raise Conflict, before any write, if a guest cannot leave and the policy is fail."""
    staying = evacuation.with_action(STAY)
    if staying and options.unmovable == FAIL:
        raise stuck(options.node, staying, moved=False)


def _late(work: _EvacuationRun, evacuation: Evacuation) -> list[str]:
    """Return the reasons why the moves do not fit into the windows of the task, if any."""
    options = work.options
    if not evacuation.with_action(*_LEAVING):
        return []
    seconds = remaining(options.windows, datetime.fromtimestamp(work.client.clock.time()))
    return find_late(options.windows, seconds, estimate(evacuation.decisions, options.parallel))


def _plan_of(work: _EvacuationRun, evacuation: Evacuation) -> list[str]:
    """Return the remaining steps in words, in the order of their execution."""
    steps: list[str] = []
    if _needs_record(work, evacuation):
        steps.append(_recording(work))
    if _sets_noout(work):
        steps.append("Set the flag noout of Ceph")
    if work.options.state == RECORDED:
        return steps
    for one in (*evacuation.with_action(*MOVES), *evacuation.with_action(STOP)):
        steps += one.summaries
    steps += [_waiting(one) for one in evacuation.with_action(HA)]
    if steps or work.phase != EVACUATED:
        steps.append(_ending(work))
    return steps


def _recording(work: _EvacuationRun) -> str:
    return f"Record the guests of node {work.options.node} in its notes"


def _waiting(decision: GuestDecision) -> str:
    return f"Wait until the HA manager has moved {decision.label}"


def _ending(work: _EvacuationRun) -> str:
    return f"Record that node {work.options.node} is evacuated"


def _needs_record(work: _EvacuationRun, evacuation: Evacuation) -> bool:
    """Return whether a guest that leaves or is shut down is missing from the record."""
    if work.record is None or work.phase == PENDING:
        return True
    leaving = {one.row.vmid for one in evacuation.with_action(*_LEAVING)}
    stopping = {one.row.vmid for one in evacuation.with_action(STOP) if runs(one.row)}
    return not (leaving <= work.record.guests.keys() and stopping <= work.record.stopped)


def _sets_noout(work: _EvacuationRun) -> bool:
    ceph = work.facts.ceph
    return work.options.ceph_noout and ceph is not None and "noout" not in ceph.flags


def _record(work: _EvacuationRun, evacuation: Evacuation) -> None:
    """Write the guests that leave into the record before the first one leaves."""
    client, options = work.client, work.options
    sets_noout = _sets_noout(work)
    if _needs_record(work, evacuation) or sets_noout:
        state = read_node(client, options.node, evacuation.cluster)
        marks = {one.row.vmid: _mark(one) for one in evacuation.with_action(*_LEAVING)}
        fresh = NodeRecord(
            EVACUATING,
            int(client.clock.time()),
            marks,
            frozenset(one.row.vmid for one in evacuation.with_action(STOP) if runs(one.row)),
            state.storages,
            state.services,
            state.version,
            sets_noout,
            state.booted,
        )
        work.record, _plan = keep_record(
            client, options.node, lambda one: merged(one, fresh, marks), _recording(work)
        )
        work.done.append(_recording(work))
    if sets_noout and work.facts.ceph is not None:
        set_noout(client, True)
        work.done.append("Set the flag noout of Ceph")
        flags = work.facts.ceph.flags | {"noout"}
        work.facts = replace(work.facts, ceph=replace(work.facts.ceph, flags=flags))


def _mark(decision: GuestDecision) -> str:
    if decision.planned is None or decision.planned.actual is None:
        return ""
    return fingerprint(decision.planned.actual)


def _execute(work: _EvacuationRun, evacuation: Evacuation, plan: list[str]) -> Result:
    """Move guests until none of the rest can leave; others may arrive in between."""
    client, options = work.client, work.options
    for _round in range(_ROUNDS):
        _record(work, evacuation)
        work.decisions |= {one.row.vmid: one for one in evacuation.decisions}
        _move(work, evacuation)
        if _is_final(work):
            break
        evacuation = plan_evacuation(client, options, work.facts.ha, work.known)
        if not _remaining_guests(evacuation):
            break
    failure = _failure(work, evacuation)
    if failure is not None:
        return result_of(_progress(work, evacuation, EVACUATING, plan), failure)
    keep_record(client, options.node, _evacuated, _ending(work))
    work.done.append(_ending(work))
    return result_of(_progress(work, evacuation, EVACUATED, plan))


def _is_final(work: _EvacuationRun) -> bool:
    """Return whether failures end the evacuation: the policy is about guests that cannot leave, not
    about guests whose plan is not the approved one.
    """
    is_refused = any(isinstance(error, NotApproved) for error in work.failed.values())
    return is_refused or bool(work.failed and work.options.unmovable == FAIL)


def _remaining_guests(evacuation: Evacuation) -> list[GuestDecision]:
    """Return the guests that are on the node and can leave, or can be shut down."""
    stopping = [one for one in evacuation.with_action(STOP) if runs(one.row)]
    return [*evacuation.with_action(*MOVES, HA), *stopping]


def _failure(work: _EvacuationRun, evacuation: Evacuation) -> FleetError | None:
    """Return the error about the guests that should have left, or None."""
    node = work.options.node
    if _is_final(work):
        attempted = f"{counted(len(work.failed), 'guest')} could not leave node {node}"
        return failed(attempted, work.failed, work.decisions.values())
    reason = "it came back, or another client has moved it to the node"
    found = [replace(one, action=STAY, why=reason) for one in _remaining_guests(evacuation)]
    if work.options.unmovable == FAIL:
        found += evacuation.with_action(STAY)
    return stuck(node, found, moved=True) if found else None


def _evacuated(before: NodeRecord | None) -> NodeRecord | None:
    return before and replace(before, phase=EVACUATED)


def _move(work: _EvacuationRun, evacuation: Evacuation) -> None:
    """Move guests, shut down guests that cannot leave, then wait for the HA manager."""
    client, options = work.client, work.options
    for outcome in execute(client, options, evacuation.with_action(*MOVES)):
        work.note(outcome)
    for outcome in execute(client, options, evacuation.with_action(STOP)):
        work.note(outcome)
    moved_by_ha = {one.row.vmid: one for one in evacuation.with_action(HA)}
    for vmid in await_ha(client, options, set(moved_by_ha)):
        work.failed[vmid] = not_moved(moved_by_ha.pop(vmid), options.task_timeout)
    work.reached |= moved_by_ha.keys()
    work.done += map(_waiting, moved_by_ha.values())


def _progress(
    work: _EvacuationRun, evacuation: Evacuation, phase: str, plan: list[str]
) -> MaintenanceProgress:
    decisions = {one.row.vmid: one for one in evacuation.decisions} | work.decisions
    return MaintenanceProgress(
        work.options, phase, tuple(decisions.values()), len(evacuation.resting), tuple(plan), work
    )
