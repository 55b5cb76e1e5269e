# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Starts or stops one tier: with one bulk action if PVE has it, and other guests one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from ...._foundation.cluster.state import fetch_cluster_state, query_nodes
from ...._foundation.core.clock import poll
from ...._foundation.core.errors import (
    FleetError,
    NotApproved,
    TaskFailed,
    TaskTimeout,
    with_unverified,
)
from ...._foundation.resource.engine import after_writes, attempted
from ...._foundation.resource.plan import Plan, Step
from ...._guests.fleet.execute import VmOutcome
from ...._guests.fleet.plan import FleetPlanner
from ...._guests.guest.registry import LISTS
from ...._guests.guest.start_order import start_order
from ..execute import execute
from ..guests import guest_item
from ..model import START, GuestDecision
from ..planning import runs
from ..read import read_active
from .options import FORCE, STARTED, PowerOptions
from .plan import OrderedGuest

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# PVE has bulk actions for the whole cluster since 9.1. C(startall) of a node in older versions
# pauses for three seconds after each start (pve-manager: PVE/API2/Nodes.pm), so it is slower.
_BULK_SINCE = (9, 1)
_OWN = frozenset("bulk-start bulk-shutdown qmstart qmshutdown vzstart vzshutdown".split())
_GRACE = 60  # seconds for the requests of a bulk action, in addition to the shutdowns


def await_running_tasks(
    client: Client, nodes: Collection[str], vmids: set[int], limit: int
) -> None:
    """Wait for tasks of an interrupted run: bulk actions, starts and shutdowns of these guests."""
    known = {"", *map(str, vmids)}
    for _remaining in poll(client.clock, limit, longest=5.0):
        rows = [row for node in nodes for row in read_active(client, node)]
        own = [row for row in rows if row.get("type") in _OWN and str(row.get("id") or "") in known]
        if not own:
            return


def switch_tier(
    client: Client, options: PowerOptions, tier: Sequence[OrderedGuest], managed: Collection[int]
) -> dict[int, FleetError]:
    """Start or stop the guests of a tier, and return the error of each guest that failed. A bulk
    action names guests by their VMIDs only, so the plan of each of them is compared before.
    """
    refused = _find_refused(client, tier)
    tier = [turn for turn in tier if turn.row.vmid not in refused]
    return {**refused, **_switch_approved(client, options, tier, managed)}


def _find_refused(client: Client, tier: Sequence[OrderedGuest]) -> dict[int, FleetError]:
    """Return the errors of the guests whose plan is not the approved one."""
    refused: dict[int, FleetError] = {}
    for turn in tier:
        vm_plan = turn.planned.vm_plan
        try:
            if vm_plan is not None:
                client.plan_book.agree(vm_plan.plan, vm_plan.planned_guest)
        except NotApproved as error:
            refused[turn.row.vmid] = error
    return refused


def _switch_approved(
    client: Client, options: PowerOptions, tier: Sequence[OrderedGuest], managed: Collection[int]
) -> dict[int, FleetError]:
    bulk = _in_bulk(client, tier, managed)
    if not bulk:
        return _switch_single(client, options, tier)
    is_finished = _send_bulk(client, options, bulk)
    try:
        rest = _still_different(client, options, tier)
    except FleetError as error:
        return {turn.row.vmid: _unverified(error, turn, bulk) for turn in tier}
    reached = [turn for turn in bulk if turn not in rest]
    late = [turn for turn in rest if turn in bulk and is_finished and not options.starts]
    errors = {turn.row.vmid: _too_late(turn, options) for turn in late}
    with after_writes([text for turn in reached for text in turn.summaries]):
        single = _switch_single(client, options, [turn for turn in rest if turn not in late])
    return {**errors, **single}


def _in_bulk(
    client: Client, tier: Sequence[OrderedGuest], managed: Collection[int]
) -> list[OrderedGuest]:
    """Return the guests of a tier that one bulk action starts or stops."""
    bulk = [turn for turn in tier if turn.is_simple and turn.row.vmid not in managed]
    return [] if len(bulk) < 2 or client.version() < _BULK_SINCE else bulk


def keep_plans(
    client: Client, options: PowerOptions, tier: Sequence[OrderedGuest], managed: Collection[int]
) -> None:
    """Show the plans of a tier to the plan book."""
    bulk = _in_bulk(client, tier, managed)
    if bulk:
        client.plan_book.keep(Plan((_bulk_step(options, bulk),)))
    for turn in tier:
        vm_plan = turn.planned.vm_plan
        if vm_plan is not None:
            client.plan_book.keep(vm_plan.plan, vm_plan.planned_guest)


