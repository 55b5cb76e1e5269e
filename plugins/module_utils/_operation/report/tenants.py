# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The usage of each tenant at each site, compared with its quota (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..._foundation.cluster.quota import KINDS, Limits, QuotaFigures, read_limits, total
from ..._foundation.cluster.state import ClusterState
from ..._foundation.cluster.tenant import tenant_of
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.spec.tenants import read_estate_tenants
from .model import ReportOptions, ReportTenant, Row, SiteReading


def read_report_tenants(given: Mapping[str, Any], prefix: str) -> list[ReportTenant]:
    """Return the tenants as an estate describes them, for each of their sites. Raises ValidationFailed."""
    found: list[ReportTenant] = []
    for name, options in read_estate_tenants(given).items():
        # A quota over sites is compared with the use at all of them, in `totals_of`.
        by_site: dict[str, Any] = dict.fromkeys(options.get("sites") or ())
        by_site |= options.get("site_quotas") or {}
        if not by_site:
            by_site = {str(options.get("site") or ""): options.get("quota")}
        for site, quota in by_site.items():
            found.append(ReportTenant(name.lower(), site, _limits(name, quota, prefix)))
    return found


def unlisted_sites(tenants: Iterable[ReportTenant], names: Collection[str]) -> list[str]:
    """Return a warning for each site of a tenant that the report does not have."""
    if "" in names or not names:
        return []
    known = sorted(names)
    return [
        f"Tenant {one.name} has site {one.site}, which is none of the sites {', '.join(known)}"
        f"{did_you_mean(one.site, known)}: its use there is not counted."
        for one in tenants
        if one.site and one.site not in names
    ]


def read_totals(given: Mapping[str, Any], prefix: str) -> dict[str, Limits]:
    """Return the quotas over sites by tenant. Raises ValidationFailed."""
    return {
        name.lower(): _limits(name, options.get("quota"), prefix)
        for name, options in read_estate_tenants(given).items()
        if options.get("sites")
    }


def _limits(name: str, quota: Any, prefix: str) -> Limits:
    quotas = {} if quota is None else {name: quota}
    return read_limits({"tenant": name, "quotas": quotas, "tenant_prefix": prefix}) or {}


def tenants_of_site(
    reading: SiteReading, guests: Sequence[Row], wanted: ReportOptions
) -> list[dict[str, Any]]:
    """Return the tenants with guests at a site, and the tenants that the task describes for it.

    The last row has an empty name if there are guests without a tenant or with several. `reason`
    says why the figures are too low; quotas, costs and growth are based on them.
    """
    described = {one.name: one.limits for one in wanted.tenants if is_at(one, reading.site)}
    by_tenant: dict[str, list[Row]] = {name: [] for name in described}
    for guest in guests:
        by_tenant.setdefault(guest["tenant"], []).append(guest)
    templates = _templates(reading.state, wanted.prefix)
    quotas: dict[str, list[dict[str, Any]]] = {}
    for use in reading.drift.quotas if reading.drift is not None else ():
        quotas.setdefault(use.tenant, []).append(_quota(use.kind, use.used, use.limit))
    rows: list[dict[str, Any]] = []
    for name in sorted(by_tenant, key=_order):
        own = by_tenant[name]
        used = total(map(_figures, own)) + QuotaFigures(disk=templates[name])
        row = {
            "site": reading.site,
            "tenant": name,
            **asdict(used),
            "running": _running(own),
            "quotas": quotas.get(name) or _used(described.get(name, {}), used),
            "reason": why_less(reading, own),
        }
        if reading.reason:
            row = _unknown(row)
        rows.append(row)
    return rows


def totals_of(rows: Iterable[Row], wanted: ReportOptions) -> list[dict[str, Any]]:
    """Return each tenant over sites as one: its use at all of its sites, beside its quota there.

    `rows` are the tenants at each site. A site that is not in the report has unknown use.
    """
    by_place = {(row["tenant"], row["site"]): row for row in rows}
    found: list[dict[str, Any]] = []
    for name in sorted(wanted.totals):
        sites = [one.site for one in wanted.tenants if one.name == name]
        own = {site: by_place[name, site] for site in sites if (name, site) in by_place}
        if own:
            found.append(_total(name, sites, own, wanted.totals[name]))
    return found


def _total(
    name: str, sites: Sequence[str], own: Mapping[str, Row], limits: Limits
) -> dict[str, Any]:
    known = [row for row in own.values() if row["vms"] is not None]
    reasons = [f"site {site} is not in this report" for site in sites if site not in own]
    reasons += [f"site {site}: {row['reason']}" for site, row in own.items() if row["reason"]]
    used = total(QuotaFigures(**{kind: row[kind] for kind in KINDS}) for row in known)
    whole = {
        "tenant": name,
        "sites": list(sites),
        **asdict(used),
        "running": sum(row["running"] for row in known),
        "quotas": _used(limits, used),
        "reason": "; ".join(reasons) or None,
    }
    if not known:
        return _unknown(whole)
    for quota in whole["quotas"]:
        # The rest of the use can only exceed the quota, too.
        quota["exceeded"] = quota["exceeded"] or (None if reasons else False)
    return whole


def _order(name: str) -> tuple[bool, str]:
    """Return the sort key of a tenant: the empty name is last."""
    return not name, name


def is_at(tenant: ReportTenant, site: str) -> bool:
    """Return whether a tenant may have VMs at a site; a site without a name has all tenants."""
    return not site or tenant.site in ("", site)


def _running(guests: Iterable[Row]) -> int:
    statuses = [guest["status"] for guest in guests]
    return len(statuses) - statuses.count("stopped") - statuses.count("hibernated")


def _unknown(row: Row) -> dict[str, Any]:
    """Return a tenant at a site that could not be read."""
    quotas = [{**quota, "used": None, "exceeded": None} for quota in row["quotas"]]
    nothing = dict.fromkeys((*KINDS, "running"))
    return {**row, **nothing, "quotas": quotas}


def why_less(reading: SiteReading, guests: Iterable[Row]) -> str | None:
    """Return why the figures of these guests are too low, or None."""
    if reading.reason:
        return reading.reason
    reasons = [guest["reason"] for guest in guests if guest["reason"]]
    if not reasons:
        return None
    return f"{len(reasons)} of its guests could not be read: {reasons[0]}"


def _figures(guest: Row) -> QuotaFigures:
    return QuotaFigures(vms=1, cores=guest["cores"], memory=guest["memory"], disk=guest["disk"])


def _templates(state: ClusterState | None, prefix: str) -> Counter[str]:
    """Return the bytes of the templates of each tenant, which count in its quota."""
    found: Counter[str] = Counter()
    if state is None:
        return found
    templates = [row for row in state.vms.values() if row.template]
    for row in templates:
        tenant, _why = tenant_of(row.tags, prefix)
        if tenant is not None:
            found[tenant] += row.disk
    return found


def _used(limits: Limits, used: QuotaFigures) -> list[dict[str, Any]]:
    """Return use and limit of each quota; memory and disk in bytes."""
    amounts = asdict(used)
    kinds = [kind for kind in KINDS if kind in limits]
    return [_quota(kind, amounts[kind], limits[kind]) for kind in kinds]


def _quota(kind: str, used: int, limit: int) -> dict[str, Any]:
    return {"kind": kind, "used": used, "limit": limit, "exceeded": used > limit}
