# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quotas over several sites in a run: the use of their tenants is read once, and the plans of all
sites are checked together (docs/decisions/0034-one-tenant-many-sites.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.layers.caching import CachingReader
from ...._foundation.cluster.quota import KINDS, total
from ...._foundation.cluster.state import ClusterState, VmRow, with_names, with_other_names
from ...._foundation.cluster.tenant import is_of_others, tenants_of
from ...._foundation.core.errors import ConfigurationError, FleetError
from ...._foundation.core.files import directory_lock, read_regular, replace_file
from ...guest.create.quota_race import read_cluster_now, read_usage
from ...guest.create.total_quota import SiteQuota, TotalQuota
from ...guest.create.total_use import LastUse, SiteUse, counted_over_sites, quota_of, read_sites
from ..items import VmItem
from ..plan import PlannedGuest

if TYPE_CHECKING:
    from ...._foundation.api.client import Client
    from ...kinds.model import Guest


@dataclass(frozen=True)
class Totals:
    """The quotas over sites of a run, by the tag of the tenant."""

    quotas: Mapping[str, TotalQuota]
    errors: Mapping[str, FleetError]  # by site that does not answer
    guests: Mapping[str, Guest]  # a guest of each tenant, with the limits of this quota
    clusters: Mapping[str, ClusterState] = field(default_factory=dict)  # by site that answers

    def of(self, item: VmItem) -> SiteQuota | None:
        """Return the quota over sites that a guest counts for, or None."""
        quota = self.quotas.get(item.desired.guest.tenant_tag or "")
        return None if quota is None else SiteQuota(quota, item.site)


NO_TOTALS = Totals({}, {}, {})


def read_totals(
    items: Sequence[VmItem], clients: Mapping[str, Client], usage_file: str | None
) -> Totals:
    """Read the use of each tenant with a quota over sites, once at each of its sites.

    A site that does not answer counts with its last use in `usage_file`, else with its own quota.
    Raises ConfigurationError if the file cannot be read.
    """
    guests: dict[str, Guest] = {}
    for item in items:
        if item.sites.total is not None:
            guest = counted_over_sites(replace(item.desired.guest, sites=item.sites))
            guests.setdefault(guest.tenant_tag or "", guest)
    if not guests:
        return NO_TOTALS
    readings = read_sites(guests, clients)
    last = read_last_use(usage_file)
    quotas = {tag: quota_of(guest, clients, readings, last) for tag, guest in guests.items()}
    errors = {site: error for site, error in readings.items() if isinstance(error, FleetError)}
    clusters = {site: one.cluster for site, one in readings.items() if isinstance(one, SiteUse)}
    return Totals(quotas, errors, guests, clusters)


def refuse_excess(totals: Totals, plans: Sequence[PlannedGuest]) -> dict[int, FleetError]:
    """Return the error of each plan that exceeds a quota over sites, by its place in `plans`.

    The plans count in the order of the list, whatever their sites (pure).
    """
    used = {tag: total(quota.figures.values()) for tag, quota in totals.quotas.items()}
    refused: dict[int, FleetError] = {}
    order = sorted(range(len(plans)), key=lambda place: plans[place].item.order)
    for place in order:
        planned = plans[place]
        at, vm_plan = totals.of(planned.item), planned.vm_plan
        if at is None or vm_plan is None or vm_plan.intent is None:
            continue
        grown = vm_plan.intent.growth(vm_plan.sizes)
        if grown is None:
            continue
        guest, after = planned.item.desired.guest, vm_plan.intent.figures(vm_plan.sizes)
        tag = guest.tenant_tag or ""
        try:
            used[tag] = at.use_with(guest, vm_plan.place[0], grown, after, used[tag])
        except FleetError as error:
            refused[place] = error
    return refused


def read_last_use(path: str | None) -> LastUse:
    """Return the last known use by site and tenant. Raises ConfigurationError for a malformed file."""
    if not path:
        return {}
    try:
        content = read_regular(path)
        data = {} if content is None else json.loads(content.data)
        return {
            str(site): {str(tag): _last_use(seen) for tag, seen in tenants.items()}
            for site, tenants in data.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"Could not read the usage file {path}: {type(error).__name__}: {error}",
            "Correct usage_file, or remove the file: the next run writes it",
            "usage file",
        ) from error


def _last_use(seen: Mapping[str, Any]) -> dict[str, Any]:
    figures = {kind: int(seen["figures"][kind]) for kind in KINDS if kind in seen["figures"]}
    guests = seen.get("guests")
    names = None if guests is None else list(map(str, guests))
    return {"time": float(seen["time"]), "figures": figures, "guests": names}


def is_of_tenant(guest: Guest, row: VmRow) -> bool:
    """Return whether a guest of a listing has the tag of the desired guest's tenant (pure)."""
    has_tenant = bool(tenants_of(row.tags, guest.tenant_prefix))
    return has_tenant and not is_of_others(guest.tenant_tag, row.tags, guest.tenant_prefix)


def name_with_kind(kind: str, name: str) -> str:
    """Return a guest as the usage file has it: PVE's word for its kind, and its name (pure)."""
    return f"{kind}/{name}"


def keep_last_use(path: str, totals: Totals, now: float, *, changed: bool) -> tuple[str, ...]:
    """Write the use of the tenants at the sites that answer to the file, and return warnings.

    After a change, the use is read again. Other sites and tenants keep their figures.
    """
    readers: dict[str, Client] = {}
    for quota in totals.quotas.values():
        readers |= {site: CachingReader.around(one) for site, one in quota.clients.items()}
    try:
        found = {
            (site, tag): _use_at(totals, tag, site, readers[site], changed=changed)
            for tag, quota in totals.quotas.items()
            for site in quota.clients
        }
        with directory_lock(path):
            sites = {site: dict(tenants) for site, tenants in read_last_use(path).items()}
            for (site, tag), use in found.items():
                sites.setdefault(site, {})[tag] = {"time": now, **use}
            replace_file(path, json.dumps(sites, indent=1, sort_keys=True) + "\n", 0o600)
    except (OSError, FleetError) as error:
        return (f"The use of the tenants was not written to {path}: {error}",)
    return ()


def _use_at(
    totals: Totals, tag: str, site: str, client: Client, *, changed: bool
) -> dict[str, Any]:
    """Return the use of a tenant at a site, of the kinds that its quota limits, and its guests."""
    quota, guest, cluster = totals.quotas[tag], totals.guests[tag], totals.clusters[site]
    used = [one for (place, _vmid), one in quota.figures.items() if place == site]
    if changed:
        cluster = read_cluster_now(client, guest)
        used = list(read_usage(client, guest, cluster).values())
    figures = {kind: getattr(total(used), kind) for kind in quota.limits}
    return {"figures": figures, "guests": _names_at(client, guest, cluster)}


def _names_at(client: Client, guest: Guest, cluster: ClusterState) -> list[str] | None:
    """Return the guests of a tenant, None if a guest has no name that can be read."""
    cluster = with_names(client, cluster.of_type(guest.kind.type), missing=True)
    cluster = with_other_names(client, cluster)
    own = [row for row in cluster.guests if is_of_tenant(guest, row)]
    if not all(row.own_name for row in own):
        return None
    return sorted(name_with_kind(row.type, row.name) for row in own)
