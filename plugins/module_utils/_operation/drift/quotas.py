# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The use of quotas, at a site and over the sites of a tenant (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..._foundation.cluster.quota import KINDS, Limits, QuotaFigures, total
from ..._guests.fleet.items import read_estate
from ..._guests.guest.create.total_use import counted_over_sites
from ..._guests.kinds.model import Guest
from .model import DriftReading, QuotaUse


def read_counted(options: Mapping[str, Any]) -> list[Guest]:
    """Return a guest of each tenant with a quota over sites, with its limits over all of them.

    Raises FleetError for a mistake in the estate.
    """
    settings = list((options.get("tenant_settings") or {}).values())
    if not any(isinstance(one, Mapping) and one.get("sites") for one in settings):
        return []
    found: dict[str, Guest] = {}
    for item in read_estate(options, None).items:
        guest = replace(item.desired.guest, sites=item.sites)
        if guest.tenant and item.sites.total:
            found.setdefault(guest.tenant, counted_over_sites(guest))
    return [found[tenant] for tenant in sorted(found)]


def quota_uses(
    tenant: str, site: str, limits: Limits, used: QuotaFigures, sites: Sequence[str] = ()
) -> list[QuotaUse]:
    """Return the use of each kind that a quota limits."""
    return [
        QuotaUse(tenant, site, kind, use, limits[kind], exceeded=use > limits[kind], sites=sites)
        for kind in KINDS
        if kind in limits
        for use in [getattr(used, kind)]
    ]


def uses_over_sites(readings: Iterable[DriftReading], counted: Iterable[Guest]) -> list[QuotaUse]:
    """Return the use of each quota over sites.

    If the use at one of the sites is not known, only what exceeds the quota without it is returned.
    """
    shares = [share for reading in readings for share in reading.shares]
    found: list[QuotaUse] = []
    for guest in counted:
        own = [share for share in shares if share.tenant == guest.tenant]
        sites, known = guest.sites.names, {site for share in own for site in share.sites}
        used = total(share.used for share in own)
        uses = quota_uses(guest.tenant or "", "", guest.limits or {}, used, sites)
        found += [use for use in uses if use.exceeded or known.issuperset(sites)]
    return found
