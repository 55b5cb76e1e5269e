# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vms: read the list, plan all VMs from one cluster state, execute, prune."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.quota import AUTO
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.core import validate
from ..._foundation.core.errors import FleetError
from ..._foundation.core.parallel import SITES_AT_ONCE, ConcurrencyLimits, side_by_side
from ..._foundation.core.result import Result
from ..._protection.backup.job.maintain import JobsOutcome
from ..guest.registry import LISTS
from .backup_jobs import maintained_jobs, planned_jobs, with_jobs
from .execute import Executor, VmOutcome, preview_all
from .items import Estate, PruneScope, VmItem, lists_of, read_estate
from .over_sites.auto import place_guests
from .over_sites.moved import SitePlans, find_moved
from .over_sites.totals import NO_TOTALS, Totals, keep_last_use, read_totals, refuse_excess
from .placement_rules import PlacementKeeper, RulesOutcome
from .plan import (
    FleetPlanner,
    PlannedGuest,
    all_vmids_of,
    mark_case_duplicates,
    not_pruned,
    refuse_hidden,
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

    by_site = {site: client for sites, client in clients for site in sites}
    clock = clients[0][1].clock
    now, since = clock.time(), clock.monotonic()
    usage_file = params.get("usage_file")
    items = read_estate(params, None).items
    totals = read_totals(items, by_site, usage_file)
    placed = place_guests(params, items, by_site, totals)

    def plan_one(part: tuple[Collection[str], Client]) -> SitePlan | SiteWork:
        sites, client = part
        named = read_estate(placed.params, None, sites)
        if not named.items:
            return SiteWork([])  # the site only counts for the quota of a tenant
        try:
            for site in totals.errors.keys() & sites:
                raise totals.errors[site]
            estate = placed.explained(read_estate(placed.params, client, sites))
            reader = placed.reader(sites)
            planned = plan_site(estate, client, check_mode, totals, reader)
        except FleetError as error:
            return _failed_site(named.items, error)
        if isinstance(planned, SitePlan):
            planned = replace(planned, planned_at=since, prunes=not placed.errors)
        return planned

    def carry_out(part: tuple[Collection[str], SitePlan | SiteWork]) -> SiteWork:
        sites, planned = part
        if isinstance(planned, SiteWork):
            return planned
        try:
            done = work_on_plan(planned)
        except FleetError as error:
            return _failed_site([one.item for one in planned.plans], error)
        site = max(sites)
        outcomes = [_of_site(outcome, site) for outcome in done.outcomes]
        return replace(done, outcomes=outcomes, site=site)

    planned = side_by_side(plan_one, clients, SITES_AT_ONCE)
    planned = _within_totals(totals, _without_moved(planned, clients, totals))
    parts = [(sites, one) for (sites, _client), one in zip(clients, planned, strict=True)]
    works = side_by_side(carry_out, parts, SITES_AT_ONCE)
    works += [_failed_site([item], error) for item, error in placed.errors]
    if usage_file and not check_mode:
        changed = any(map(_may_have_written, works))
        works.append(SiteWork([], keep_last_use(usage_file, totals, now, changed=changed)))
    return _reported(works, params, check_mode)


def _may_have_written(work: SiteWork) -> bool:
    results = [outcome.result for outcome in work.outcomes]
    return any(result is None or result.changed for result in results)


def _failed_site(items: Sequence[VmItem], error: FleetError) -> SiteWork:
    return SiteWork([VmOutcome(PlannedGuest(item, error=error), error=error) for item in items])


def _within_totals(
    totals: Totals, sites: Sequence[SitePlan | SiteWork]
) -> list[SitePlan | SiteWork]:
    """Return the plans of all sites, with an error for each guest beyond a quota over sites."""
    plans = [one for site in sites if isinstance(site, SitePlan) for one in site.plans]
    refused = refuse_excess(totals, plans)
    errors = {id(plans[place].item): error for place, error in refused.items()}
    return [_with_errors(site, errors) for site in sites]


def _with_errors(
    site: SitePlan | SiteWork, errors: Mapping[int, FleetError]
) -> SitePlan | SiteWork:
    """Return the plans of a site; a guest with an error, by C(id(item)), has no plan (pure)."""
    if isinstance(site, SiteWork):
        return site
    checked = [
        replace(one, error=errors[id(one.item)], vm_plan=None, row=None)
        if id(one.item) in errors
        else one
        for one in site.plans
    ]
    return replace(site, plans=checked)


def _without_moved(
    planned: Sequence[SitePlan | SiteWork],
    clients: Sequence[tuple[Collection[str], Client]],
    totals: Totals,
) -> list[SitePlan | SiteWork]:
    """Return the plans of all sites, with an error for each new guest that another site has."""
    by_site: dict[str, SitePlans] = {}
    for (sites, _client), one in zip(clients, planned, strict=True):
        by_site |= dict.fromkeys(sites, _plans_of(one))
    moved = find_moved(by_site, {site: one for sites, one in clients for site in sites}, totals)
    found: list[SitePlan | SiteWork] = []
    for (sites, _client), one in zip(clients, planned, strict=True):
        one = _with_errors(one, moved.errors)
        if isinstance(one, SitePlan) and not moved.unpruned.isdisjoint(sites):
            one = replace(one, prunes=False)
        found.append(one)
    return found


def _plans_of(site: SitePlan | SiteWork) -> SitePlans:
    if isinstance(site, SitePlan):
        return SitePlans(site.plans, site.cluster, frozenset(all_vmids_of(site.unwanted)))
    plans = [outcome.planned for outcome in site.outcomes]
    return SitePlans(plans, error=plans[0].error if plans else None)


def sites_of(params: Mapping[str, Any]) -> list[str]:
    """Return the sites in `of_sites`, else of the VMs; an empty text is the site of the task.

    Raises FleetError for a mistake in the list, but only if a VM or a tenant names a site.
    """
    if params.get("of_sites"):
        return sorted(set(params["of_sites"]))
    settings = params.get("tenant_settings") or {}
    given = list(settings.values())
    for one in LISTS:
        given += params.get(one.option) or ()
    if not any(map(_names_site, given)):
        return [""]
    estate = read_estate(params, None)
    found = {item.site for item in estate.items}
    for item in estate.items:
        found |= set(item.sites.names)
    return sorted(found - {AUTO}) or [""]


def _names_site(given: Any) -> bool:
    """Return whether settings of a tenant or a VM name a site, before they are checked."""
    return isinstance(given, Mapping) and bool(given.get("site") or given.get("sites"))


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


@dataclass(frozen=True)
class SitePlan:
    """The plans of one site, before any write."""

    estate: Estate
    client: Client
    check_mode: bool
    limits: ConcurrencyLimits
    batch: int  # reboots at once
    planned_at: float
    plans: list[PlannedGuest]
    cluster: ClusterState
    unwanted: list[PlannedGuest] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    prunes: bool = True  # unset if an unwanted guest may belong to another site of the list

    def keeps_unwanted(self, outcomes: list[VmOutcome]) -> bool:
        """Return whether nothing is pruned after these outcomes (pure)."""
        return not self.prunes or any(outcome.error is not None for outcome in outcomes)


def work_on(estate: Estate, client: Client, check_mode: bool) -> SiteWork:
    """Plan and execute the VMs of one site, and return their outcomes."""
    planned = plan_site(estate, client, check_mode)
    return planned if isinstance(planned, SiteWork) else work_on_plan(planned)


def plan_site(
    estate: Estate,
    client: Client,
    check_mode: bool,
    totals: Totals = NO_TOTALS,
    reader: Client | None = None,
) -> SitePlan | SiteWork:
    """Return the plans of the VMs of one site; the outcome of a site without VMs.

    A `reader` has the answers from which the sites of new guests were chosen.
    """
    params, items, scope = estate.params, estate.items, estate.scope
    limits = read_concurrency(params)
    batch = validate.number(params["reboot_batch"], 0, 1000, "reboot_batch")
    _require_kept(items, scope)
    if not items:
        return SiteWork([])
    planned_at = client.clock.monotonic()
    planner = FleetPlanner(reader or client, check_mode, lists_of(items), totals.of)
    located = planner.locate(items)
    unwanted: list[PlannedGuest] = []
    notes: tuple[str, ...] = ()
    if scope is not None:
        unwanted = planner.prune(params, scope, located)
        notes = (*planner.notes, *not_pruned(planner.cluster, scope))
    plans = with_leaving(planner.plan_located(located), planner.leaving)
    if params.get("remove"):
        require_own(plans, planner)
    plans = refuse_hidden(plans, client, params.get("tenant_settings") or {})
    if scope is not None:
        plans = mark_case_duplicates(plans, planner.cluster, scope)
        unwanted = still_unwanted(unwanted, plans)
        require_not_given_away(unwanted, estate.items, estate.others, scope)
    return SitePlan(
        estate=estate,
        client=client,
        check_mode=check_mode,
        limits=limits,
        batch=batch,
        planned_at=planned_at,
        plans=plans,
        cluster=planner.cluster,
        unwanted=unwanted,
        notes=notes,
    )


def work_on_plan(planned: SitePlan) -> SiteWork:
    """Execute the plans of one site, or preview them, and return their outcomes."""
    params, client, scope = planned.estate.params, planned.client, planned.estate.scope
    plans, unwanted, notes = planned.plans, planned.unwanted, planned.notes
    jobs = planned_jobs(params, client, plans, planned.cluster)
    keeper = PlacementKeeper(plans, planned.cluster, client)
    keeper.require_possible(unwanted)
    if planned.check_mode:
        outcomes = preview_all(plans)
        keeps = planned.keeps_unwanted(outcomes)
        outcomes += _kept(unwanted) if keeps else preview_all(unwanted)
        return SiteWork(outcomes, notes, jobs, keeper.run(outcomes, True))
    reservations = Reservations(client, planned.cluster)
    executor = Executor(client, reservations, planned.limits, planned.planned_at, planned.batch)
    outcomes = _execute(executor, plans)
    if scope is not None and unwanted:
        if planned.keeps_unwanted(outcomes):
            outcomes += _kept(unwanted)
        else:
            outcomes += _prune(executor, reservations, client, scope, unwanted)
    jobs = maintained_jobs(client, outcomes, jobs)
    return SiteWork(outcomes, notes, jobs, keeper.run(outcomes, False))


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
