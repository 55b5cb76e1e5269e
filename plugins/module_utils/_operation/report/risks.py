# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Risks that need attention, the gravest first (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..._foundation.cluster.quota import format_figures
from ..._guests.kinds.move import move_text
from ..._guests.kinds.words import CT
from ..._infrastructure.facts.node_info import read_rules
from ..._infrastructure.facts.nodes import storage_faults
from ..drift.model import DRIFTED, MISSING, PENDING, UNKNOWN, UNWANTED
from .guests import NONE, OLD
from .model import DAY, ReportOptions, Row

CRITICAL = "critical"
WARNING = "warning"
NOTICE = "notice"
_DRIFT = {
    DRIFTED: "differs from the estate",
    MISSING: "is missing",
    UNWANTED: "should not exist",
    PENDING: "waits for a reboot to be as in the estate",
}

_OF_FILE = {
    DRIFTED: "differs from the cluster file",
    MISSING: "is missing",
    UNWANTED: "should not exist",
}

_NO_DRIFT: Row = {"vms": (), "unlisted": (), "cluster": ()}

Items = Iterable[dict[str, Any]]


@dataclass(frozen=True)
class ReportFindings:
    """The parts of the report that are searched for risks. `time` is the time of the report."""

    sites: Sequence[Row]
    tenants: Sequence[Row]
    totals: Sequence[Row]
    guests: Sequence[Row]
    drift: Row | None
    wanted: ReportOptions
    time: float


@dataclass(frozen=True)
class Risk:
    """A kind of risk, and the function that finds its items. `title` is a format string."""

    kind: str
    severity: str
    title: str
    find: Callable[[ReportFindings], Items]


def risks_of(findings: ReportFindings) -> list[dict[str, Any]]:
    """Return the risks that were found: critical ones, then warnings, then notices.

    Each has `kind`, `severity`, `title`, `count` and `cases`. A case has a `text` and the object
    that it concerns: `site`, empty for a tenant over sites, and one of `node`, `tenant` and `vmid`,
    or none.
    """
    risks: list[dict[str, Any]] = []
    for risk in RISKS:
        items = list(risk.find(findings))
        if items:
            title = risk.title.format(wanted=findings.wanted)
            head = {"kind": risk.kind, "severity": risk.severity, "title": title}
            risks.append({**head, "count": len(items), "cases": items})
    return risks


def _item(row: Row, text: str, **about: Any) -> dict[str, Any]:
    nothing: Mapping[str, Any] = {"node": None, "tenant": None, "vmid": None}
    return {"site": row.get("site", ""), **nothing, **about, "text": text}


def _of_vms(vms: Iterable[Row], text: str = "{name}") -> Items:
    """Yield an item for each guest; `text` is a format string of `name` and `vm`."""
    for vm in vms:
        formatted = text.format(name=name_of(vm), vm=vm)
        yield _item(vm, formatted, vmid=vm["vmid"])


def name_of(vm: Row) -> str:
    """Return the name of a guest in the report."""
    noun = "container" if vm.get("kind") == CT else "VM"
    name = vm["name"] or f"{noun} {vm['vmid']}"
    if vm["tenant"]:
        return f"{vm['tenant']}/{name}"
    return str(name)


def _unread_sites(found: ReportFindings) -> Items:
    for site in found.sites:
        if site["reason"]:
            yield _item(site, site["reason"])


def _quorum(found: ReportFindings) -> Items:
    for site in found.sites:
        if site["quorate"] is False:
            yield _item(site, "The cluster has no quorum: nothing can be changed")


def _nodes(status: str, found: ReportFindings) -> Items:
    for site in found.sites:
        for node in site["nodes"]:
            health = node["health"]
            if health["status"] == status:
                text = f"{node['node']}: {'; '.join(health['reasons'])}"
                yield _item(site, text, node=node["node"])


def _storages(found: ReportFindings) -> Items:
    rules = read_rules(found.wanted.facts)
    for site in found.sites:
        for storage in site["storages"]:
            if storage["shared"]:
                for fault in storage_faults({**storage, "available": True}, rules):
                    yield _item(site, fault)


