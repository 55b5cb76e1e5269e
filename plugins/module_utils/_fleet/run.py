# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vms: read the list, plan all VMs from one cluster state, execute, prune."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._cluster.state import VmRow
from .._core import validate
from .._core.errors import FleetError
from .._core.parallel import side_by_side
from .._core.result import Result
from .concurrency import ConcurrencyLimits
from .execute import Executor, Outcome, foresee
from .items import Estate, Scope, read_estate
from .plan import (
    Planned,
    Planner,
    counting,
    refuse_foreign,
    refuse_given_away,
    refuse_look_alikes,
    still_unwanted,
    still_within,
)
from .report import report
from .reservations import Reservations

if TYPE_CHECKING:
    from .._api.client import Client


# Sites that are worked on at the same time.
_SITES_AT_ONCE = 16


@dataclass(frozen=True)
class Work:
    """What came of the VMs of one site, in the order of the list, and warnings of the run."""

    outcomes: list[Outcome]
    notes: tuple[str, ...] = ()


def run(
    params: Mapping[str, Any],
    client: Client,
    check_mode: bool = False,
) -> Result:
    """Make the VMs of a list what it says; in check mode plan it and write nothing.

    A VM that fails does not stop the others, but nothing is pruned then.
    """
    estate = read_estate(params, client)
    return _reported([work_on(estate, client, check_mode)], params, check_mode)


def run_at_sites(
    params: Mapping[str, Any],
    clients: Sequence[tuple[Collection[str], Client]],
    check_mode: bool = False,
) -> Result:
    """Do the same for VMs of several sites, side by side, each list of sites with its client.

    Where a site fails as a whole, its VMs fail, and those of the others do not.
    """

    def one(part: tuple[Collection[str], Client]) -> Work:
        sites, client = part
        named = read_estate(params, None, sites)
        try:
            done = work_on(read_estate(params, client, sites), client, check_mode)
        except FleetError as error:
            return Work([_failed_as_a_whole(Planned(item), error) for item in named.items])
        site = max(sites)
        return Work([_of_site(outcome, site) for outcome in done.outcomes], done.notes)

    return _reported(side_by_side(one, clients, _SITES_AT_ONCE), params, check_mode)


def sites_of(params: Mapping[str, Any]) -> list[str]:
    """Return the sites of the VMs of a run; an empty text is the site of the task.

    Raises FleetError for a mistake in the list, where it names sites at all.
    """
    settings = params.get("tenant_settings") or {}
    given = [*settings.values(), *params["vms"]]
    if not any(map(_names_site, given)):
        return [""]
    estate = read_estate(params, None)
    found = {item.site for item in estate.items}
    return sorted(found) or [""]


def _names_site(given: Any) -> bool:
    """Return whether the settings of a tenant or the options of a VM name a site.

    They are not checked yet.
    """
    if not isinstance(given, Mapping):
        return False
    return bool(given.get("site"))


def _failed_as_a_whole(planned: Planned, error: FleetError) -> Outcome:
    return Outcome(replace(planned, error=error), error=error)


def _of_site(outcome: Outcome, site: str) -> Outcome:
    """Return the outcome with the site of a VM that was pruned."""
    item = outcome.planned.item
    if not item.pruned:
        return outcome
    item = replace(item, site=site)
    planned = replace(outcome.planned, item=item)
    return replace(outcome, planned=planned)


def _reported(works: Sequence[Work], params: Mapping[str, Any], check_mode: bool) -> Result:
    """Return the result of the run: VMs in the order of the list, then those that were pruned."""
    outcomes: list[Outcome] = []
    notes: list[str] = []
    for work in works:
        outcomes += work.outcomes
        notes += work.notes
    outcomes.sort(key=_place)
    details = params.get("details") is not False
    result = report(outcomes, check_mode=check_mode, details=details)
    return replace(result, warnings=(*result.warnings, *notes))