def _switch_single(
    client: Client, options: PowerOptions, tier: Sequence[OrderedGuest]
) -> dict[int, FleetError]:
    """Start or stop guests with a request for each, and return the errors."""
    decisions = [GuestDecision(turn.row, START, "", planned=turn.planned) for turn in tier]
    return _errors_of(execute(client, options.limits, decisions))


def _errors_of(outcomes: Iterable[VmOutcome]) -> dict[int, FleetError]:
    return {
        one.planned.item.desired.guest.vmid: one.error for one in outcomes if one.error is not None
    }


def _unverified(error: FleetError, turn: OrderedGuest, bulk: Sequence[OrderedGuest]) -> FleetError:
    """Return the error of a guest whose state cannot be read after a bulk action."""
    if turn not in bulk:
        return error
    return with_unverified(error, "; ".join(turn.summaries))


def _send_bulk(client: Client, options: PowerOptions, turns: Sequence[OrderedGuest]) -> bool:
    """Send one bulk action, and return whether its task has ended.

    The outcome of the task is not needed: the state of each guest is read afterwards.
    """
    step = _bulk_step(options, turns)
    is_start = options.starts
    timeout = options.limits.task_timeout if is_start else longest_shutdown(turns, options)
    try:
        client.task(
            step.method,
            *step.path,
            data=step.data,
            attempted=attempted(step.summary),
            timeout=timeout,
        )
    except TaskFailed:
        return True
    except FleetError:
        return False
    return True


def _bulk_step(options: PowerOptions, turns: Sequence[OrderedGuest]) -> Step:
    """Return the bulk action that starts or stops guests (pure)."""
    data: dict[str, object] = {
        "vms": [str(turn.row.vmid) for turn in turns],
        "max-workers": options.limits.parallel,
    }
    action = "start"
    if not options.starts:
        action = "shutdown"
        data["timeout"] = options.limits.shutdown_timeout
        data["force-stop"] = options.unresponsive == FORCE
    summary = f"{action.capitalize()} {len(turns)} guests"
    return Step(action, summary, "POST", ("cluster", "bulk-action", "guest", action), data)


def longest_shutdown(turns: Sequence[OrderedGuest], options: PowerOptions) -> int:
    """Return the seconds that the shutdown of these guests can take (pure). C(down) of a guest
    replaces the limit of the task (BulkAction/Guest.pm).
    """
    limits: list[int] = []
    for turn in turns:
        down = start_order(turn.actual.target).down
        limits.append(options.limits.shutdown_timeout if down is None else down)
    rounds = -(-len(turns) // options.limits.parallel)
    return rounds * max(limits) + _GRACE


def _still_different(
    client: Client, options: PowerOptions, tier: Sequence[OrderedGuest]
) -> list[OrderedGuest]:
    """Return the guests that are not in the desired state according to their nodes."""
    cluster = fetch_cluster_state(client.direct())
    vmids = {turn.row.vmid for turn in tier}
    nodes = {row.node for row in cluster.guests if row.vmid in vmids}
    current_rows = {
        row.vmid: row for row in query_nodes(client.direct(), cluster, nodes, full=True).guests
    }
    return [
        turn
        for turn in tier
        if turn.row.vmid in current_rows and runs(current_rows[turn.row.vmid]) != options.starts
    ]


def _too_late(turn: OrderedGuest, options: PowerOptions) -> FleetError:
    return TaskTimeout(
        f"{turn.label} was not stopped: it did not shut down in {options.limits.shutdown_timeout} "
        "s",
        "Look at its console, set unresponsive to leave or force, and run again",
        "not stopped in time",
    )


def find_unhealthy(
    client: Client, options: PowerOptions, tier: Sequence[OrderedGuest]
) -> dict[int, FleetError]:
    """Wait until each guest of a tier answers, and return an error for each that does not."""
    if options.wait_for == "none" or not tier:
        return {}
    items = [
        guest_item(turn.row, index, options.limits, _conditions(turn, options))
        for index, turn in enumerate(tier)
    ]
    plans = FleetPlanner(client, False, LISTS).plan(items)
    decisions = [
        GuestDecision(turn.row, START, "", planned=planned)
        for turn, planned in zip(tier, sorted(plans, key=lambda one: one.item.index), strict=True)
    ]
    return _errors_of(execute(client, options.limits, decisions))


def _conditions(turn: OrderedGuest, options: PowerOptions) -> dict[str, object]:
    """Return the options that wait for a guest. A container has no agent; its address is enough."""
    wait_for = options.wait_for if turn.actual.kind.saves_memory else "address"
    return {"state": STARTED, "wait_for": wait_for, "wait_timeout": options.wait_timeout}