def _services(found: ReportFindings) -> Items:
    for site in found.sites:
        health = site["health"] or {"reasons": ()}
        for reason in health["reasons"]:
            if reason.startswith("the HA service"):
                yield _item(site, reason)


def _unknown_parts(found: ReportFindings) -> Items:
    for site in found.sites:
        for entry in site["missing"]:
            yield _item(site, entry["reason"])
        for lack in site["privileges"]:
            privilege = f"The login lacks {lack['privilege']} on {lack['path']}"
            yield _item(site, f"{privilege}: {lack['effect']}")


def _exceeded_quotas(found: ReportFindings) -> Items:
    for tenant in (*found.totals, *found.tenants):
        place = f" over the sites {', '.join(tenant['sites'])}" if "sites" in tenant else ""
        for quota in tenant["quotas"]:
            if quota["exceeded"]:
                used, limit = format_figures(quota["kind"], quota["used"], quota["limit"])
                text = f"{tenant['tenant']}: {quota['kind']} {used} of {limit}{place}"
                yield _item(tenant, text, tenant=tenant["tenant"])


def _backups(found: ReportFindings, state: str) -> list[Row]:
    """Return the guests that could be read and whose backups have this state."""
    read = [vm for vm in found.guests if not vm["reason"]]
    return [vm for vm in read if vm["backup"]["state"] == state]


def _without_backup(found: ReportFindings) -> Items:
    return _of_vms(_backups(found, NONE))


def _old_backups(found: ReportFindings) -> Items:
    for vm in _backups(found, OLD):
        date = vm["backup"]["time"].partition("T")[0]
        yield _item(vm, f"{name_of(vm)}: the newest is of {date}", vmid=vm["vmid"])


def _uncovered(found: ReportFindings) -> Items:
    """Yield the guests that are in no backup job, at sites with jobs."""
    sites = {vm["site"] for vm in found.guests if vm["jobs"]}
    known = [vm for vm in found.guests if vm["site"] in sites and vm["jobs"] is not None]
    return _of_vms([vm for vm in known if not vm["jobs"]])


def _moving(found: ReportFindings) -> Items:
    """Yield the guests whose move to another site is not complete."""
    for vm in found.guests:
        text = move_text(vm.get("move"))
        if text:
            yield _item(vm, f"{name_of(vm)}: {text}", vmid=vm["vmid"])


def _left_out(found: ReportFindings) -> Items:
    """Yield the guests in backup jobs that leave out some of their disks."""
    for vm in found.guests:
        if vm["jobs"] and vm["left_out"]:
            yield _item(vm, f"{name_of(vm)}: {', '.join(vm['left_out'])}", vmid=vm["vmid"])


def _unproven(found: ReportFindings) -> Items:
    """Yield the guests that no drill has restored, if there is a record of drills."""
    read = [vm for vm in found.guests if not vm["reason"] and vm["proven"] is not None]
    return _of_vms([vm for vm in read if vm["proven"]["time"] is None])


def _unknown_backups(found: ReportFindings) -> Items:
    return _of_vms(_backups(found, UNKNOWN), "{name}: {vm[backup][reason]}")


def _unread_vms(found: ReportFindings) -> Items:
    vms = [vm for vm in found.guests if vm["reason"]]
    return _of_vms(vms, "{name}: {vm[reason]}")


def _without_tenant(found: ReportFindings) -> Items:
    return _of_vms(vm for vm in found.guests if not vm["owners"])


def _with_names(vm: Row, names: Iterable[str]) -> dict[str, Any]:
    return _item(vm, f"{name_of(vm)}: {', '.join(names)}", vmid=vm["vmid"])


def _several_tenants(found: ReportFindings) -> Items:
    return [_with_names(vm, vm["owners"]) for vm in found.guests if len(vm["owners"]) > 1]


def _pending_reboots(found: ReportFindings) -> Items:
    return [_with_names(vm, vm["pending"]) for vm in found.guests if vm["pending"]]


def _old_snapshots(found: ReportFindings) -> Items:
    read = [vm for vm in found.guests if vm["snapshots"] is not None]
    return [_with_names(vm, vm["snapshots"]["old"]) for vm in read if vm["snapshots"]["old"]]


