# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The audit of a tenant over several sites: its quota over all of them, and its use at each (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.cluster.quota import (
    KINDS,
    Limits,
    QuotaFigures,
    excess,
    read_quota,
    read_tenant_sites,
    total,
)
from ...._foundation.core.arguments.options import did_you_mean
from ..audit import UNKNOWN, AuditFinding


@dataclass(frozen=True)
class SiteAudit:
    """The findings at a site, its numbers of guests, and the use of each of its tenants by name."""

    site: str
    findings: Sequence[AuditFinding]
    vms: int
    containers: int
    used: Mapping[str, QuotaFigures] = field(default_factory=dict)


@dataclass(frozen=True)
class TenantOverSites:
    """A tenant with C(site) or C(sites): its quota over all of them, and at each; empty without."""

    name: str
    total: Limits
    quotas: Mapping[str, Limits]


def read_over_sites(described: Mapping[str, Any]) -> list[TenantOverSites]:
    """Return the tenants of an estate that have sites. Raises ValidationFailed for a mistake."""
    found: list[TenantOverSites] = []
    for name, settings in described.items():
        sites = read_tenant_sites(name, settings)
        quotas: dict[str, Limits] = {site: sites.quotas.get(site, {}) for site in sites.names}
        if not quotas and settings.get("site"):
            quotas = {settings["site"]: read_quota(settings.get("quota") or {}, "quota")}
        if quotas:
            found.append(TenantOverSites(name.lower(), sites.total or {}, quotas))
    return found


def row_of(tenant: TenantOverSites, audits: Sequence[SiteAudit]) -> dict[str, Any]:
    """Return the use of a tenant over all its sites, and at each; null at a site that was not read."""
    used = _used(tenant, audits)
    sites = [
        {"site": site, **{kind: getattr(used.get(site), kind, None) for kind in KINDS}}
        for site in tenant.quotas
    ]
    return {
        "tenant": tenant.name,
        **vars(total(used.values())),
        "quota": dict(tenant.total),
        "sites": sites,
    }


def find_over_total(tenant: TenantOverSites, audits: Sequence[SiteAudit]) -> Iterator[AuditFinding]:
    """Yield the kinds of the quota over all sites that the sites exceed, as far as they were read."""
    used = _used(tenant, audits)
    for kind, row in excess(tenant.total, QuotaFigures(), total(used.values())).items():
        text = (
            f"tenant '{tenant.name}' has {kind} {row['wanted']} over the sites"
            f" {', '.join(used)}, its quota is {row['limit']}"
        )
        yield AuditFinding("over_quota", tenant.name, kind, text)


def find_unlisted_sites(tenant: TenantOverSites, names: Sequence[str]) -> Iterator[AuditFinding]:
    """Yield the sites of a tenant that the audit of all sites does not have: misspelt, or closed."""
    for site in tenant.quotas:
        if site in names:
            continue
        hint = did_you_mean(site, names)
        text = (
            f"tenant '{tenant.name}' has site {site}, which is none of the sites"
            f" {', '.join(names)}{hint}: its use there is not counted"
        )
        yield AuditFinding(UNKNOWN, tenant.name, site, text)


def _used(tenant: TenantOverSites, audits: Sequence[SiteAudit]) -> dict[str, QuotaFigures]:
    """Return the use of a tenant at each of its sites that was read."""
    return {
        one.site: one.used[tenant.name]
        for one in audits
        if one.site in tenant.quotas and tenant.name in one.used
    }