def _place(outcome: Outcome) -> tuple[bool, int]:
    """Return what sorts outcomes: VMs of the list in its order, then those that were pruned."""
    item = outcome.planned.item
    return item.pruned, item.index


def work_on(estate: Estate, client: Client, check_mode: bool) -> Work:
    """Return what came of the VMs of one site."""
    params, items, scope = estate.params, estate.items, estate.scope
    most = read_concurrency(params)
    batch = validate.number(params["reboot_batch"], 0, 1000, "reboot_batch")
    if scope is not None and not items:
        raise validate.refused(
            "vms",
            [],
            f"is empty, and prune would remove all VMs with the {scope.label}",
            "List the VMs with state=absent to remove all of them",
        )
    if not items:
        return Work([])
    planned_at = client.clock.monotonic()
    planner = Planner(client, check_mode)
    located = planner.look_up(items)
    unwanted: list[Planned] = []
    if scope is not None:
        unwanted = planner.prune(params, scope, located)
    plans = counting(planner.plan_located(located), planner.leaving)
    if params.get("remove"):
        refuse_foreign(plans, planner)
    if scope is not None:
        plans = refuse_look_alikes(plans, planner.cluster, scope)
        unwanted = still_unwanted(unwanted, plans)
        refuse_given_away(unwanted, estate.items, estate.others, scope)
    if check_mode:
        outcomes = foresee(plans)
        if _failed(outcomes):
            outcomes += _kept(unwanted)
        else:
            outcomes += foresee(unwanted)
        return Work(outcomes, planner.notes)
    reservations = Reservations(client, planner.cluster)
    executor = Executor(client, reservations, most, planned_at, batch)
    outcomes = _execute(executor, plans)
    if scope is not None and unwanted:
        if _failed(outcomes):
            outcomes += _kept(unwanted)
        else:
            outcomes += _prune(executor, reservations, client, scope, unwanted)
    return Work(outcomes, planner.notes)


def read_concurrency(params: Mapping[str, Any]) -> ConcurrencyLimits:
    """Return the limits of concurrent tasks. Raises ValidationFailed."""
    return ConcurrencyLimits(
        all=_limit(params, "parallel"),
        node=_limit(params, "parallel_per_node"),
        storage=_limit(params, "parallel_per_storage"),
        template=_limit(params, "parallel_per_template"),
    )


def _limit(params: Mapping[str, Any], option: str) -> int:
    return validate.number(params[option], 0, 1000, option)


def _execute(executor: Executor, plans: list[Planned]) -> list[Outcome]:
    """Return the outcome of each VM.

    Templates are removed when all else is done, because linked clones depend on them.
    """
    first: list[Planned] = []
    late: list[Planned] = []
    for planned in plans:
        is_template = planned.found is not None and planned.found.template
        group = late if is_template and planned.is_removal else first
        group.append(planned)
    outcomes = executor.execute(first)
    if late:
        outcomes += executor.execute(late)
    return sorted(outcomes, key=_place)


def _failed(outcomes: list[Outcome]) -> bool:
    return any(outcome.error is not None for outcome in outcomes)


def _prune(
    executor: Executor,
    reservations: Reservations,
    client: Client,
    scope: Scope,
    unwanted: list[Planned],
) -> list[Outcome]:
    """Remove the VMs that are not in the list, each after a last check of the scope."""
    try:
        cluster = reservations.read(client.clock.monotonic())
    except FleetError as error:  # the outcomes of the listed VMs must not be lost
        return [Outcome(planned, error=planned.error or error) for planned in unwanted]

    def before(planned: Planned) -> None:
        actual = planned.actual
        if actual is not None:
            row: VmRow | None = cluster.vms.get(actual.vmid)
            still_within(scope, actual, row)

    return executor.execute(unwanted, before)


def _kept(unwanted: list[Planned]) -> list[Outcome]:
    """Return the outcomes of VMs that are not pruned because others failed."""
    return [Outcome(planned, error=planned.error) for planned in unwanted]
