# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report, a record of drills, and a plan, as one page of HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from ...module_utils._foundation.cluster.quota import KINDS
from ...module_utils._foundation.core.formatting import printable
from ...module_utils._foundation.core.texts.plan_lines import SIGNS
from ...module_utils._foundation.core.times import iso
from ...module_utils._foundation.plans.document import Document
from ...module_utils._foundation.plans.show import label_of, lines_of_change, moves_of
from ...module_utils._operation.drift.text import differences
from ...module_utils._operation.report.costs import sum_of
from .formatting import FILTERS

Row = Mapping[str, Any]
# The number of items of a risk that are shown; the rest is folded up.
SHOWN = 12
# The height of the line of a figure, in a picture of 100 by 24.
_HEIGHT = 22


def view_of(report: Row) -> dict[str, Any]:
    """Return the parts of the page that the report does not contain in this form."""
    names = _site_names(report["sites"])
    guests = [*report["vms"], *report["containers"]]
    vms = [{**vm, "anchor": f"vm-{number}"} for number, vm in enumerate(guests)]
    tenants = _tenants(report)
    anchors = _anchors(report, vms, tenants)
    return {
        "site_names": names,
        "several": len(names) > 1,
        "shown": SHOWN,
        "tenants": tenants,
        "groups": _groups(vms),
        "differences": _differences(report["drift"], anchors),
        "anchors": anchors,
        "reach": {site["site"]: _reach(site) for site in report["sites"]},
    }


def _site_names(sites: Sequence[Row]) -> dict[str, str]:
    """Return the name of each site on the page: its own name, or the name of its cluster."""
    names: dict[str, str] = {}
    for site in sites:
        names[site["site"]] = site["site"] or site["name"] or "the cluster"
    return names


def _anchors(report: Row, vms: Sequence[Row], tenants: Sequence[Row]) -> dict[tuple[Any, ...], str]:
    """Return the anchors by site and object. They consist of numbers, not of names."""
    anchors: dict[tuple[Any, ...], str] = {}
    for number, site in enumerate(report["sites"]):
        anchors[(site["site"],)] = f"site-{number}"
        for index, node in enumerate(site["nodes"]):
            anchors[(site["site"], "node", node["node"])] = f"node-{number}-{index}"
    for number, tenant in enumerate(tenants):
        for row in (tenant, *tenant["rows"]):
            anchors[(row.get("site", ""), "tenant", row["tenant"])] = f"tenant-{number}"
    for vm in vms:
        anchors[(vm["site"], "vmid", vm["vmid"])] = vm["anchor"]
    return anchors


def _tenants(report: Row) -> list[dict[str, Any]]:
    """Return the tenants with their growth and their costs, None if unknown.

    A tenant over sites is listed once, with `rows` for its sites.
    """
    grown = report["growth"]["tenants"]
    costs = {"tenants": []} | (report["costs"] or {})
    by_owner = {(cost["site"], cost["tenant"]): cost for cost in costs["tenants"]}
    totals = {(site, one["tenant"]): one for one in report["totals"] for site in one["sites"]}
    tenants: dict[tuple[str, str], dict[str, Any]] = {}
    for tenant in report["tenants"]:
        site, name = place = tenant["site"], tenant["tenant"]
        more = {"growth": grown.get(site, {}).get(name), "cost": by_owner.get(place)}
        row = {**tenant, **more, "rows": []}
        if place in totals:
            first = (totals[place]["sites"][0], name)
            whole = tenants.setdefault(first, {**totals[place], "rows": []})
            whole["rows"].append(row)
        else:
            tenants[place] = row
    return [_with_sums(one) if one["rows"] else one for one in tenants.values()]


def _with_sums(tenant: dict[str, Any]) -> dict[str, Any]:
    """Return a tenant over sites with its growth and its costs at all sites."""
    growths = [row["growth"] for row in tenant["rows"]]
    costs = [row["cost"] for row in tenant["rows"]]
    growth = None
    if all(growths):
        growth = {kind: sum(one[kind] for one in growths) for kind in KINDS}
    cost = {"total": sum_of(costs)} if all(costs) else None
    return {**tenant, "growth": growth, "cost": cost}


def _reach(site: Row) -> list[dict[str, Any]]:
    """Return the rows of the picture of a site: a VNet of a tenant, and a VNet that it reaches."""
    if not site["networks"] or site["reach"] is None:
        return []
    vnets = {one["vnet"]: one for zone in site["networks"] for one in zone["vnets"]}
    rows: list[dict[str, Any]] = []
    for name in sorted(vnets, key=lambda one: (vnets[one]["tenant"], one)):
        own = [one for one in site["reach"] if one["source"] == name and one["dest"] in vnets]
        if not vnets[name]["tenant"]:
            continue
        first = len(rows)
        for one in own or [{"dest": None, "connections": ["reaches no other network"]}]:
            text, number = ", ".join(one["connections"]), len(one["connections"])
            short = text if number < 3 else f"{one['connections'][0]} and {number - 1} more"
            row = {"source": vnets[name], "dest": vnets.get(one["dest"]), "first": first}
            rows.append({**row, "text": text, "short": short})
    return rows


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


def _differences(drift: Row | None, anchors: Mapping[tuple[Any, ...], str]) -> list[dict[str, Any]]:
    """Return the lines of the plan that removes the drift, with the anchors of their guests."""
    lines: list[dict[str, Any]] = []
    for row, line in differences(drift) if drift else ():
        anchor = anchors.get((row["site"], "vmid", row.get("vmid")), "")
        lines.append({"line": line, "sign": SIGNS[line.action], "anchor": anchor})
    return lines


_TEMPLATES = Path(__file__).resolve().parent


def page_of(report: Mapping[str, Any], title: str, usage: Mapping[str, Any] | None = None) -> str:
    """Return the page. It needs neither network nor script, and every text in it is escaped.

    `usage` is the metered use of a month.
    """
    template = _template("page.html.j2")
    page = template.render(report=report, view=view_of(report), title=title, usage=usage)
    return printable(page)


def drill_page_of(record: Mapping[str, Any], title: str) -> str:
    """Return the page of a record of drills, with the properties of `page_of`."""
    page = _template("drill.html.j2").render(record=record, title=title)
    return printable(page)


def plan_page_of(document: Document) -> str:
    """Return the page of a plan, with the properties of `page_of`."""
    page = _template("plan.html.j2").render(
        document=document,
        created=iso(document.created),
        expires=iso(document.expires),
        moves=moves_of(document),
    )
    return printable(page)


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(FILTERS)
    environment.filters["spark"] = spark
    environment.filters["planned_label"] = label_of
    environment.filters["lines_of_change"] = lines_of_change
    return environment.get_template(name)
