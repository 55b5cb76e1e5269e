# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the use of tenants at all of their sites, and checks a task's guest against the quota over them
(docs/decisions/0034-one-tenant-many-sites.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.layers.caching import CachingReader
from ...._foundation.cluster.quota import QuotaFigures, total
from ...._foundation.cluster.state import ClusterState, fetch_cluster_state
from ...._foundation.core.errors import FleetError
from ...._foundation.core.parallel import SITES_AT_ONCE, side_by_side
from ...._foundation.core.times import iso
from .quota_race import QuotaGrowth, TenantUsage, gather_usage
from .total_quota import GuestKey, SiteQuota, TotalQuota, UnreadSite

if TYPE_CHECKING:
    from ...._foundation.api.client import Client
    from ...kinds.model import Guest

LastUse = Mapping[str, Mapping[str, Any]]
"""The last known use by site and tenant's tag: C(time) in seconds, C(figures) by kind, and C(guests)
as `name_with_kind` returns them, None if they are unknown.
"""


@dataclass(frozen=True)
class SiteUse:
    """The listing of a site, and the use of each tenant there by tag."""

    cluster: ClusterState
    usage: Mapping[str, TenantUsage]


def counted_over_sites(guest: Guest) -> Guest:
    """Return a guest whose limits are those over all sites of its tenant (pure)."""
    return replace(guest, limits=guest.sites.total)


def read_sites(
    guests: Mapping[str, Guest], clients: Mapping[str, Client]
) -> dict[str, SiteUse | FleetError]:
    """Return the use of each tenant at each of its sites, or the error of a site. `guests` has a
    guest of each tenant by tag, see `counted_over_sites`.
    """

    def read_one(site: str) -> SiteUse | FleetError:
        try:
            return _read_site(site, clients[site], guests)
        except FleetError as error:
            return error

    names = sorted({name for guest in guests.values() for name in guest.sites.names})
    return dict(zip(names, side_by_side(read_one, names, SITES_AT_ONCE), strict=True))


def _read_site(site: str, client: Client, guests: Mapping[str, Guest]) -> SiteUse:
    """Return the use of each tenant at a site. Raises FleetError."""
    found: dict[str, TenantUsage] = {}
    reader = CachingReader.around(client)
    listing = fetch_cluster_state(reader, ())
    for tag, guest in guests.items():
        if site in guest.sites.names:
            found[tag] = gather_usage(reader, guest, listing.of_type(guest.kind.type))
    return SiteUse(listing, found)


def quota_of(
    guest: Guest,
    clients: Mapping[str, Client],
    readings: Mapping[str, SiteUse | FleetError],
    last: LastUse,
) -> TotalQuota:
    """Return the quota of a guest's tenant with its use at all sites (pure)."""
    tag = guest.tenant_tag or ""
    figures: dict[GuestKey, QuotaFigures] = {}
    known: set[GuestKey] = set()
    unread: list[UnreadSite] = []
    for site in guest.sites.names:
        reading = readings[site]
        if isinstance(reading, FleetError):
            unread.append(_unread(site, reading, guest, last))
            continue
        usage = reading.usage[tag]
        if usage.restored is not None:
            unread.append(UnreadSite(site, usage.restored))
            continue
        known |= {(site, vmid) for vmid in usage.owned}
        for vmid, one in {**usage.in_creation, **usage.owned}.items():
            figures[site, vmid] = one
    silent = {one.site for one in unread}
    return TotalQuota(
        tenant=guest.tenant or "",
        limits=guest.limits or {},
        clients={site: clients[site] for site in guest.sites.names if site not in silent},
        figures=figures,
        known=frozenset(known),
        unread=tuple(unread),
    )


def _unread(site: str, error: FleetError, guest: Guest, last: LastUse) -> UnreadSite:
    """Return a site that does not answer, with its last use, else with its quota (pure)."""
    seen = last.get(site, {}).get(guest.tenant_tag or "")
    if seen is not None:
        source = f"its use at {iso(seen['time'])}"
        names = None if seen["guests"] is None else frozenset(seen["guests"])
        return UnreadSite(site, error, seen["figures"], source, names)
    quota = guest.sites.quotas.get(site)
    if quota:
        return UnreadSite(site, error, quota, "its quota")
    return UnreadSite(site, error)


def require_total(
    client: Client,
    guest: Guest,
    vmid: int,
    grown: QuotaGrowth,
    after: QuotaFigures,
    more: Sequence[QuotaFigures] = (),
) -> SiteQuota | None:
    """Return the quota over sites that the guest of a task counts for, None if it does not grow or
    has none. All sites are read, so a guest without growth costs no request.

    `vmid` is 0 for a new guest, `after` are its figures, and `more` are those of other new
    guests of the task. Raises FleetError for a guest beyond the quota.
    """
    if not guest.sites.names or grown.before == after:
        return None
    counted, clients = (
        counted_over_sites(guest),
        {**client.other_sites, client.site: client.direct()},
    )
    readings = read_sites({guest.tenant_tag or "": counted}, clients)
    at = SiteQuota(quota_of(counted, clients, readings, {}), client.site)
    at.use_with(guest, vmid, grown, after, total([*at.quota.figures.values(), *more]))
    return at