def _without_agent(found: ReportFindings) -> Items:
    return _of_vms(vm for vm in found.guests if vm["agent"] is False)


def _drifted(found: ReportFindings) -> Items:
    drift = found.drift or _NO_DRIFT
    for vm in drift["vms"]:
        text = _DRIFT.get(vm["status"])
        if text is not None:
            yield _item(vm, f"{name_of(vm)} {text}", vmid=vm["vmid"])
    yield from _of_vms(drift["unlisted"], "{name} is not in the estate")


def _unknown_drift(found: ReportFindings) -> Items:
    drift = found.drift or _NO_DRIFT
    vms = [vm for vm in drift["vms"] if vm["status"] == UNKNOWN]
    yield from _of_vms(vms, "{name}: {vm[reason]}")
    for row in drift["cluster"]:
        if row["status"] == UNKNOWN:
            yield _item(row, f"{_resource(row)}: {row['reason']}")


def _cluster_drift(found: ReportFindings) -> Items:
    drift = found.drift or _NO_DRIFT
    for row in drift["cluster"]:
        text = _OF_FILE.get(row["status"])
        if text is not None:
            yield _item(row, f"{_resource(row)} {text}")


def _resource(row: Row) -> str:
    """Return the name of a resource of the cluster file in the report."""
    return f"{row['section']} {row['name']}".rstrip()


def _failed_tasks(found: ReportFindings) -> Items:
    for site in found.sites:
        for task in site["failed_tasks"]:
            if task["seconds"] >= found.time - DAY:
                who = f"{task['type']} {task['id'] or ''}".strip()
                yield _item(site, f"{who} by {task['user']} on {task['node']}: {task['status']}")


RISKS = (
    Risk("site", CRITICAL, "Sites that could not be read", _unread_sites),
    Risk("quorum", CRITICAL, "Clusters without quorum", _quorum),
    Risk("node", CRITICAL, "Nodes in trouble", partial(_nodes, CRITICAL)),
    Risk("ha", CRITICAL, "HA services in trouble", _services),
    Risk("quota", CRITICAL, "Quotas that are exceeded", _exceeded_quotas),
    Risk("storage", WARNING, "Storages that are nearly full", _storages),
    Risk("node_warning", WARNING, "Nodes to watch", partial(_nodes, WARNING)),
    Risk("unknown", WARNING, "Parts of this report that are missing", _unknown_parts),
    Risk("unread", WARNING, "Guests that could not be read", _unread_vms),
    Risk("no_backup", WARNING, "Guests without a backup", _without_backup),
    Risk(
        "old_backup",
        WARNING,
        "Guests whose newest backup is older than {wanted.backup_days} days",
        _old_backups,
    ),
    Risk("backup_unknown", WARNING, "Guests whose backups cannot be known", _unknown_backups),
    Risk("uncovered", WARNING, "Guests that no backup job has", _uncovered),
    Risk("left_out", WARNING, "Guests with disks that backups leave out", _left_out),
    Risk("unproven", WARNING, "Guests whose restore no drill has proven", _unproven),
    Risk("several_tenants", WARNING, "Guests with several tenants", _several_tenants),
    Risk("no_tenant", WARNING, "Guests without a tenant", _without_tenant),
    Risk("drift", WARNING, "Differences from the estate", _drifted),
    Risk("cluster_drift", WARNING, "Differences from the cluster file", _cluster_drift),
    Risk(
        "drift_unknown",
        WARNING,
        "Guests that could not be compared with the estate",
        _unknown_drift,
    ),
    Risk("failed_task", NOTICE, "Tasks that failed in the last 24 hours", _failed_tasks),
    Risk("reboot", NOTICE, "Guests with changes that wait for a reboot", _pending_reboots),
    Risk(
        "old_snapshot",
        NOTICE,
        "Guests with snapshots older than {wanted.snapshot_days} days",
        _old_snapshots,
    ),
    Risk("move", NOTICE, "Guests that are moving to another site", _moving),
    Risk("no_agent", NOTICE, "VMs without a guest agent", _without_agent),
)
