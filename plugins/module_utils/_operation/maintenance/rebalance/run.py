# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module rebalance: checks, then the moves within the budget."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.rules import read_rules, with_site
from ...._foundation.cluster.state import fetch_cluster_state
from ...._foundation.core import validate
from ...._foundation.core.clock import poll
from ...._foundation.core.errors import FleetError
from ...._foundation.core.formatting import counted
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.quantities import GIB, parse_size, readable_size
from ...._foundation.core.result import Result
from ...._foundation.core.texts.plan_lines import FAILED, PlanLine, plan_lines
from ...._foundation.resource.engine import after_writes
from ...._guests.guest.flow.apply import require_permitted
from ..execute import MaintenanceOutcomes, execute
from ..model import MaintenanceOptions
from ..options import read_moves, read_placement
from ..read import MaintenanceFacts, read_active, read_facts, read_members
from ..report import blocked, diff_of, estimate, failed, line_of, row_of, tenant_label
from ..standing import find_late, find_moves, find_unrest
from ..times.windows import remaining
from .plan import RebalanceLimits, RebalancePlan, plan_rebalance
from .score import NodeBalance, balance_of

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Move guests until the nodes are balanced or the budget is spent; check mode writes nothing.
    Raises FleetError.
    """
    options = read_moves(params, check_mode)
    limits = _read_limits(params)
    if not check_mode:
        _require_no_moves(client, options.task_timeout)
    facts = read_facts(client, "")
    found = plan_rebalance(client, options, facts.ha, limits)
    if found.moves:
        _require_in_order(facts, found, options, datetime.fromtimestamp(client.clock.time()))
    if check_mode:
        require_permitted(client, [one.planned.vm_plan for one in found.moves if one.planned])
    if check_mode or not found.moves:
        return _result(found, options, found.after, MaintenanceOutcomes())
    return _execute(client, options, found)


def _require_in_order(
    facts: MaintenanceFacts, found: RebalancePlan, options: MaintenanceOptions, now: datetime
) -> None:
    """Raise an error if the cluster is not in order, or if the moves would take too long."""
    seconds = remaining(options.windows, now)
    needed = estimate(found.moves, options.parallel)
    blockers = [*find_unrest(facts), *find_late(options.windows, seconds, needed)]
    if blockers:
        raise blocked("No guest was moved", blockers, "cluster not in order")


def _read_limits(params: Mapping[str, Any]) -> RebalanceLimits:
    """Return the budget and the guests that may move. Raises ValidationFailed."""
    given = params.get("tenant_placement") or {}
    return RebalanceLimits(
        moves=validate.number(params["max_moves"], 0, 10_000, "max_moves"),
        size=parse_size(params["max_size"], bare=GIB, what="max_size"),
        threshold=float(validate.number(params["threshold"], 0, 100, "threshold")),
        local_disks=params["local_disks"],
        tenants=frozenset(str(one).lower() for one in params.get("tenants") or ()),
        placements={
            str(tenant).lower(): read_placement(rules, f"tenant_placement.{tenant}")
            for tenant, rules in given.items()
        },
    )


def _require_no_moves(client: Client, timeout: float) -> None:
    """Wait for moves of an interrupted run, or of others. Raises NodeUnhealthy with those that last
    longer, because moves planned beside them would use nodes that they fill.
    """
    _quorate, members = read_members(client)
    nodes = [node for node, is_online in members.items() if is_online]
    moving: list[str] = []
    for _remaining in poll(client.clock, timeout, longest=5.0):
        tasks = [
            row for active in side_by_side(partial(read_active, client), nodes) for row in active
        ]
        current = client.direct().get("cluster", "ha", "status", "current")
        moving = find_moves(tasks, current or ())
        if not moving:
            return
    raise blocked("No guest was moved", moving, "moves in progress")


def _execute(client: Client, options: MaintenanceOptions, found: RebalancePlan) -> Result:
    """Move the guests, and measure the balance afterwards."""
    moved = MaintenanceOutcomes()
    for outcome in execute(client, options, found.moves):
        moved.note(outcome)
    failure = None
    if moved.failed:
        attempted = f"{counted(len(moved.failed), 'guest')} could not move"
        failure = failed(attempted, moved.failed, found.moves)
    rules = with_site(read_rules(options.placement), client.connection)
    with after_writes(moved.done):
        measured = balance_of(fetch_cluster_state(client.direct()), rules)
    return _result(found, options, measured, moved, failure)


def _result(
    found: RebalancePlan,
    options: MaintenanceOptions,
    after: NodeBalance,
    moved: MaintenanceOutcomes,
    failure: FleetError | None = None,
) -> Result:
    """Return the result; `after` is the predicted balance, or the balance measured after moves."""
    plan = [text for one in found.moves for text in one.summaries]
    before = found.before
    values: dict[str, Any] = {
        "rebalance": {
            "score_before": round(before.score, 2),
            "score_after": round(after.score, 2),
            "nodes": [
                {
                    "node": node,
                    "share_before": round(share, 1),
                    "share_after": round(after.shares.get(node, 0.0), 1),
                }
                for node, share in sorted(before.shares.items())
            ],
            "moves": [row_of(one) for one in found.moves],
            "stays": [row_of(one) for one in found.staying],
            "size": found.size,
            "seconds": round(estimate(found.moves, options.parallel)),
        },
        "report": _lines(found, after, options, moved),
        "plan": plan,
        "done": moved.done,
    }
    changed = bool(plan)
    if failure is not None:
        changed = bool(moved.done or failure.details.get("unverified"))
    diff = diff_of("cluster", found.moves) if changed else {"before": {}, "after": {}}
    return Result(changed, values, diff, tuple(moved.warnings), failure)


def _lines(
    found: RebalancePlan,
    after: NodeBalance,
    options: MaintenanceOptions,
    moved: MaintenanceOutcomes,
) -> list[str]:
    """Return the report for people: each move, each guest that cannot move, and the score."""
    number = len(found.moves if options.check_mode else moved.reached)
    moves = counted(number, "move")
    score = (
        f"  score {found.before.score:.1f} before, {after.score:.1f} after {moves} "
        f"of {readable_size(found.size)}"
    )
    rows = [line_of(one, options, moved) for one in found.moves]
    rows += [
        PlanLine(FAILED, tenant_label(one.row, options.tenant_prefix), f"stays: {one.why}")
        for one in found.staying
    ]
    return plan_lines(rows, check_mode=options.check_mode, more=[score])
