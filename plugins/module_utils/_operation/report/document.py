# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as a document with a version (pure): C(docs/report.schema.json)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._foundation.core.times import iso, seconds
from ..._guests.kinds.words import CT, VIRTUAL_MACHINE
from ..drift.document import document_of as drift_of
from .costs import costs_of, csv_of, sum_of
from .guests import guests_of
from .history import ReportHistory, entry_of, extended, growth_of, trend_of
from .model import Prices, ReportOptions, Row, SiteReading
from .networks import networks_of
from .risks import ReportFindings, risks_of
from .sites import site_of
from .tenants import tenants_of_site

VERSION = 1


def document_of(
    readings: Sequence[SiteReading], wanted: ReportOptions, history: ReportHistory, now: float
) -> dict[str, Any]:
    """Return the report on all sites. C(complete) is whether everything could be read."""
    checked = str(iso(now))
    sites: list[dict[str, Any]] = []
    tenants: list[dict[str, Any]] = []
    all_guests: list[dict[str, Any]] = []
    for reading in readings:
        guests = guests_of(reading, wanted)
        networks = networks_of(reading, guests, wanted.prefix)
        sites.append({**_with_times(site_of(reading, guests)), "networks": networks})
        tenants += tenants_of_site(reading, guests, wanted)
        all_guests += guests
    drift = _drift(readings, checked)
    risks = risks_of(ReportFindings(sites, tenants, all_guests, drift, wanted, now))
    entry = entry_of(checked, sites, tenants)
    return {
        "version": VERSION,
        "checked": checked,
        "complete": _is_complete(sites, all_guests, drift),
        "snapshot_days": wanted.snapshot_days,
        "backup_days": wanted.backup_days,
        "attention": risks,
        "sites": sites,
        "tenants": tenants,
        "vms": _of_kind(all_guests, VIRTUAL_MACHINE),
        "containers": _of_kind(all_guests, CT),
        "drift": drift,
        "growth": growth_of(history, entry),
        "trend": trend_of(history, entry),
        "costs": _costs(tenants, wanted.prices, checked),
    }


def history_with(report: Row, history: ReportHistory) -> dict[str, Any] | None:
    """Return the history with this report, None if its file must not be changed."""
    entry = entry_of(report["checked"], report["sites"], report["tenants"])
    return extended(history, entry)


def csv_with(report: Row) -> str | None:
    """Return the costs as CSV, None without prices."""
    costs = report["costs"]
    if costs is None:
        return None
    return csv_of(report["tenants"], costs["tenants"], costs["currency"], costs["month"])


def _with_times(site: dict[str, Any]) -> dict[str, Any]:
    """Return a site whose failed tasks also have the time in seconds since the epoch."""
    tasks = []
    for task in site["failed_tasks"]:
        ended = seconds(str(task["ended"])) or 0
        tasks.append({**task, "seconds": ended})
    return {**site, "failed_tasks": tasks}


def _drift(readings: Sequence[SiteReading], checked: str) -> dict[str, Any] | None:
    """Return the differences from the estate as module drift_info does, None without an estate."""
    compared = [reading.drift for reading in readings if reading.drift is not None]
    if not compared:
        return None
    return drift_of(compared, checked)


def _of_kind(guests: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [guest for guest in guests if guest["kind"] == kind]


def _is_complete(sites: Sequence[Row], guests: Sequence[Row], drift: Row | None) -> bool:
    if drift is not None and not drift["complete"]:
        return False
    for site in sites:
        if site["reason"] or site["missing"] or site["privileges"]:
            return False
    return not any(guest["reason"] for guest in guests)


def _costs(tenants: Sequence[Row], prices: Prices | None, checked: str) -> dict[str, Any] | None:
    """Return the costs of a month at the current usage, None without prices."""
    if prices is None:
        return None
    rows = costs_of(tenants, prices)
    return {
        "month": checked[:7],
        "currency": prices.currency,
        "prices": {
            "core": str(prices.core),
            "memory": str(prices.memory),
            "storage": str(prices.storage),
        },
        "tenants": rows,
        "total": sum_of(rows),
    }
