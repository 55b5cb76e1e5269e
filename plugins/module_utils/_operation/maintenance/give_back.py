# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The states complete and returned: wait for a complete node, then return its guests; and the
state next, which names the node that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state
from ..._foundation.core.clock import poll
from ..._foundation.core.errors import FleetError, NodeUnhealthy, NotApproved, PermissionDenied
from ..._foundation.core.formatting import counted
from ..._foundation.core.result import Result
from ..._foundation.resource.plan import Plan
from ..._guests.fleet.plan import FleetPlanner, PlannedGuest
from ..._guests.guest.flow.apply import require_permitted
from ..._guests.guest.registry import LISTS
from ..._guests.guest.start_order import start_order
from ..._infrastructure.node.record import PENDING, RETURNING, NodeRecord
from .approval import keep_record_writes, keep_returning
from .execute import MaintenanceOutcomes, execute, set_noout
from .guests import fingerprint, returning_item
from .keep import keep_record, recording
from .model import COMPLETE, MIGRATE, RESTART, START, STAY, GuestDecision, MaintenanceOptions
from .planning import runs
from .read import is_maintained, read_ha, read_members, read_node, read_record
from .report import MaintenanceProgress, failed, result_of
from .standing import find_missing
from .times.estimate import seconds_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass
class _ReturnRun(MaintenanceOutcomes):
    """One run on a node, with its finished steps."""

    client: Client
    options: MaintenanceOptions


def run_return(options: MaintenanceOptions, client: Client) -> Result:
    """Wait until the node is complete, then move its guests back; check mode does not wait."""
    record = _record_of_complete(options, client, 0 if options.check_mode else options.wait_timeout)
    if record is None:
        return result_of(MaintenanceProgress(options, "none"))
    if record.phase == PENDING:
        return _end_pending(options, client)
    if options.state == COMPLETE:
        return result_of(MaintenanceProgress(options, record.phase))
    decisions, warnings = decide_return(options, client, record)
    plan = _plan_of(options, record, decisions)
    work = _ReturnRun(client, options, warnings=list(warnings))
    progress = MaintenanceProgress(options, record.phase, decisions, 0, plan, work)
    if options.check_mode:
        plans = [one.planned.vm_plan for one in decisions if one.planned]
        require_permitted(client, plans, recording(options.node, _beginning(options)))
        keep_record_writes(client, options, _beginning(options), noout=record.noout)
        keep_returning(client, decisions)
        return result_of(progress)
    return _execute(work, record, progress)


def _end_pending(options: MaintenanceOptions, client: Client) -> Result:
    """Remove the record of a node that waits for its maintenance, in state returned."""
    if options.state == COMPLETE:
        return result_of(MaintenanceProgress(options, PENDING))
    node, ending, check_mode = options.node, _ending(options), options.check_mode
    _record, planned = keep_record(client, node, _not_pending, ending, check_mode=check_mode)
    plan = tuple(planned.summaries)
    outcomes = MaintenanceOutcomes(done=[] if check_mode else [*plan])
    return result_of(MaintenanceProgress(options, "none", plan=plan, outcomes=outcomes))


def _not_pending(before: NodeRecord | None) -> NodeRecord | None:
    return None if before is not None and before.phase == PENDING else before


def run_next(options: MaintenanceOptions, client: Client) -> Result:
    """Record the node as the next one, unless its maintenance has started. Raises FleetError."""
    record, planned = _record_next(client, options.node, options.check_mode)
    plan = tuple(planned.summaries)
    outcomes = MaintenanceOutcomes(done=[] if options.check_mode else [*plan])
    phase = record.phase if record else "none"
    return result_of(MaintenanceProgress(options, phase, plan=plan, outcomes=outcomes))


def _record_next(
    client: Client, node: str, check_mode: bool = False
) -> tuple[NodeRecord | None, Plan]:
    if is_maintained(client, node):
        return None, Plan()
    fresh = NodeRecord(PENDING, int(client.clock.time()))
    return keep_record(
        client, node, lambda one: one or fresh, _handing_over(node), check_mode=check_mode
    )


def _record_of_complete(
    options: MaintenanceOptions, client: Client, timeout: float
) -> NodeRecord | None:
    """Wait until the node is complete, and return its record.

    Raises NodeUnhealthy with the missing parts.
    """
    missing: list[str] = []
    for _remaining in poll(client.clock, timeout, longest=5.0):
        try:
            record, missing = _read_record(options, client)
        except PermissionDenied:
            raise
        except FleetError as error:
            missing = [error.answer or error.message]
            continue
        if not missing:
            return record
    raise NodeUnhealthy(
        f"Node {options.node} is not complete after {timeout:g} s: {'; '.join(missing)}",
        "Its guests stay where they are. Repair this and run again: it continues here",
        "node not complete",
        details={"missing": missing},
    )


def _read_record(
    options: MaintenanceOptions, client: Client
) -> tuple[NodeRecord | None, list[str]]:
    """Return the record of the node, and the missing parts of the node."""
    quorate, members = read_members(client)
    if not quorate:
        return None, ["the cluster has no quorum"]
    if not members.get(options.node):
        return None, ["it is offline"]
    record = read_record(client, options.node)
    if record is None or record.phase == PENDING:
        return record, []
    cluster = fetch_cluster_state(client.direct())
    row = cluster.nodes.get(options.node)
    if row is None or not row.online:
        return record, ["the cluster lists it as offline"]
    missing = find_missing(record, read_node(client, options.node, cluster), options)
    ha = read_ha(client, cluster.nodes) if options.state != COMPLETE else None
    if ha is not None and ha.nodes.get(options.node) == "maintenance":
        missing.append("the HA manager has it in maintenance mode")
    return record, missing


