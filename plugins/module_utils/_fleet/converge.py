# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vms: read the wishes, plan all VMs from one look, carry out, prune, report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._cluster.picture import VmRow
from .._core import validate
from .._core.result import Result
from .carry import Crew, Outcome, foresee
from .claims import Claims
from .gates import Most
from .plan import Planned, Planner, refuse_look_alikes, still_within
from .report import report
from .wish import Scope, read_items, read_scope

if TYPE_CHECKING:
    from .._api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Make the VMs of a list what it says; in check mode plan it and write nothing.

    A VM that fails does not stop the others, but nothing is pruned then.
    """
    items = read_items(params)
    most = read_most(params)
    scope = read_scope(params) if params.get("prune") else None
    if scope is not None and not items:
        raise validate.refused(
            "vms", [], f"is empty, and prune would remove all VMs with the {scope.label}",
            "List the VMs with state=absent if all of them shall go",
        )  # fmt: skip
    planned_at = client.clock.monotonic()
    planner = Planner(client, check_mode)
    plans = planner.plan(items)
    if scope is not None:
        plans = refuse_look_alikes(plans, planner.picture, scope)
    unwanted = planner.prune(params, scope, plans) if scope is not None else []
    if check_mode:
        outcomes = foresee(plans)
        return report([*outcomes, *(_kept(unwanted) if _failed(outcomes) else foresee(unwanted))])
    claims = Claims(client, planner.picture)
    crew = Crew(client, claims, most, planned_at)
    outcomes = _carry_out(crew, plans)
    if scope is not None and unwanted:
        outcomes += _kept(unwanted) if _failed(outcomes) else _prune(crew, claims, client, scope, unwanted)
    return report(outcomes)


def read_most(params: Mapping[str, Any]) -> Most:
    """Return how much may go on at once. Raises ValidationFailed."""
    names = {"all": "parallel"} | {kind: f"parallel_per_{kind}" for kind in ("node", "storage", "template")}
    return Most(**{kind: validate.number(params[name], 0, 1000, name) for kind, name in names.items()})


def _carry_out(crew: Crew, plans: list[Planned]) -> list[Outcome]:
    """Return how each VM fared. Templates are removed when all else is done: linked clones hold on to them."""

    def is_late(planned: Planned) -> bool:
        return planned.found is not None and planned.found.template and planned.item.desired.state == "absent"

    late = [planned for planned in plans if is_late(planned)]
    outcomes = crew.carry_out([planned for planned in plans if not is_late(planned)])
    if late:
        outcomes += crew.carry_out(late)
    return sorted(outcomes, key=lambda outcome: outcome.planned.item.index)


def _failed(outcomes: list[Outcome]) -> bool:
    return any(outcome.error is not None for outcome in outcomes)


def _prune(crew: Crew, claims: Claims, client: Client, scope: Scope, unwanted: list[Planned]) -> list[Outcome]:
    """Remove what is not in the list, each after a last look whether it still lies within the scope."""
    picture = claims.read(client.clock.monotonic())

    def before(planned: Planned) -> None:
        if planned.prepared is not None and planned.prepared.actual is not None:
            actual = planned.prepared.actual
            row: VmRow | None = picture.vms.get(actual.vmid)
            still_within(scope, actual, row)

    return crew.carry_out(unwanted, before)


def _kept(unwanted: list[Planned]) -> list[Outcome]:
    """Return the outcomes of VMs that are not pruned because others failed."""
    return [Outcome(planned, error=planned.error) for planned in unwanted]
