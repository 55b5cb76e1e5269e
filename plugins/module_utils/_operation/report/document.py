# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as a document with a version (pure): C(docs/report.schema.json)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._foundation.api.access.privileges import Privileges
from ..._foundation.core.marks import marked_tag, without_mark
from ..._foundation.core.times import iso, seconds
from ..._guests.kinds.model import Guest
from ..._guests.kinds.words import CT, VIRTUAL_MACHINE, kind_name
from ..drift.document import document_of as drift_of
from .costs import costs_of, csv_of, sum_of
from .guests import guests_of
from .history import ReportHistory, entry_of, extended, growth_of, trend_of
from .model import Prices, ReportOptions, Row, SiteReading
from .risks import ReportFindings, risks_of
from .tenants import tenants_of_site, totals_of

VERSION = 1
Place = Mapping[str, list[dict[str, Any]]]


def document_of(
    readings: Sequence[SiteReading],
    wanted: ReportOptions,
    history: ReportHistory,
    now: float,
    counted: Sequence[Guest] = (),
) -> dict[str, Any]:
    """Return the report on all sites; `counted` is that of DriftScope.

    C(complete) is whether everything could be read.
    """
    checked = str(iso(now))
    sites: list[dict[str, Any]] = []
    tenants: list[dict[str, Any]] = []
    all_guests: list[dict[str, Any]] = []
    for reading in readings:
        guests = guests_of(reading, wanted)
        networks = networks_of(reading, guests, wanted.prefix)
        parts = {"networks": networks, "reach": reading.reach}
        sites.append({**_with_times(site_of(reading, guests)), **parts})
        tenants += tenants_of_site(reading, guests, wanted)
        all_guests += guests
    compared = [reading.drift for reading in readings if reading.drift is not None]
    drift = drift_of(compared, checked, counted) if compared else None
    totals = totals_of(tenants, wanted)
    risks = risks_of(ReportFindings(sites, tenants, totals, all_guests, drift, wanted, now))
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
        "totals": totals,
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
    tasks = site["failed_tasks"]
    timed = [{**task, "seconds": seconds(str(task["ended"])) or 0} for task in tasks]
    return {**site, "failed_tasks": timed}


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


def networks_of(
    reading: SiteReading, guests: Iterable[Row], prefix: str
) -> list[dict[str, Any]] | None:
    """Return the zones of a site with their VNets and guests, None if they could not be read.

    A guest without a readable configuration is on no VNet.
    """
    if reading.zones is None or reading.vnets is None:
        return None
    placed = _placed(reading, guests)
    zones: list[dict[str, Any]] = []
    for row in sorted(reading.zones, key=lambda one: str(one.get("zone"))):
        name = str(row.get("zone"))
        vnets = [one for one in reading.vnets if str(one.get("zone")) == name]
        vnets.sort(key=lambda one: str(one.get("vnet")))
        listed = [_vnet(one, placed, prefix) for one in vnets]
        zones.append({"zone": name, "type": str(row.get("type") or ""), "vnets": listed})
    return zones


def _vnet(row: Row, placed: Place, prefix: str) -> dict[str, Any]:
    name = str(row.get("vnet"))
    tag = row.get("tag")
    owner = marked_tag(row.get("alias"))
    return {
        "vnet": name,
        "name": without_mark(row.get("alias")),
        "tag": None if tag is None else int(tag),
        "tenant": owner.removeprefix(prefix) if owner else "",
        "guests": placed.get(name, []),
    }


def _placed(reading: SiteReading, guests: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    """Return the guests by bridge of their NICs, each guest once for a bridge."""
    known = {guest["vmid"]: guest for guest in guests}
    found: dict[str, list[dict[str, Any]]] = {}
    for one in reading.guests:
        if one.actual is None:
            continue
        guest = known[one.row.vmid]
        described = {key: guest[key] for key in ("kind", "vmid", "tenant")}
        described["name"] = str(guest["name"] or "")
        for bridge in sorted(set(one.actual.kind.bridges_in(one.actual.target).values())):
            found.setdefault(bridge, []).append(described)
    return found


_OF_CLUSTER = ("name", "version", "quorate", "storages", "containers", "failed_tasks", "health")
_OF_NODE = (
    "node",
    "status",
    "maintenance",
    "version",
    "uptime",
    "cpu",
    "memory",
    "disk",
    "vms",
    "containers",
    "capacity",
    "health",
    "error",
)
_LEFT = ("cores_left", "memory_left", "vms_left")
# Without these privileges, parts of the report are missing although no request fails.
_SILENT = (
    ("/vms", "VM.Audit", "guests that the login may not see are missing"),
    ("/nodes", "Sys.Audit", "the load and the room of nodes are unknown"),
    ("/storage", "Datastore.Audit", "storages that the login may not see are missing"),
)


def site_of(reading: SiteReading, guests: Sequence[Row]) -> dict[str, Any]:
    """Return a site. If it could not be read, `reason` is set and the rest is null or empty."""
    site: dict[str, Any] = {
        "site": reading.site,
        "reason": reading.reason or None,
        **dict.fromkeys(_OF_CLUSTER),
        "storages": [],
        "failed_tasks": [],
        "nodes": [],
        "vms": None,
        "unread": None,
        "templates": None,
        "room": None,
        "missing": [],
        "privileges": [],
    }
    if reading.state is None:
        return site
    # Container templates count as containers.
    templates = [kind_name(row.type) for row in reading.state.vms.values() if row.template]
    return {
        **site,
        **{key: reading.cluster[key] for key in _OF_CLUSTER},
        "nodes": [{key: node[key] for key in _OF_NODE} for node in reading.nodes],
        "vms": sum(guest["kind"] == VIRTUAL_MACHINE for guest in guests),
        "unread": sum(bool(guest["reason"]) for guest in guests),
        "templates": templates.count(VIRTUAL_MACHINE),
        "room": _room(reading.nodes),
        "missing": [{key: entry[key] for key in ("part", "reason")} for entry in reading.missing],
        "privileges": _lacking(reading.privileges),
    }


def _room(nodes: Iterable[Row]) -> dict[str, int | None] | None:
    """Return the capacity that placement rules leave on nodes that accept new VMs.

    Memory is in bytes. None if the capacity is unknown for every node. A node above a limit counts
    as 0, so it does not reduce the capacity of other nodes.
    """
    open_nodes = [row for row in nodes if row["capacity"] and not row["maintenance"]]
    if not open_nodes:
        return None
    room = {key: _sum_of(row["capacity"][key] for row in open_nodes) for key in _LEFT}
    if room["cores_left"] is None:
        return None
    return room


def _sum_of(amounts: Iterable[int | None]) -> int | None:
    """Return the sum of the known amounts, None if there are none: no limit, or unknown."""
    known = [max(0, amount) for amount in amounts if amount is not None]
    return sum(known) if known else None


def _lacking(held: Privileges | None) -> list[dict[str, str]]:
    """Return the privileges that the login lacks, and the effect of each on the report."""
    if held is None:
        return []
    return [
        {"path": path, "privilege": privilege, "effect": effect}
        for path, privilege, effect in _SILENT
        if privilege not in held.below(path)
    ]
