# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The usage in earlier reports, and the growth since the last one (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import index
from typing import Any, TypeAlias

from ..._foundation.cluster.quota import KINDS, QuotaFigures, total
from ..._foundation.core.times import seconds
from .model import Row

VERSION = 1
# Number of reports that are kept: more than a year of daily reports.
MAX_REPORTS = 400
_HIGHEST = 1 << 62
_MALFORMED = (AttributeError, LookupError, RecursionError, TypeError, ValueError)

Use: TypeAlias = "Mapping[str, Mapping[str, QuotaFigures | None] | None]"
"""Figures by site, then by tenant; None for unknown figures."""


@dataclass(frozen=True)
class HistoryEntry:
    """One report: the time when the sites were read, and the usage."""

    checked: str
    use: Use = field(default_factory=dict)


@dataclass(frozen=True)
class ReportHistory:
    """The reports so far, oldest first. `reason` is why the file is not used and not changed."""

    entries: Sequence[HistoryEntry] = ()
    reason: str = ""


def read_history(text: str | None) -> ReportHistory:
    """Return the history in the text of its file, an empty history without a file."""
    if text is None or not text.strip():
        return ReportHistory()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        return _unusable(f"it is not JSON ({error})")
    try:
        version = document["version"]
        if version != VERSION:
            return _unusable(f"it has version {json.dumps(version)}, not {VERSION}")
        entries = [_read_entry(report) for report in document["reports"]]
    except _MALFORMED:
        return _unusable("it is not complete")
    return ReportHistory(sorted(entries, key=_age))


def _unusable(why: str) -> ReportHistory:
    step = "The file is kept as it is. Move it away to begin a new one"
    return ReportHistory(
        reason=f"Growth is unknown, because of the history of reports: {why}. {step}."
    )


def _age(entry: HistoryEntry) -> int:
    return seconds(entry.checked) or 0


def _read_entry(given: Any) -> HistoryEntry:
    """Return a report of the file. Raises one of _MALFORMED."""
    checked = given["checked"]
    if seconds(checked) is None:
        raise ValueError(checked)
    use = {str(name): _read_site(site) for name, site in given["sites"].items()}
    return HistoryEntry(checked, use)


def _read_site(given: Any) -> dict[str, QuotaFigures | None] | None:
    if given is None:
        return None
    return {str(tenant): _read_figures(figures) for tenant, figures in given.items()}


def _read_figures(given: Any) -> QuotaFigures | None:
    if given is None:
        return None
    amounts = {kind: index(given[kind]) for kind in KINDS}
    if min(amounts.values()) < 0 or max(amounts.values()) > _HIGHEST:
        raise ValueError(given)
    return QuotaFigures(**amounts)


def entry_of(checked: str, sites: Iterable[Row], tenants: Iterable[Row]) -> HistoryEntry:
    """Return the entry that this report adds to the history."""
    use: dict[str, dict[str, QuotaFigures | None] | None] = {}
    for site in sites:
        use[site["site"]] = None
        if not site["reason"]:
            use[site["site"]] = {}
    for tenant in tenants:
        of_site = use[tenant["site"]]
        if of_site is None:
            continue
        of_site[tenant["tenant"]] = None
        if not tenant["reason"]:
            amounts = {kind: tenant[kind] for kind in KINDS}
            of_site[tenant["tenant"]] = QuotaFigures(**amounts)
    return HistoryEntry(checked, use)


def extended(history: ReportHistory, entry: HistoryEntry) -> dict[str, Any] | None:
    """Return the content of the file with this report, or None if the file must not be changed."""
    if history.reason:
        return None
    entries = [*history.entries, entry]
    reports = [asdict(one) for one in entries[-MAX_REPORTS:]]
    return {
        "version": VERSION,
        "reports": [{"checked": one["checked"], "sites": one["use"]} for one in reports],
    }


def growth_of(history: ReportHistory, entry: HistoryEntry) -> dict[str, Any]:
    """Return the growth since the last report: `since`, the `total`, and each tenant by site.

    The growth of a tenant is None if either of its figures is unknown. A tenant that is missing in
    one of the reports counts as zero there.
    """
    growth: dict[str, Any] = {
        "since": None,
        "reason": history.reason or None,
        "total": None,
        "tenants": {},
    }
    if not history.entries:
        return growth
    last = history.entries[-1]
    growth["since"] = last.checked
    for site, now in entry.use.items():
        earlier = last.use.get(site)
        growth["tenants"][site] = _grown_at_site(earlier, now)
    growth["total"] = _difference(sum_of(last.use, entry.use), sum_of(entry.use, entry.use))
    return growth


def _grown_at_site(
    earlier: Mapping[str, QuotaFigures | None] | None, now: Mapping[str, QuotaFigures | None] | None
) -> dict[str, dict[str, int] | None]:
    """Return the growth of each tenant at a site, including tenants that are gone."""
    if now is None:
        return {}
    if earlier is None:
        return dict.fromkeys(now)
    grown: dict[str, dict[str, int] | None] = {}
    for tenant in sorted(now.keys() | earlier.keys()):
        before = earlier.get(tenant, QuotaFigures())
        after = now.get(tenant, QuotaFigures())
        grown[tenant] = _difference(before, after)
    return grown


def _difference(before: QuotaFigures | None, after: QuotaFigures | None) -> dict[str, int] | None:
    if before is None or after is None:
        return None
    return {kind: getattr(after, kind) - getattr(before, kind) for kind in KINDS}


def sum_of(use: Use, of_now: Use) -> QuotaFigures | None:
    """Return the sum of all sites, None if unknown or if the earlier report covered other sites."""
    if use.keys() != of_now.keys():
        return None
    parts: list[QuotaFigures] = []
    for of_site in use.values():
        if of_site is None:
            return None
        known = [figures for figures in of_site.values() if figures is not None]
        if len(known) < len(of_site):
            return None
        parts += known
    return total(parts)


def trend_of(history: ReportHistory, entry: HistoryEntry) -> list[dict[str, Any]]:
    """Return the total of all sites over time, without reports whose total is unknown."""
    entries = [*history.entries, entry]
    trend: list[dict[str, Any]] = []
    for one in entries[-MAX_REPORTS:]:
        figures = sum_of(one.use, entry.use)
        if figures is not None:
            trend.append({"checked": one.checked, **asdict(figures)})
    return trend
