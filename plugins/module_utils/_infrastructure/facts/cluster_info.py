# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module cluster_info: nodes, storages, health, HA, and the usage of each tenant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.tenant import PREFIX, parse_tags, tenants_of
from ..._foundation.core import validate
from ..._foundation.core.result import Result
from ..._foundation.core.times import iso
from ..._guests.kinds.words import VM
from .node_info import read_rules
from .nodes import (
    FAULTY_HA_STATES,
    CapacityRules,
    Row,
    counts,
    guests,
    of_type,
    other_guests,
    storage,
    storage_faults,
    total,
    verdict,
    without_templates,
)
from .partial_read import PartialRead, node_states, standing

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


_BAD_SERVICES = frozenset({"error", "fence", "recovery"})
_NETWORK_KEYS = (
    "iface",
    "type",
    "active",
    "autostart",
    "method",
    "cidr",
    "address",
    "netmask",
    "gateway",
    "bridge_ports",
    "bridge_vlan_aware",
)
_SERVICE_KEYS = ("sid", "node", "state", "request_state", "status")


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the cluster. Nothing is written.

    Six requests, and one more for each online node if networks are requested. C(missing) lists the
    parts that could not be read. Raises ValidationFailed for options out of range.
    """
    rules = read_rules(params)
    max_tasks = int(params.get("failed_tasks") or 0)
    validate.number(max_tasks, 0, 1000, "failed_tasks")
    read = PartialRead(client)
    version = read.version()
    head = standing(read.read("cluster status", "cluster", "status"))
    rows = read.rows("listing of the cluster", "cluster", "resources")
    current = read.read("HA status", "cluster", "ha", "status", "current")
    manager = read.read("HA manager's status", "cluster", "ha", "status", "manager_status")
    states = node_states(manager, rows)
    tasks = read.rows("tasks", "cluster", "tasks")
    nodes = nodes_of(head["members"], rows, states)
    if not nodes:
        listed = read.rows("nodes", "nodes")
        node_rows = [{**row, "type": "node"} for row in listed]
        nodes = nodes_of({}, node_rows, states)
    networks = None
    if params.get("networks"):
        online = [node["node"] for node in nodes if node["status"] == "online"]
        networks = networks_of(read.each("networks", online, "network"))
    all_guests = guests(rows)
    prefix = params.get("tenant_prefix") or PREFIX
    cluster: dict[str, Any] = {
        "name": head["name"],
        "version": version,
        "quorate": head["quorate"],
        "nodes": nodes,
        "storages": storages_of(rows),
        "networks": networks,
        "totals": figures(all_guests),
        "containers": len(other_guests(rows)),
        "pools": sorted(row["pool"] for row in of_type(rows, "pool")),
        **by_tenant(all_guests, prefix),
        "ha": ha_of(current, states),
        "failed_tasks": failed(tasks, max_tasks),
        "missing": sorted(read.missing, key=lambda row: str(row["part"])),
        "checked": iso(client.clock.time()),
    }
    cluster["health"] = health(cluster, rules)
    return Result(False, {"cluster": cluster}, warnings=read.warnings)


def nodes_of(
    members: Mapping[str, Row], rows: Iterable[Row], states: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return a summary of each node: address, size and its state in the HA manager (pure)."""
    row_of = {row["node"]: row for row in of_type(rows, "node")}
    result = []
    for node in sorted(row_of.keys() | members.keys()):
        member = members.get(node, {})
        row = row_of.get(node, {})
        online = member.get("online", row.get("status") == "online")
        state = states.get(node)
        result.append(
            {
                "node": node,
                "status": "online" if online else "offline",
                "ip": member.get("ip"),
                "nodeid": member.get("nodeid"),
                "cores": row.get("maxcpu"),
                "memory": row.get("maxmem"),
                "memory_used": row.get("mem"),
                "uptime": row.get("uptime"),
                "ha_state": state,
                "maintenance": state == "maintenance",
            }
        )
    return result


