# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vms: read the list, plan all VMs from one cluster state, execute, prune."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.state import VmRow
from ..._foundation.core import validate
from ..._foundation.core.errors import FleetError
from ..._foundation.core.parallel import SITES_AT_ONCE, ConcurrencyLimits, side_by_side
from ..._foundation.core.result import Result
from ..._protection.backup.job.maintain import JobsOutcome
from ..guest.registry import LISTS
from .backup_jobs import maintained_jobs, planned_jobs, with_jobs
from .execute import Executor, VmOutcome, preview_all
from .items import Estate, PruneScope, VmItem, read_estate
from .placement_rules import PlacementKeeper, RulesOutcome
from .plan import (
    FleetPlanner,
    PlannedGuest,
    mark_case_duplicates,
    not_pruned,
    require_not_given_away,
    require_own,
    require_within,
    still_unwanted,
    with_leaving,
)
from .report import report, with_rules
from .reservations import Reservations

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass(frozen=True)
class SiteWork:
    """The outcomes of one site: VMs in the order of the list, warnings, backup jobs, HA rules."""

    outcomes: list[VmOutcome]
    notes: tuple[str, ...] = ()
    jobs: JobsOutcome | None = None  # None if no guest has the option C(backup)
    rules: RulesOutcome = RulesOutcome()
    site: str = ""  # set if the run covers several sites


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Create, change or remove the VMs of a list as desired; check mode only plans.

    If a VM fails, the others continue, but nothing is pruned.
    """
    estate = read_estate(params, client)
    return _reported([work_on(estate, client, check_mode)], params, check_mode)


def run_at_sites(
    params: Mapping[str, Any],
    clients: Sequence[tuple[Collection[str], Client]],
    check_mode: bool = False,
) -> Result:
    """Do the same at several sites in parallel; `clients` pairs the names of sites with a client.

    If a whole site fails, only its own VMs fail.
    """

    def one(part: tuple[Collection[str], Client]) -> SiteWork:
        sites, client = part
        named = read_estate(params, None, sites)
        try:
            done = work_on(read_estate(params, client, sites), client, check_mode)
        except FleetError as error:
            return SiteWork(
                [VmOutcome(PlannedGuest(item, error=error), error=error) for item in named.items]
            )
        site = max(sites)
        outcomes = [_of_site(outcome, site) for outcome in done.outcomes]
        return replace(done, outcomes=outcomes, site=site)

    return _reported(side_by_side(one, clients, SITES_AT_ONCE), params, check_mode)


def sites_of(params: Mapping[str, Any]) -> list[str]:
    """Return the sites of the VMs of a run; an empty text is the site of the task.

    Raises FleetError for a mistake in the list, but only if a VM or a tenant names a site.
    """
    settings = params.get("tenant_settings") or {}
    given = list(settings.values())
    for one in LISTS:
        given += params.get(one.option) or ()
    if not any(map(_names_site, given)):
        return [""]
    estate = read_estate(params, None)
    found = {item.site for item in estate.items}
    return sorted(found) or [""]


def _names_site(given: Any) -> bool:
    """Return whether settings of a tenant or a VM name a site, before they are checked."""
    return isinstance(given, Mapping) and bool(given.get("site"))


def _of_site(outcome: VmOutcome, site: str) -> VmOutcome:
    """Return the outcome; the item of a pruned VM gets the site."""
    item = outcome.planned.item
    if not item.pruned:
        return outcome
    item = replace(item, site=site)
    planned = replace(outcome.planned, item=item)
    return replace(outcome, planned=planned)


def _reported(works: Sequence[SiteWork], params: Mapping[str, Any], check_mode: bool) -> Result:
    """Return the result of the run: VMs in the order of the list, then the pruned VMs."""
    outcomes: list[VmOutcome] = []
    notes: list[str] = []
    for work in works:
        outcomes += work.outcomes
        notes += work.notes
    outcomes.sort(key=_place)
    details = params.get("details") is not False
    result = report(outcomes, check_mode=check_mode, details=details)
    jobs = [(work.site, work.jobs) for work in works if work.jobs is not None]
    result = with_jobs(result, jobs)
    result = replace(result, warnings=(*result.warnings, *notes))
    return with_rules(result, [work.rules for work in works])


def _place(outcome: VmOutcome) -> tuple[bool, int, int]:
    """Return the sort key of an outcome: VMs in the order of the list, then the pruned VMs."""
    item = outcome.planned.item
    return item.pruned, *item.order


def work_on(estate: Estate, client: Client, check_mode: bool) -> SiteWork:
    """Plan and execute the VMs of one site, and return their outcomes."""
    params, items, scope = estate.params, estate.items, estate.scope
    limits = read_concurrency(params)
    batch = validate.number(params["reboot_batch"], 0, 1000, "reboot_batch")
    _require_kept(items, scope)
    if not items:
        return SiteWork([])
    planned_at = client.clock.monotonic()
    lists = [one for one in LISTS if any(item.kind is one for item in items)]
    planner = FleetPlanner(client, check_mode, lists)
    located = planner.locate(items)
    unwanted: list[PlannedGuest] = []
    notes: tuple[str, ...] = ()
    if scope is not None:
        unwanted = planner.prune(params, scope, located)
        notes = (*planner.notes, *not_pruned(planner.cluster, scope))
    plans = with_leaving(planner.plan_located(located), planner.leaving)
    if params.get("remove"):
        require_own(plans, planner)
    if scope is not None:
        plans = mark_case_duplicates(plans, planner.cluster, scope)
        unwanted = still_unwanted(unwanted, plans)
        require_not_given_away(unwanted, estate.items, estate.others, scope)
    jobs = planned_jobs(params, client, plans, planner.cluster)
    keeper = PlacementKeeper(plans, planner.cluster, client)
    keeper.require_possible(unwanted)
    if check_mode:
        outcomes = _previewed(plans, unwanted)
        return SiteWork(outcomes, notes, jobs, keeper.run(outcomes, True))
    reservations = Reservations(client, planner.cluster)
    executor = Executor(client, reservations, limits, planned_at, batch)
    outcomes = _execute(executor, plans)
    if scope is not None and unwanted:
        if _failed(outcomes):
            outcomes += _kept(unwanted)
        else:
            outcomes += _prune(executor, reservations, client, scope, unwanted)
    jobs = maintained_jobs(client, outcomes, jobs)
    return SiteWork(outcomes, notes, jobs, keeper.run(outcomes, False))


def _previewed(plans: list[PlannedGuest], unwanted: list[PlannedGuest]) -> list[VmOutcome]:
    """Return the outcomes that a run would have; nothing is pruned if a VM fails."""
    outcomes = preview_all(plans)
    if _failed(outcomes):
        return outcomes + _kept(unwanted)
    return outcomes + preview_all(unwanted)


def _require_kept(items: Sequence[VmItem], scope: PruneScope | None) -> None:
    """Raise ValidationFailed for an empty list, which would prune the whole scope (pure)."""
    if scope is None or items:
        return
    raise validate.refused(
        "vms",
        [],
        f"is empty, and prune would remove all VMs with the {scope.label}",
        "List the guests with state=absent to remove all of them",
    )


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


def _execute(executor: Executor, plans: list[PlannedGuest]) -> list[VmOutcome]:
    """Return the outcome of each VM; templates are removed last, as linked clones need them."""
    first: list[PlannedGuest] = []
    late: list[PlannedGuest] = []
    for planned in plans:
        is_template = planned.found is not None and planned.found.template
        group = late if is_template and planned.is_removal else first
        group.append(planned)
    outcomes = executor.execute(first)
    if late:
        outcomes += executor.execute(late)
    return sorted(outcomes, key=_place)


def _failed(outcomes: list[VmOutcome]) -> bool:
    return any(outcome.error is not None for outcome in outcomes)


def _prune(
    executor: Executor,
    reservations: Reservations,
    client: Client,
    scope: PruneScope,
    unwanted: list[PlannedGuest],
) -> list[VmOutcome]:
    """Remove the VMs that are not in the list, each after a last check of the scope."""
    try:
        cluster = reservations.read(client.clock.monotonic())
    except FleetError as error:  # the outcomes of the listed VMs must not be lost
        return [VmOutcome(planned, error=planned.error or error) for planned in unwanted]

    def before(planned: PlannedGuest) -> None:
        actual = planned.actual
        if actual is not None:
            row: VmRow | None = cluster.vms.get(actual.vmid)
            require_within(scope, actual, row)

    return executor.execute(unwanted, before)


def _kept(unwanted: list[PlannedGuest]) -> list[VmOutcome]:
    """Return the outcomes of VMs that are not pruned because others failed."""
    return [VmOutcome(planned, error=planned.error) for planned in unwanted]
