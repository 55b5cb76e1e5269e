# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""New guests that exist at another site, because their site was changed: they are refused, and
nothing is pruned there (docs/decisions/0034-one-tenant-many-sites.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ...._foundation.cluster.find.unread import require_readable
from ...._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state, with_names
from ...._foundation.core.errors import Conflict, FleetError, NetworkError, NodeUnhealthy
from ...._foundation.core.parallel import SITES_AT_ONCE, side_by_side
from ..items import VmItem
from ..plan import PlannedGuest, all_vmids_of
from .totals import Totals, is_of_tenant, name_with_kind

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

Reading: TypeAlias = "ClusterState | FleetError"


@dataclass(frozen=True)
class SitePlans:
    """The plans of one site. `unwanted` are the VMIDs to prune, `error` is set if the site failed."""

    plans: Sequence[PlannedGuest] = ()
    cluster: ClusterState | None = None
    unwanted: frozenset[int] = frozenset()
    error: FleetError | None = None


@dataclass(frozen=True)
class Moved:
    """The errors of new guests by C(id(item)), and the sites where nothing is pruned."""

    errors: Mapping[int, FleetError] = field(default_factory=dict)
    unpruned: frozenset[str] = frozenset()


def find_moved(
    sites: Mapping[str, SitePlans], clients: Mapping[str, Client], totals: Totals
) -> Moved:
    """Find the guests of the list that are missing at their site, and may exist at another site.

    One request for each site of which the run has no listing, only for new guests of tenants over
    sites. A guest that the list has at both sites has not moved.
    """
    pruned = {site for site, one in sites.items() if one.unwanted}
    missing = [
        (planned, names)
        for one in sites.values()
        for planned in one.plans
        if is_missing(planned) and (names := _other_sites(planned, pruned))
    ]
    readings = read_listings(
        {name for _planned, names in missing for name in names}, sites, clients, totals
    )
    errors: dict[int, FleetError] = {}
    unpruned: set[str] = set()
    for planned, names in missing:
        for site in sorted(names):
            at = sites.get(site, SitePlans())
            if _is_listed(planned.item, at):
                continue
            error = _find_at(planned.item, site, readings[site], at, totals)
            if error is None:
                continue
            unpruned.add(site)
            if planned.creates:
                errors.setdefault(id(planned.item), error)
    return Moved(errors, frozenset(unpruned))


def is_missing(planned: PlannedGuest) -> bool:
    """Return whether the guest was not found at its site, or its site was not read (pure)."""
    present = (planned.found, planned.actual, planned.refused)
    return not planned.is_removal and not any(present)


def _other_sites(planned: PlannedGuest, pruned: set[str]) -> set[str]:
    """Return the sites at which the guest must not exist (pure)."""
    names = set(pruned)
    if planned.creates:
        names |= set(planned.item.sites.names)
    return names - {planned.item.site}


def _is_listed(item: VmItem, site: SitePlans) -> bool:
    """Return whether the list has a guest of this name at that site, too (pure)."""
    own = _identity(item)
    return any(_identity(one.item) == own for one in site.plans)


def _identity(item: VmItem) -> tuple[str, str | None, str | None]:
    guest = item.desired.guest
    return guest.kind.type, guest.tenant_tag, guest.name


def read_listings(
    names: set[str], sites: Mapping[str, SitePlans], clients: Mapping[str, Client], totals: Totals
) -> dict[str, Reading]:
    """Return the listing of each site, with the name of each guest that its node returns."""

    def read_one(site: str) -> Reading:
        planned = sites.get(site, SitePlans())
        error = totals.errors.get(site) or planned.error
        if isinstance(error, NetworkError):
            return error  # it is asked once in a run
        client = clients[site]
        try:
            cluster = planned.cluster or totals.clusters.get(site)
            cluster = cluster or fetch_cluster_state(client, ())
            types = {row.type for row in cluster.guests}
            for kind in sorted(types):
                cluster = with_names(client, cluster.of_type(kind), missing=True)
        except FleetError as failure:
            return failure
        return cluster

    found = sorted(names)
    return dict(zip(found, side_by_side(read_one, found, SITES_AT_ONCE), strict=True))


def _find_at(
    item: VmItem, site: str, reading: Reading, at: SitePlans, totals: Totals
) -> FleetError | None:
    """Return the error of a guest that exists at another site, or may exist there (pure)."""
    guest = item.desired.guest
    if isinstance(reading, FleetError):
        return _find_at_dark(item, site, reading, totals)
    is_over_sites = site in item.sites.names
    listed = all_vmids_of(at.plans)
    cluster = reading.of_type(guest.kind.type)

    def may_be(row: VmRow) -> bool:
        if row.template or row.vmid in listed:
            return False
        return row.vmid in at.unwanted or (is_over_sites and is_of_tenant(guest, row))

    for row in cluster.vms.values():
        if row.name == guest.name and may_be(row):
            return _is_there(item, site, f"{guest.kind.noun} {row.vmid} on node {row.node}")
    try:
        require_readable(cluster, guest.label, may_be)
    except NodeUnhealthy as error:
        return error.on(
            attempted=f"{guest.label} was not created at site {item.site}",
            answer=f"at site {site}, {error.answer}",
            next_step=f"Bring the node of site {site} back",
        )
    return None


def _find_at_dark(item: VmItem, site: str, error: FleetError, totals: Totals) -> FleetError | None:
    """Return the error of a guest whose other site does not answer, unless the last known names
    there lack it (pure).
    """
    was_there, source = was_at(item, site, totals)
    if was_there is None:
        return may_be_at(item, site, error)
    if was_there:
        return _is_there(item, site, f"by {source}; the site does not answer")
    return None


def was_at(item: VmItem, site: str, totals: Totals) -> tuple[bool | None, str]:
    """Return whether the last known guests of a site that does not answer have the guest, None if
    they are unknown, and their source (pure).
    """
    guest = item.desired.guest
    quota = totals.quotas.get(guest.tenant_tag or "")
    unread = [one for one in quota.unread if one.site == site] if quota else []
    if not unread or unread[0].names is None:
        return None, ""
    return name_with_kind(guest.kind.type, guest.name or "") in unread[0].names, unread[0].source


def may_be_at(item: VmItem, site: str, error: FleetError) -> NodeUnhealthy:
    """Return the error of a guest that may exist at a site that does not answer (pure)."""
    return NodeUnhealthy(
        f"{item.desired.guest.label} was not created at site {item.site}: it may exist at site "
        f"{site}, which does not answer ({error.message}), and its last known guests are not in "
        "usage_file",
        "Bring the site back, or remove it from the sites of the tenant",
        "site not readable",
        details={"site": site},
    )


def _is_there(item: VmItem, site: str, place: str) -> Conflict:
    guest = item.desired.guest
    return Conflict(
        f"{guest.label} was not created at site {item.site}: it exists at site {site} ({place}), "
        "and this task does not move guests",
        (
            f"Move it with pve.fleet.relocate, or set its site to {site}. For a second guest"
            f" of this name, list the guest at site {site}, too"
        ),
        "at another site",
        details={"site": site},
    )
