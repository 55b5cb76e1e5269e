# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans the move of each guest that leaves a node: with the planner of module vms, by HA rules."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from ..._foundation.api.interface import PlanBook
from ..._foundation.api.layers.caching import CachingReader
from ..._foundation.cluster.rules import read_rules
from ..._foundation.cluster.state import ClusterState, VmRow, query_nodes
from ..._foundation.core.errors import FleetError, NotSupported
from ..._foundation.core.formatting import by_reason
from ..._guests.fleet.plan import FleetPlanner, PlannedGuest
from ..._guests.guest.registry import LISTS
from ..._guests.kinds.words import kind_of_row
from ..._infrastructure.datacenter.ha.sids import sid_of
from .guests import guests_on, leaving_item, stopping_item, tenant_in
from .ha_places import excluded, why_kept
from .model import (
    HA,
    MIGRATE,
    RESTART,
    SHUTDOWN,
    STAY,
    STOP,
    GuestDecision,
    HaManagerState,
    MaintenanceOptions,
)
from .times.estimate import seconds_of
from .times.windows import remaining

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass
class MaintenancePlanning:
    """One plan for all guests of the node: the decisions so far, and the nodes of HA groups. The plan
    book has the nodes of an approved plan.
    """

    planner: FleetPlanner
    cluster: ClusterState
    decisions: dict[int, GuestDecision] = field(default_factory=dict)
    targets: dict[frozenset[str], str] = field(default_factory=dict)
    plan_book: PlanBook = PlanBook()


@dataclass(frozen=True)
class Evacuation:
    """The decisions about the guests of a node, in the order in which they are carried out.

    `resting` are guests that do not run, and stay.
    """

    cluster: ClusterState
    decisions: tuple[GuestDecision, ...]
    resting: tuple[VmRow, ...]

    def with_action(self, *actions: str) -> list[GuestDecision]:
        """Return the decisions with one of these actions."""
        return [one for one in self.decisions if one.action in actions]


def plan_evacuation(
    client: Client, options: MaintenanceOptions, ha: HaManagerState, known: Mapping[int, str]
) -> Evacuation:
    """Return the decision about each guest of the node. Nothing is written.

    `known` are guests that could not leave in this run, with the reason of each.
    """
    reader = CachingReader(client.direct())  # the planner asks for the same lists again
    planner = FleetPlanner(reader, False, LISTS)
    cluster = query_nodes(reader, planner.cluster, [options.node], full=True)
    rows = guests_on(cluster, options.node)
    # A guest that the approved plan moves running, and that was stopped since, is compared with it.
    planned = {row.vmid for row in rows if client.plan_book.target_of(row.vmid)}
    moving = [row for row in rows if options.move_stopped or runs(row) or row.vmid in planned]
    resting = [row for row in rows if row not in moving]
    round_ = MaintenancePlanning(planner, cluster, plan_book=client.plan_book)
    now = datetime.fromtimestamp(client.clock.time())
    free: list[VmRow] = []
    for row in moving:
        decision = decide_early(row, options, ha, known, now)
        if decision is None:
            free.append(row)
        else:
            round_.decisions[row.vmid] = decision
    _plan_free(round_, options, ha, free)
    if options.unmovable == SHUTDOWN:
        _plan_stops(round_, options)
    decisions = [_compared(round_.decisions[row.vmid], client.plan_book) for row in moving]
    return Evacuation(cluster, tuple(decisions), tuple(resting))


def _compared(decision: GuestDecision, plan_book: PlanBook) -> GuestDecision:
    """Return a decision; that of a guest that stays has what an approved plan has for it."""
    if decision.action != STAY:
        return decision
    return replace(decision, why=plan_book.compared(decision.why, decision.row.vmid))


def runs(row: VmRow) -> bool:
    """Return whether a guest has a process on its node."""
    return row.status not in ("stopped", "unknown") and row.lock != "suspended"


def decide_early(
    row: VmRow,
    options: MaintenanceOptions,
    ha: HaManagerState,
    known: Mapping[int, str],
    now: datetime,
) -> GuestDecision | None:
    """Return the decision about a guest that needs no target node, or None."""
    if row.vmid in known:
        return GuestDecision(row, STAY, known[row.vmid])
    is_managed = ha.services.get(sid_of(row), "ignored") != "ignored"
    if is_managed and options.ha_maintenance:
        return GuestDecision(row, HA, "the HA manager moves it in its maintenance mode")
    reasons = (
        _why_no_restart(row, options),
        _why_not_now(row, options, now),
        why_kept(ha, sid_of(row), options.node) if is_managed else None,
    )
    reason = next(filter(None, reasons), None)
    return GuestDecision(row, STAY, reason) if reason else None


def _why_no_restart(row: VmRow, options: MaintenanceOptions) -> str | None:
    is_live = kind_of_row(row).saves_memory or not runs(row)
    if is_live or options.restart_containers:
        return None
    return "a running container moves by a restart only, which restart_containers allows"


