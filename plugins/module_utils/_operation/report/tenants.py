# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The usage of each tenant at each site, compared with its quota (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ..._foundation.cluster.quota import KINDS, Limits, QuotaFigures, total
from ..._foundation.cluster.state import ClusterState
from ..._foundation.cluster.tenant import tenant_of
from ..drift.model import DriftReading
from .model import ReportOptions, ReportTenant, Row, SiteReading


def tenants_of_site(
    reading: SiteReading, guests: Sequence[Row], wanted: ReportOptions
) -> list[dict[str, Any]]:
    """Return the tenants with guests at a site, and the tenants that the task describes for it.

    The last row has an empty name if there are guests without a tenant or with several. `reason`
    says why the figures are too low; quotas, costs and growth are based on them.
    """
    described = {one.name: one.limits for one in wanted.tenants if _is_at(one, reading.site)}
    by_tenant: dict[str, list[Row]] = {name: [] for name in described}
    for guest in guests:
        by_tenant.setdefault(guest["tenant"], []).append(guest)
    templates = _templates(reading.state, wanted.prefix)
    quotas = _quotas_of(reading.drift)
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


def _order(name: str) -> tuple[bool, str]:
    """Return the sort key of a tenant: the empty name is last."""
    return not name, name


def _is_at(tenant: ReportTenant, site: str) -> bool:
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


def _quotas_of(drift: DriftReading | None) -> dict[str, list[dict[str, Any]]]:
    """Return use and limit of the quotas of an estate, by tenant."""
    found: dict[str, list[dict[str, Any]]] = {}
    if drift is None:
        return found
    for one in drift.quotas:
        quota = _quota(one.kind, one.used, one.limit)
        found.setdefault(one.tenant, []).append(quota)
    return found


def _quota(kind: str, used: int, limit: int) -> dict[str, Any]:
    return {"kind": kind, "used": used, "limit": limit, "exceeded": used > limit}
