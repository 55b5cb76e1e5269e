# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shows the plan of a whole maintenance to the plan book: its record, each guest that leaves, its return.

The return cannot be planned before the node is back. Its requests follow from the plan by one rule:
each guest goes back to the node that it left, from the node on which it is then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._foundation.plans.document import PlannedGuest
from ..._foundation.plans.requests import ANY
from ..._foundation.resource.plan import Plan, Step
from ..._guests.kinds.words import kind_of_row
from .execute import noout_plan
from .guests import tenant_in
from .keep import recording
from .model import HA, STOP, GuestDecision, MaintenanceOptions
from .planning import runs
from .read import read_notes

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def keep_record_writes(
    client: Client, options: MaintenanceOptions, summary: str, *, noout: bool
) -> None:
    """Show the writes beside those of guests: the records in the notes of the node and of the next
    one, and with `noout` the flag of Ceph.
    """
    for node in filter(None, (options.node, options.next_node)):
        notes, _record, _digest = read_notes(client, node)
        client.plan_book.keep(recording(node, summary, notes))
    if noout:
        client.plan_book.keep(noout_plan(True))
        client.plan_book.keep(noout_plan(False))


def keep_leaving(
    client: Client, options: MaintenanceOptions, decisions: Iterable[GuestDecision]
) -> None:
    """Show the plan of each guest that leaves or is shut down, with its return."""
    for one in decisions:
        if one.planned is not None and one.planned.vm_plan is not None:
            vm_plan = one.planned.vm_plan
            steps = (*vm_plan.plan.steps, *_returns(one, vm_plan.plan.steps, options))
            client.plan_book.keep(replace(vm_plan.plan, steps=steps), vm_plan.planned_guest)
        elif one.action == HA:
            client.plan_book.keep(*_by_ha(one, options))


def keep_returning(client: Client, decisions: Iterable[GuestDecision]) -> None:
    """Show the plan of each guest that returns now."""
    for one in decisions:
        if one.planned is not None and one.planned.vm_plan is not None:
            client.plan_book.keep(one.planned.vm_plan.plan, one.planned.vm_plan.planned_guest)


def require_approved_ha(
    client: Client, options: MaintenanceOptions, decisions: Iterable[GuestDecision]
) -> None:
    """Raise NotApproved, before the first write, for a guest that the HA manager would move although
    the approved plan does not have it: the maintenance mode of a node has no exceptions.
    """
    for one in decisions:
        if one.action == HA:
            client.plan_book.agree(*_by_ha(one, options))


def _returns(
    decision: GuestDecision, steps: Iterable[Step], options: MaintenanceOptions
) -> list[Step]:
    """Return the steps that take back the steps of a guest that leaves or is shut down."""
    found: list[Step] = []
    for step in steps:
        if step.action == "migrate":
            found.append(_back(decision, dict(step.data), options))
    if decision.action == STOP and runs(decision.row):
        path = _path(decision, options.node)
        found.append(Step("start", f"Start {decision.label}", "POST", (*path, "status", "start")))
    return found


def _back(decision: GuestDecision, data: dict[str, Any], options: MaintenanceOptions) -> Step:
    summary = f"Migrate {decision.label} back to node {options.node}"
    path = (*_path(decision, ANY), "migrate")
    return Step("migrate", summary, "POST", path, {**data, "target": options.node})


def _path(decision: GuestDecision, node: str) -> tuple[str | int, ...]:
    return "nodes", node, decision.row.type, decision.row.vmid


def _by_ha(decision: GuestDecision, options: MaintenanceOptions) -> tuple[Plan, PlannedGuest]:
    """Return the plan of a guest that the HA manager moves: only its return can be a request. The
    method C(HA) stands for the move.
    """
    row = decision.row
    data: dict[str, Any] = {}
    if runs(row) and kind_of_row(row).saves_memory:
        data = {"online": 1}
    elif runs(row):
        data = {"restart": 1, "timeout": options.shutdown_timeout}
    path = _path(decision, options.node)
    move = Step("ha", f"Wait until the HA manager has moved {decision.label}", "HA", path)
    plan = Plan((move, _back(decision, data, options)))
    kind, tenant = kind_of_row(row), tenant_in(row, options.tenant_prefix)
    tag = f"{options.tenant_prefix}{tenant}".lower() if tenant else ""
    name = row.own_name or f"{kind.noun} {row.vmid}"
    return plan, PlannedGuest(row.type, tag, name, row.vmid, row.node)
