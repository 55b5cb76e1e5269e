# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of the page, ordered and with anchors, from a report (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils._operation.report.risks import name_of

Row = Mapping[str, Any]
# The number of items of a risk that are shown; the rest is folded up.
SHOWN = 12
_DRIFT_CLASS = {"drifted": "warning", "missing": "warning", "unwanted": "warning"}
# The height of the line of a figure, in a picture of 100 by 24.
_HEIGHT = 22


def view_of(report: Row) -> dict[str, Any]:
    """Return the parts of the page that the report does not contain in this form."""
    names = _site_names(report["sites"])
    guests = [*report["vms"], *report["containers"]]
    vms = [{**vm, "anchor": f"vm-{number}"} for number, vm in enumerate(guests)]
    anchors = _anchors(report, vms)
    return {
        "site_names": names,
        "several": len(names) > 1,
        "shown": SHOWN,
        "tenants": _tenants(report),
        "groups": _groups(vms),
        "drifted": _drifted(report["drift"], anchors) + _of_cluster(report["drift"], names),
        "anchors": anchors,
    }


def _site_names(sites: Sequence[Row]) -> dict[str, str]:
    """Return the name of each site on the page: its own name, or the name of its cluster."""
    names: dict[str, str] = {}
    for site in sites:
        names[site["site"]] = site["site"] or site["name"] or "the cluster"
    return names


def _anchors(report: Row, vms: Sequence[Row]) -> dict[tuple[Any, ...], str]:
    """Return the anchors by site and object. They consist of numbers, not of names."""
    anchors: dict[tuple[Any, ...], str] = {}
    for number, site in enumerate(report["sites"]):
        anchors[(site["site"],)] = f"site-{number}"
        for index, node in enumerate(site["nodes"]):
            anchors[(site["site"], "node", node["node"])] = f"node-{number}-{index}"
    for number, tenant in enumerate(report["tenants"]):
        anchors[(tenant["site"], "tenant", tenant["tenant"])] = f"tenant-{number}"
    for vm in vms:
        anchors[(vm["site"], "vmid", vm["vmid"])] = vm["anchor"]
    return anchors


def _tenants(report: Row) -> list[dict[str, Any]]:
    """Return the tenants with their growth and their costs, None if unknown."""
    grown = report["growth"]["tenants"]
    costs = {"tenants": []} | (report["costs"] or {})
    by_owner = {(cost["site"], cost["tenant"]): cost for cost in costs["tenants"]}
    tenants: list[dict[str, Any]] = []
    for tenant in report["tenants"]:
        site, name = tenant["site"], tenant["tenant"]
        more = {"growth": grown.get(site, {}).get(name), "cost": by_owner.get((site, name))}
        tenants.append({**tenant, **more})
    return tenants


def spark(trend: Sequence[Row], kind: str) -> str:
    """Return the points of a figure's line over time, empty with fewer than two reports."""
    values = [row[kind] for row in trend]
    if len(values) < 2:
        return ""
    lowest, highest = min(values), max(values)
    spread = max(1, highest - lowest)
    step = 100 / (len(values) - 1)
    points: list[str] = []
    for number, value in enumerate(values):
        right = number * step
        up = (value - lowest) / spread * (_HEIGHT - 2)
        points.append(f"{right:.2f},{_HEIGHT - up:.2f}")
    return " ".join(points)


def _groups(vms: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the VMs by site and tenant, VMs that have no tenant last, sorted by name."""
    by_owner: dict[tuple[str, bool, str], list[Row]] = {}
    for vm in vms:
        key = (vm["site"], not vm["tenant"], vm["tenant"])
        by_owner.setdefault(key, []).append(vm)
    groups: list[dict[str, Any]] = []
    for key in sorted(by_owner):
        site, _without, tenant = key
        own = sorted(by_owner[key], key=lambda vm: (vm["name"], vm["vmid"]))
        groups.append({"site": site, "tenant": tenant, "vms": own})
    return groups


def _drifted(drift: Row | None, anchors: Mapping[tuple[Any, ...], str]) -> list[dict[str, Any]]:
    """Return the VMs that differ from the estate, and the VMs that are not in it."""
    found: list[dict[str, Any]] = []
    if drift is None:
        return found
    unlisted = [{**vm, "status": "not in the estate"} for vm in drift["unlisted"]]
    for vm in (*drift["vms"], *unlisted):
        if vm["status"] == "in_sync":
            continue
        found.append(
            {
                "reason": None,
                "options": [],
                **vm,
                "label": name_of(vm),
                "class": _DRIFT_CLASS.get(vm["status"], "plain"),
                "anchor": anchors.get((vm["site"], "vmid", vm["vmid"]), ""),
            }
        )
    return found


def _of_cluster(drift: Row | None, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the resources that differ from the cluster file."""
    found: list[dict[str, Any]] = []
    if drift is None:
        return found
    for row in drift["cluster"]:
        if row["status"] == "in_sync":
            continue
        label = f"{row['section']} {row['name']}".rstrip()
        if len(names) > 1:
            label = f"{label} ({names.get(row['site'], row['site'])})"
        css_class = _DRIFT_CLASS.get(row["status"], "plain")
        found.append({**row, "label": label, "class": css_class, "anchor": ""})
    return found