def decide_return(
    options: MaintenanceOptions, client: Client, record: NodeRecord
) -> tuple[tuple[GuestDecision, ...], tuple[str, ...]]:
    """Return the decision about each guest of the record, in start order, and warnings."""
    cluster = fetch_cluster_state(client.direct())
    rows = [row for row in cluster.guests if row.vmid in record.guests]
    gone = sorted(record.guests.keys() - {row.vmid for row in rows})
    warnings = [f"Guest {vmid} was removed during the maintenance" for vmid in gone]
    items = [
        returning_item(row, index, options, starts=row.vmid in record.stopped)
        for index, row in enumerate(rows)
    ]
    plans: Mapping[int | None, PlannedGuest] = {
        one.item.desired.guest.vmid: one for one in FleetPlanner(client, False, LISTS).plan(items)
    }
    found: list[tuple[int, GuestDecision]] = []
    for row in rows:
        planned = plans[row.vmid]
        if _is_other(record.guests[row.vmid], planned):
            warnings.append(f"VMID {row.vmid} belongs to another guest now, which stays")
            continue
        decision = _decision(row, planned, cluster, options)
        if decision is not None:
            found.append((_order(decision), decision))
    found.sort(key=lambda one: (one[0], one[1].row.vmid))
    return tuple(decision for _place, decision in found), tuple(warnings)


def _is_other(known: str, planned: PlannedGuest) -> bool:
    """Return whether the VMID of the record belongs to another guest now."""
    actual = planned.actual or planned.refused
    return actual is not None and bool(known) and known != fingerprint(actual)


def _order(decision: GuestDecision) -> int:
    planned = decision.planned
    actual = planned and (planned.actual or planned.refused)
    return start_order(actual.target).place if actual else 0


def _decision(
    row: VmRow, planned: PlannedGuest, cluster: ClusterState, options: MaintenanceOptions
) -> GuestDecision | None:
    """Return the decision about a guest, or None if it is on the node already."""
    actual, vm_plan = planned.actual, planned.vm_plan
    if vm_plan is None or actual is None:
        reason = planned.error.message if planned.error else "it is gone"
        return GuestDecision(row, STAY, reason, planned=planned)
    if not vm_plan.plan.changed:
        return None
    if actual.node == options.node:
        return GuestDecision(row, START, "it was shut down", options.node, 0.0, planned)
    is_restart = runs(row) and not actual.kind.saves_memory
    seconds = seconds_of(actual, cluster, options.rate)
    action = RESTART if is_restart else MIGRATE
    return GuestDecision(row, action, "it was there before", options.node, seconds, planned)


def _plan_of(
    options: MaintenanceOptions, record: NodeRecord, decisions: Sequence[GuestDecision]
) -> tuple[str, ...]:
    """Return the steps in words."""
    steps: list[str] = []
    if record.phase != RETURNING:
        steps.append(_beginning(options))
    if record.noout:
        steps.append("Clear the flag noout of Ceph")
    for one in decisions:
        steps += one.summaries
    if options.next_node:
        steps.append(_handing_over(options.next_node))
    return (*steps, _ending(options))


def _beginning(options: MaintenanceOptions) -> str:
    return f"Record that the guests of node {options.node} return"


def _handing_over(node: str) -> str:
    return f"Record that node {node} is the next one"


def _ending(options: MaintenanceOptions) -> str:
    return f"Remove the record of the maintenance of node {options.node}"


def _execute(work: _ReturnRun, record: NodeRecord, progress: MaintenanceProgress) -> Result:
    """Move the guests back; guests with the same place in the start order move together."""
    client, options = work.client, work.options
    if record.phase != RETURNING:
        keep_record(client, options.node, _returning, _beginning(options))
        work.done.append(_beginning(options))
    if record.noout:
        set_noout(client, False)
        keep_record(client, options.node, _without_noout, "Record that noout is cleared")
        work.done.append("Clear the flag noout of Ceph")
    for wave in waves(progress.decisions):
        _return_wave(work, wave)
        if not all(isinstance(error, NotApproved) for error in work.failed.values()):
            break
    if work.failed:
        attempted = f"{counted(len(work.failed), 'guest')} could not return to node {options.node}"
        failure = failed(attempted, work.failed, progress.decisions)
        return result_of(replace(progress, phase=RETURNING), failure)
    _finish(work)
    return result_of(replace(progress, phase="none"))


def _return_wave(work: _ReturnRun, wave: Sequence[GuestDecision]) -> None:
    """Move the guests with one place in the start order back to the node."""
    for one in wave:
        if one.action == STAY and one.planned is not None and one.planned.error is not None:
            work.failed[one.row.vmid] = one.planned.error
    moving = [one for one in wave if one.action != STAY]
    for outcome in execute(work.client, work.options, moving):
        work.note(outcome)


def _returning(before: NodeRecord | None) -> NodeRecord | None:
    return before and replace(before, phase=RETURNING)


def _without_noout(before: NodeRecord | None) -> NodeRecord | None:
    return before and replace(before, noout=False)


def waves(decisions: Sequence[GuestDecision]) -> list[list[GuestDecision]]:
    """Return the decisions, grouped by place in the start order."""
    found: list[list[GuestDecision]] = []
    last: int | None = None
    for one in decisions:
        order = _order(one)
        if order != last:
            found.append([])
        last = order
        found[-1].append(one)
    return found


def _finish(work: _ReturnRun) -> None:
    """Record the next node first, then remove the record: one of them always exists."""
    client, options = work.client, work.options
    if options.next_node:
        _record_next(client, options.next_node)
        work.done.append(_handing_over(options.next_node))
    digest = client.plan_book.digest
    ending = _ending(options)
    keep_record(client, options.node, lambda _before: None, ending, plan_digest=digest)
    work.done.append(ending)
