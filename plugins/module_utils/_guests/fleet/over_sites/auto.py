# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests with C(site=auto): an existing guest stays at its site, and the site of a new guest is chosen
from its plan at each site (docs/decisions/0034-one-tenant-many-sites.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...._foundation.api.layers.caching import CachingReader
from ...._foundation.cluster.find.unread import require_readable
from ...._foundation.cluster.placement import (
    Comparison,
    NodeLoad,
    PlacementNeeds,
    loads_of,
    why_not,
)
from ...._foundation.cluster.quota import AUTO
from ...._foundation.cluster.state import ClusterState, NodeRow, VmRow
from ...._foundation.core.errors import Conflict, FleetError, NodeUnhealthy, QuotaExceeded
from ...._foundation.core.formatting import by_reason, counted
from ...._foundation.core.parallel import SITES_AT_ONCE, side_by_side
from ...guest.live.find import find_row
from ...guest.registry import LISTS
from ..items import Estate, VmItem, lists_of, read_estate
from ..plan import FleetPlanner, PlannedGuest, row_after
from .moved import Reading, is_missing, may_be_at, read_listings, was_at
from .rules import SiteChoice, price_of
from .totals import NO_TOTALS, Totals, is_of_tenant

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

Order: TypeAlias = tuple[int, int]
"""The place of a guest in the lists, see `VmItem.order`."""


@dataclass(frozen=True)
class PlacedGuests:
    """The options of a run, with a site for each guest that has no error.

    `readers` are clients with the answers from which sites were chosen.
    """

    params: Mapping[str, Any]
    errors: Sequence[tuple[VmItem, FleetError]] = ()
    choices: Mapping[Order, SiteChoice] = field(default_factory=dict)
    readers: Mapping[str, CachingReader] = field(default_factory=dict)

    def reader(self, sites: Collection[str]) -> CachingReader | None:
        """Return the client with the answers of a site, which may have several names."""
        return next((one for site, one in self.readers.items() if site in sites), None)

    def explained(self, estate: Estate) -> Estate:
        """Return the estate; each item whose site was chosen has the reasons."""
        items = [replace(one, site_choice=self.choices.get(one.order)) for one in estate.items]
        return replace(estate, items=items)


def place_guests(
    params: Mapping[str, Any],
    items: Sequence[VmItem],
    clients: Mapping[str, Client],
    totals: Totals,
) -> PlacedGuests:
    """Return a site for each guest with C(site=auto), from the same state of all sites.

    One listing of each site of the tenant. For a new guest, its plan at each site; the plans of the
    run use the same answers.
    """
    automatic = [item for item in items if item.site == AUTO]
    readings = _listings(automatic, clients, totals)
    sites: dict[Order, str] = {}
    errors: list[tuple[VmItem, FleetError]] = []
    new: list[VmItem] = []
    for item in automatic:
        found = _find(item, readings, totals)
        if isinstance(found, FleetError):
            errors.append((item, found))
        elif found:
            sites[item.order] = found
        elif item.desired.guest.state == "absent":
            sites[item.order] = next(
                site for site in item.sites.names if not isinstance(readings[site], FleetError)
            )
        else:
            new.append(item)
    placed = _with_sites(params, sites)
    if not new:
        return PlacedGuests(placed, errors)
    readers = {
        site: CachingReader.around(clients[site])
        for site in sorted({site for item in new for site in item.sites.names})
        if not isinstance(readings[site], FleetError)
    }
    trials = _trials(placed, new, readers, totals)
    chooser = _Chooser(clients, trials)
    choices: dict[Order, SiteChoice] = {}
    for item in new:
        chosen = chooser.choose(item)
        if isinstance(chosen, FleetError):
            errors.append((item, chosen))
            continue
        choices[item.order] = chosen
        trial = trials.get(chosen.site)
        if isinstance(trial, _Trial):
            trial.take(item.order)
    sites = {order: one.site for order, one in choices.items()}
    return PlacedGuests(_with_sites(placed, sites), errors, choices, readers)


def at_known_sites(
    params: Mapping[str, Any], clients: Sequence[tuple[Collection[str], Client]]
) -> Mapping[str, Any]:
    """Return the options with the site at which each guest with C(site=auto) exists, to compare it.

    A missing guest is missing at its first site, or unknown at a site that does not answer. If the
    task leaves out sites of its tenant, the guest may be there, so it is not compared.
    """
    automatic: list[VmItem] = []
    if _names_auto(params):
        automatic = [item for item in read_estate(params, None).items if item.site == AUTO]
    by_site = {site: client for sites, client in clients for site in sites}
    readings = _listings(automatic, by_site, NO_TOTALS)
    sites: dict[Order, str] = {}
    for item in automatic:
        found = _sites_with(item, readings, NO_TOTALS)
        dark = [site for site in item.sites.names if isinstance(readings.get(site), FleetError)]
        others = sorted(item.sites.names, key=readings.__contains__)  # those left out come first
        sites[item.order] = [*found, *dark, *others][0]
    return _with_sites(params, sites)


def _names_auto(params: Mapping[str, Any]) -> bool:
    """Return whether a guest or a tenant says C(site=auto), before the list is checked (pure)."""
    given = list((params.get("tenant_settings") or {}).values())
    for option in _OPTIONS:
        given += params.get(option) or ()
    return any(isinstance(one, Mapping) and one.get("site") == AUTO for one in given)


_OPTIONS = tuple(one.option for one in LISTS)


def _with_sites(params: Mapping[str, Any], sites: Mapping[Order, str]) -> Mapping[str, Any]:
    """Return the options with these sites of guests (pure)."""
    found = {option: list(params.get(option) or ()) for option in _OPTIONS}
    for (number, index), site in sites.items():
        option = _OPTIONS[number]
        found[option][index] = {**found[option][index], "site": site}
    return {**params, **{option: given for option, given in found.items() if given}}


def _listings(
    items: Sequence[VmItem], clients: Mapping[str, Client], totals: Totals
) -> dict[str, Reading]:
    names = {site for item in items for site in item.sites.names} & clients.keys()
    return read_listings(names, {}, clients, totals) if names else {}


def _find(item: VmItem, readings: Mapping[str, Reading], totals: Totals) -> str | FleetError | None:
    """Return the site of an existing guest, None for a new guest, or why neither is certain (pure)."""
    guest = item.desired.guest
    found = _sites_with(item, readings, totals)
    if len(found) > 1:
        return Conflict(
            f"{guest.label} was refused: it exists at the sites {', '.join(found)}",
            "Set its site instead of auto",
            "at several sites",
            details={"sites": found},
        )
    if found:
        return found[0]
    for site in item.sites.names:
        doubt = _doubt_at(item, site, readings[site], totals)
        if doubt is not None:
            return doubt
    return None


def _sites_with(item: VmItem, readings: Mapping[str, Reading], totals: Totals) -> list[str]:
    """Return the sites that have the guest, by their listing or their last known guests (pure)."""
    names = filter(readings.__contains__, item.sites.names)
    return [site for site in names if _has(item, site, readings[site], totals)]


def _has(item: VmItem, site: str, reading: Reading, totals: Totals) -> bool:
    if isinstance(reading, FleetError):
        return bool(was_at(item, site, totals)[0])
    try:
        return find_row(reading.of_type(item.kind.kind.type), item.desired.guest) is not None
    except Conflict:
        return True  # the plan at this site reports it


def _doubt_at(item: VmItem, site: str, reading: Reading, totals: Totals) -> FleetError | None:
    """Return why a site that lacks the guest may have it nevertheless, or None (pure)."""
    if isinstance(reading, FleetError):
        return may_be_at(item, site, reading) if was_at(item, site, totals)[0] is None else None
    guest = item.desired.guest

    def may_be(row: VmRow) -> bool:
        return is_of_tenant(guest, row)

    try:
        require_readable(reading.of_type(guest.kind.type), guest.label, may_be)
    except NodeUnhealthy as error:
        step = f"Bring the node of site {site} back"
        return error.on(answer=f"at site {site}, {error.answer}", next_step=step)
    return None


class _Trial:
    """The plans of one site while the sites of new guests are chosen. Raises FleetError."""

    def __init__(
        self, estate: Estate, reader: CachingReader, new: Collection[Order], totals: Totals
    ) -> None:
        lists = lists_of(estate.items)
        self._planner = FleetPlanner(reader, True, lists, totals.of)
        located = self._planner.locate(estate.items)
        self._new = {one.item.order: one for one in located if one.item.order in new}
        self._planner.plan_located([one for one in located if one.item.order not in new])
        self._own_nodes = reader.connection.own_nodes

    def attempt(self, order: Order) -> PlannedGuest:
        """Return the plan of a new guest at this site, or its error."""
        return self._planner.attempt(self._new[order])

    def take(self, order: Order) -> None:
        """Count the guest here for the guests after it."""
        self._planner.plan_located([self._new[order]])

    def seen_by(self, item: VmItem) -> tuple[ClusterState, NodeRow]:
        """Return the cluster as planned so far, and the site as if it were one node."""
        cluster = self._planner.cluster_of(item)
        nodes = [
            row
            for row in cluster.nodes.values()
            if row.online and (not self._own_nodes or row.node in self._own_nodes)
        ]
        figures = [sum(getattr(row, key) for row in nodes) for key in _FIGURES]
        return cluster, NodeRow("", bool(nodes), *figures)


_FIGURES = ("cores", "memory", "memory_used")
Trial: TypeAlias = "_Trial | FleetError"


def _trials(
    params: Mapping[str, Any],
    new: Sequence[VmItem],
    readers: Mapping[str, CachingReader],
    totals: Totals,
) -> dict[str, Trial]:
    """Return the plans of each site that answers, with all new guests that may be placed there."""

    def one(site: str) -> Trial:
        here = {item.order: site for item in new if site in item.sites.names}
        try:
            estate = read_estate(_with_sites(params, here), readers[site], {site})
            return _Trial(estate, readers[site], here, totals)
        except FleetError as error:
            return error

    return dict(zip(readers, side_by_side(one, list(readers), SITES_AT_ONCE), strict=True))


class _Chooser:
    """Chooses the sites of new guests one after the other; each choice sees those before it."""

    def __init__(self, clients: Mapping[str, Client], trials: Mapping[str, Trial]) -> None:
        self._connections = {site: client.connection for site, client in clients.items()}
        self._books = {site: client.plan_book for site, client in clients.items()}
        self._trials = trials

    def choose(self, item: VmItem) -> SiteChoice | FleetError:
        """Return the site that the strategy prefers among the sites at which the guest has a plan."""
        guest = item.desired.guest
        key = guest.kind.type, guest.tenant_tag or "", guest.name or ""
        plans: dict[str, PlannedGuest] = {}
        refused: dict[str, str] = {}
        for site in item.sites.names:
            if self._books[site].place_of(*key) is not None:
                return SiteChoice(site, ("the approved plan has the guest there",))
            trial = self._trials.get(site)
            reason = item.site_rules.why_not(self._connections[site])
            if reason is None and isinstance(trial, _Trial):
                plans[site] = trial.attempt(item.order)
                if not is_missing(plans[site]):
                    return SiteChoice(site, ("the guest exists there",))
            elif reason is None:
                reason = "it does not answer"
                if isinstance(trial, FleetError):
                    reason = f"it cannot be read: {trial.answer}"
            if reason is not None:
                refused[site] = reason
        return self._compare(item, plans, refused)

    def _compare(
        self, item: VmItem, plans: Mapping[str, PlannedGuest], refused: dict[str, str]
    ) -> SiteChoice | FleetError:
        """Return the best site with a plan that follows the rules. Sites are compared as nodes."""
        rules, guest = item.site_rules.among, item.desired.guest
        rows = [row_after(one.vm_plan) for one in plans.values() if one.vm_plan is not None]
        memory, cores = max(((row.memory, row.cores) for row in rows if row), default=(0, 0))
        needs = PlacementNeeds(
            memory=memory,
            cores=cores,
            tenant_tag=guest.tenant_tag,
            prefix=guest.tenant_prefix,
            label=item.label,
        )
        loads: dict[str, NodeLoad] = {}
        nodes: dict[str, NodeRow] = {}
        for site, trial in self._trials.items():
            if isinstance(trial, _Trial) and site in item.sites.names:
                cluster, nodes[site] = trial.seen_by(item)
                loads[site] = _sum(loads_of(cluster, needs, rules).values())
        sites = ClusterState({}, nodes, (), frozenset(), frozenset())
        unread = [site for site in item.sites.names if site not in nodes]
        is_apart = (
            rules.required and rules.affinity and not any(one.together for one in loads.values())
        )
        lacks_room = False
        for site, planned in plans.items():
            error = planned.error
            reason = why_not(sites, site, needs, rules, loads)
            if error is not None:
                lacks_room = lacks_room or isinstance(error, QuotaExceeded)
                reason = error.answer or error.reason
            elif is_apart and unread:
                reason = f"the affinity may be at site {unread[0]}, which does not answer"
            if reason is not None:
                refused[site] = reason
        fitting = [site for site in plans if site not in refused]
        if not fitting:
            return _none_fits(refused, lacks_room=lacks_room)
        return self._best(item, fitting, refused, Comparison(sites, needs, rules, loads))

    def _best(
        self, item: VmItem, fitting: list[str], refused: dict[str, str], comparison: Comparison
    ) -> SiteChoice:
        prices = {site: price_of(self._connections[site]) or 0.0 for site in fitting}
        if not item.site_rules.is_cheapest:
            prices = dict.fromkeys(fitting, 0.0)

        def rank(site: str) -> tuple[float, ...]:
            preferred, by_strategy = comparison.rank(site)[:3], comparison.rank(site)[3:]
            return (*preferred, prices[site], *by_strategy)

        best, *others = sorted(fitting, key=rank)
        for site in others:
            refused[site] = comparison.why_behind(site, best)
            if prices[site] > prices[best]:
                refused[site] = f"it fits, but its price is {prices[site]:g}"
        reason = comparison.why_best(best)
        if item.site_rules.is_cheapest:
            reason = f"cheapest: its price is {prices[best]:g}"
        count = counted(len(item.sites.names), "site")
        return SiteChoice(best, (f"{len(fitting)} of {count} fit", reason), refused)


def _sum(loads: Iterable[NodeLoad]) -> NodeLoad:
    """Return the load of a site from the loads of its nodes (pure)."""
    found = NodeLoad()
    for load in loads:
        found.vms += load.vms
        found.cores += load.cores
        found.memory += load.memory
        found.together += load.together
        found.apart += load.apart
    return found


def _none_fits(refused: Mapping[str, str], *, lacks_room: bool) -> FleetError:
    category = QuotaExceeded if lacks_room else NodeUnhealthy
    return category(
        f"No site could be chosen: {by_reason(refused)}",
        "Name a site, loosen site_placement, or change what the guest needs",
        "no site fits",
        details={"sites": dict(refused)},
    )