def storages_of(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return each storage once, sorted by name (pure).

    A shared storage has the figures of one node, a local one the sum over its nodes.
    """
    by_name: dict[str, dict[str, dict[str, Any]]] = {}
    for row in of_type(rows, "storage"):
        places = by_name.setdefault(row["storage"], {})
        places[row["node"]] = storage(row)
    storages: list[dict[str, Any]] = []
    for name, places in sorted(by_name.items()):
        first = next(iter(places.values()))
        known = [report for report in places.values() if report["total"] is not None]
        if first["shared"]:
            known = known[:1]
        unavailable_on = [node for node, report in places.items() if not report["available"]]
        storages.append(
            {
                "storage": name,
                "kind": first["kind"],
                "shared": first["shared"],
                "content": first["content"],
                "nodes": sorted(places),
                "unavailable_on": sorted(unavailable_on),
                **{key: total(known, key) if known else None for key in ("total", "used", "free")},
            }
        )
    return storages


def networks_of(answers: Mapping[str, list[Row] | None]) -> dict[str, list[Row] | None]:
    """Return the interfaces of each node, None for a node without an answer (pure)."""
    networks: dict[str, list[Row] | None] = dict.fromkeys(answers)
    for node, rows in answers.items():
        if rows is not None:
            networks[node] = [
                {key: row[key] for key in _NETWORK_KEYS if row.get(key) is not None}
                for row in sorted(rows, key=lambda row: str(row["iface"]))
            ]
    return networks


def ha_of(current: Iterable[Row] | None, states: Mapping[str, str]) -> dict[str, Any] | None:
    """Return quorum, master, and the state of nodes and services in the HA manager (pure).

    None if the status could not be read.
    """
    if current is None:
        return None
    by_type: dict[str, list[Row]] = {}
    for row in current:
        by_type.setdefault(str(row.get("type")), []).append(row)
    nothing: list[Row] = [{}]
    quorum = by_type.get("quorum", nothing)[0]
    master = by_type.get("master", nothing)[0]
    fencing = by_type.get("fencing", nothing)[0]
    services = [{key: row.get(key) for key in _SERVICE_KEYS} for row in by_type.get("service", ())]
    return {
        "quorate": bool(quorum.get("quorate")),
        "master": master.get("node"),
        "fencing": fencing.get("armed-state"),
        "resource_mode": fencing.get("resource_mode"),
        "nodes": dict(states),
        "services": sorted(services, key=lambda row: str(row["sid"])),
    }


def failed(tasks: Iterable[Row], maximum: int) -> list[dict[str, Any]]:
    """Return the latest failed tasks, newest first, at most `maximum` (pure)."""
    latest = [task for task in tasks if _has_failed(task)]
    latest.sort(key=lambda task: int(task["endtime"]), reverse=True)
    return [
        {
            "upid": task.get("upid"),
            "node": task.get("node"),
            "type": task.get("type"),
            "id": task.get("id"),
            "user": task.get("user"),
            "ended": iso(int(task["endtime"])),
            "status": task.get("status"),
        }
        for task in latest[:maximum]
    ]


def _has_failed(task: Row) -> bool:
    status = task.get("status")
    if not task.get("endtime") or status is None:
        return False
    return status != "OK" and not str(status).startswith("WARNINGS")


def health(cluster: Mapping[str, Any], rules: CapacityRules) -> dict[str, Any]:
    """Return C(status): ok, warning, critical or unknown, and C(reasons): all of them (pure)."""
    grave: list[str] = []
    if cluster["quorate"] is False:
        grave.append("the cluster has no quorum: nothing can be changed")
    minor = _node_faults(cluster["nodes"])
    offline = {node["node"] for node in cluster["nodes"] if node["status"] == "offline"}
    for one in cluster["storages"]:
        unavailable_on = set(one["unavailable_on"]) - offline
        for node in sorted(unavailable_on):
            minor.append(f"storage {one['storage']} is not available on {node}")
        minor += storage_faults({**one, "available": True}, rules)
    minor += _service_faults(cluster["ha"])
    ambiguous = cluster["ambiguous"]["vmids"]
    if ambiguous:
        vmids = ", ".join(map(str, ambiguous))
        minor.append(f"guests have the tags of several tenants: {vmids}")
    if cluster["quorate"] is None and not minor:
        return {"status": "unknown", "reasons": ["the cluster's status could not be read"]}
    return verdict(grave, minor)


def _service_faults(ha: Row | None) -> list[str]:
    if ha is None:
        return []
    faults: list[str] = []
    if ha["fencing"] in ("disarming", "disarmed"):
        faults.append("the HA manager is disarmed: it does not restart guests of a failed node")
    for service in ha["services"]:
        state = service["state"]
        if state in _BAD_SERVICES:
            faults.append(f"the HA service {service['sid']} is in state {state}")
    return faults


def _node_faults(nodes: Iterable[Row]) -> list[str]:
    faults: list[str] = []
    for node in nodes:
        name = node["node"]
        state = node["ha_state"]
        if node["status"] == "offline":
            faults.append(f"node {name} is offline")
        elif node["maintenance"]:
            faults.append(f"node {name} is in maintenance")
        elif state in FAULTY_HA_STATES:
            faults.append(f"the HA manager says that node {name} is {state}")
    return faults


def by_tenant(guests: Iterable[Row], prefix: str) -> dict[str, Any]:
    """Return the figures of each tenant, of guests without a tenant, and of guests with several."""
    owned: dict[str, list[Row]] = {}
    without_tenant: list[Row] = []
    with_several: list[Row] = []
    for guest in guests:
        tags = parse_tags(guest.get("tags"))
        owners = tenants_of(tags, prefix)
        if not owners:
            without_tenant.append(guest)
        elif len(owners) > 1:
            with_several.append(guest)
        else:
            tenant = owners[0][len(prefix) :]
            owned.setdefault(tenant, []).append(guest)
    return {
        "tenants": {tenant: figures(owned[tenant]) for tenant in sorted(owned)},
        "untenanted": {**figures(without_tenant), "vmids": _vmids(without_tenant)},
        "ambiguous": {**figures(with_several), "vmids": _vmids(with_several)},
    }


def figures(guests: Iterable[Row]) -> dict[str, Any]:
    """Return counts of VMs and of containers, and their cores, memory and disk in bytes.

    Only system disks count, because the listing contains no other disks. Templates count only as
    templates and in the disk figure.
    """
    listed = list(guests)
    machines = without_templates(listed)
    return {
        "vms": counts(of_type(listed, VM.type)),
        "containers": counts(other_guests(listed)),
        "cores": total(machines, "maxcpu"),
        "memory": total(machines, "maxmem"),
        "disk": total(listed, "maxdisk"),
    }


def _vmids(rows: Iterable[Row]) -> list[int]:
    return sorted(int(row["vmid"]) for row in rows)
