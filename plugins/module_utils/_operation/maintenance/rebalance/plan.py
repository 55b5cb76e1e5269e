# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans the moves that balance nodes; each move is the plan of a guest that leaves its node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.rules import read_rules, with_site
from ...._foundation.cluster.state import VmRow, query_nodes
from ...._foundation.core.quantities import readable_size
from ...._guests.fleet.plan import FleetPlanner
from ...._guests.guest.registry import LISTS
from ...._infrastructure.datacenter.ha.sids import sid_of
from ..guests import tenant_in
from ..model import STAY, GuestDecision, HaManagerState, MaintenanceOptions
from ..planning import MaintenancePlanning, choose, decide_early, runs
from ..times.estimate import copied_bytes, local_bytes
from .score import NodeBalance, balance_of, propose

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


@dataclass(frozen=True)
class RebalanceLimits:
    """The budget of a run: the number of moves, and the bytes that they copy. `threshold` is the
    score at which the nodes are balanced enough. `tenants` are the owners of the guests that may
    move, empty for all. `placements` are the placement rules by tenant.
    """

    moves: int
    size: int
    threshold: float
    local_disks: bool = False
    tenants: frozenset[str] = frozenset()
    placements: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def rules_of(self, row: VmRow, options: MaintenanceOptions) -> dict[str, Any]:
        """Return the placement rules of a guest: its tenant's rules override the shared rules."""
        tenant = tenant_in(row, options.tenant_prefix) or ""
        own = self.placements.get(tenant, {})
        return {**options.placement, **{key: value for key, value in own.items() if value}}


@dataclass
class RebalancePlan:
    """The moves so far, the guests that cannot move, and the balance that results."""

    before: NodeBalance
    after: NodeBalance
    moves: list[GuestDecision] = field(default_factory=list)
    staying: list[GuestDecision] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True)
class _Planning:
    """One plan of moves: its options and its state."""

    round_: MaintenancePlanning
    options: MaintenanceOptions
    ha: HaManagerState
    limits: RebalanceLimits
    found: RebalancePlan


def plan_rebalance(
    client: Client, options: MaintenanceOptions, ha: HaManagerState, limits: RebalanceLimits
) -> RebalancePlan:
    """Return the moves within the budget, the most useful one first. Nothing is written."""
    planner = FleetPlanner(client, False, LISTS)
    cluster = query_nodes(client.direct(), planner.cluster, planner.cluster.nodes, full=True)
    balance = balance_of(cluster, with_site(read_rules(options.placement), client.connection))
    planning = _Planning(
        MaintenancePlanning(planner, cluster), options, ha, limits, RebalancePlan(balance, balance)
    )
    now = datetime.fromtimestamp(client.clock.time())
    free: dict[int, VmRow] = {}
    for row in sorted(cluster.guests, key=lambda one: one.vmid):
        if not _takes_part(row, options, limits):
            continue
        decision = _decide_early(row, planning, now)
        if decision is None:
            free[row.vmid] = row
        else:
            planning.found.staying.append(decision)
    _plan_moves(planning, free)
    return planning.found


def _takes_part(row: VmRow, options: MaintenanceOptions, limits: RebalanceLimits) -> bool:
    is_candidate = options.move_stopped or runs(row)
    if row.template or not is_candidate:
        return False
    return not limits.tenants or tenant_in(row, options.tenant_prefix) in limits.tenants


def _decide_early(row: VmRow, planning: _Planning, now: datetime) -> GuestDecision | None:
    """Return the decision about a guest that must not move, or None."""
    sid = sid_of(row)
    reason = ""
    if row.lock:
        reason = f"it has the lock {row.lock}"
    elif planning.ha.balances and sid in planning.ha.managed:
        reason = "the HA manager itself balances its resources (crs.ha_auto_rebalance)"
    elif sid in planning.ha.together:
        reason = "a rule of the HA manager keeps it with other guests"
    if reason:
        return GuestDecision(row, STAY, reason)
    return decide_early(row, replace(planning.options, node=row.node), planning.ha, {}, now)


def _plan_moves(planning: _Planning, free: dict[int, VmRow]) -> None:
    """Plan one move after the other; each sees the moves before it."""
    limits, found = planning.limits, planning.found
    while len(found.moves) < limits.moves and found.after.score > limits.threshold:
        proposal = propose(found.after, free.values())
        if proposal is None:
            return
        row = free.pop(proposal.row.vmid)
        avoided = found.after.memory.keys() - set(proposal.nodes)
        rules = planning.limits.rules_of(row, planning.options)
        excluded = {*(rules.get("exclude") or ()), *avoided}
        options = replace(
            planning.options, node=row.node, placement={**rules, "exclude": sorted(excluded)}
        )
        choose(planning.round_, options, planning.ha, [row])
        decision = planning.round_.decisions[row.vmid]
        size, reason = _cost_of(decision, planning)
        if reason:
            found.staying.append(GuestDecision(row, STAY, reason))
            if decision.planned is not None:
                planning.round_.planner.withdraw(decision.planned)
            continue
        found.moves.append(decision)
        found.size += size
        found.after = found.after.after(row, decision.target)


def _cost_of(decision: GuestDecision, planning: _Planning) -> tuple[int, str]:
    """Return the bytes that a move copies, and the reason against it, empty if it is made."""
    actual = decision.planned.actual if decision.planned is not None else None
    if actual is None or decision.is_stuck:
        return 0, decision.why
    cluster, limits = planning.round_.cluster, planning.limits
    size = copied_bytes(actual, cluster)
    local = local_bytes(actual, cluster)
    if local and not limits.local_disks:
        text = readable_size(local)
        return size, f"it has {text} on disks that only its node has, which local_disks allows"
    if planning.found.size + size > limits.size:
        return size, f"its move copies {readable_size(size)}, more than is left of max_size"
    return size, ""