def _why_not_now(row: VmRow, options: MaintenanceOptions, now: datetime) -> str | None:
    tenant = tenant_in(row, options.tenant_prefix)
    windows = options.tenant_windows.get(tenant or "", ())
    if remaining(windows, now) != 0:
        return None
    agreed = ", ".join(windows)
    return f"tenant {tenant} has agreed to {agreed}, and it is {now:%H:%M}"


def _plan_free(
    round_: MaintenancePlanning,
    options: MaintenanceOptions,
    ha: HaManagerState,
    rows: Sequence[VmRow],
) -> None:
    """Decide about the guests that need a target node: first all guests without an HA group, then
    the guests of HA groups one by one.
    """
    single = [row for row in rows if sid_of(row) not in ha.together]
    choose(round_, options, ha, single)
    for row in rows:
        if row not in single:
            choose(round_, options, ha, [row])


def choose(
    round_: MaintenancePlanning,
    options: MaintenanceOptions,
    ha: HaManagerState,
    rows: Sequence[VmRow],
) -> None:
    """Decide about these guests, at first with all nodes, then without nodes that PVE refuses."""
    rules = read_rules(options.placement)
    refused: dict[int, dict[str, str]] = {row.vmid: {} for row in rows}
    waiting = list(rows)
    while waiting:
        items = [
            leaving_item(
                row,
                index,
                options,
                rules,
                {*_excluded(round_, ha, row, options), *refused[row.vmid]},
            )
            for index, row in enumerate(waiting)
        ]
        again: list[VmRow] = []
        plans = {one.item.desired.guest.vmid: one for one in round_.planner.plan_again(items)}
        for row in waiting:
            planned = plans[row.vmid]
            node = _refused_node(planned.error)
            if node and node not in refused[row.vmid]:
                refused[row.vmid][node] = planned.error.answer if planned.error else ""
                again.append(row)
                continue
            _take(round_, options, ha, row, planned, refused[row.vmid])
        waiting = again


def _excluded(
    round_: MaintenancePlanning, ha: HaManagerState, row: VmRow, options: MaintenanceOptions
) -> set[str]:
    """Return the nodes that the rules of the HA manager or an approved plan exclude for a guest."""
    sid = sid_of(row)
    nodes = set(round_.cluster.nodes)
    found = excluded(ha, sid, options.node, nodes)
    approved = round_.plan_book.target_of(row.vmid)
    for target in filter(None, (round_.targets.get(ha.together.get(sid, frozenset())), approved)):
        found |= nodes - {target}
    return found


def _refused_node(error: FleetError | None) -> str:
    """Return the node to which PVE cannot migrate the guest, empty for another error."""
    if not isinstance(error, NotSupported):
        return ""
    return str(error.details.get("node") or "")


def _take(
    round_: MaintenancePlanning,
    options: MaintenanceOptions,
    ha: HaManagerState,
    row: VmRow,
    planned: PlannedGuest,
    refused: Mapping[str, str],
) -> None:
    """Turn the plan of a guest into the decision about it."""
    vm_plan, actual = planned.vm_plan, planned.actual
    if vm_plan is None or actual is None:
        reason = _reason(planned.error, refused.values(), options.node)
        round_.decisions[row.vmid] = GuestDecision(row, STAY, reason)
        return
    if actual.marker.building:
        reason = "its creation is not finished"
        round_.decisions[row.vmid] = GuestDecision(row, STAY, reason)
        return
    choice = vm_plan.context.choice
    target = choice.node if choice else ""
    why = "; ".join(choice.reasons[1:]) if choice else ""
    group = ha.together.get(sid_of(row))
    if group:
        round_.targets.setdefault(group, target)
    is_restart = actual.running and not actual.kind.saves_memory
    seconds = seconds_of(actual, round_.cluster, options.rate)
    action = RESTART if is_restart else MIGRATE
    round_.decisions[row.vmid] = GuestDecision(row, action, why, target, seconds, planned)


def _reason(error: FleetError | None, refused: Collection[str], node: str) -> str:
    """Return why a guest cannot leave: the answer of PVE, else why no node fits."""
    causes = list(dict.fromkeys(refused))
    if causes:
        return "; ".join(causes)
    if error is None:
        return "it is gone"
    others = dict(error.details.get("nodes") or {})
    others.pop(node, None)
    return by_reason(others) or error.answer or error.message


def _plan_stops(round_: MaintenancePlanning, options: MaintenanceOptions) -> None:
    stuck = [one for one in round_.decisions.values() if one.action == STAY and runs(one.row)]
    items = [stopping_item(one.row, index, options) for index, one in enumerate(stuck)]
    plans = {one.item.desired.guest.vmid: one for one in round_.planner.plan_again(items)}
    for one in stuck:
        planned = plans[one.row.vmid]
        action, why = STOP, one.why
        if planned.error is not None:
            action, why = STAY, f"{why}; {planned.error.message}"
        round_.decisions[one.row.vmid] = GuestDecision(one.row, action, why, planned=planned)
