# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module cluster_info: what the cluster is, how it fares, and who has how much of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._cluster.tenant import PREFIX
from .._core import validate
from .._core.result import Result
from .._core.times import iso
from .node_info import read_rules
from .nodes import Rules, storage, storage_faults
from .parts import Parts, node_states, standing
from .tenants import by_tenant, figures

if TYPE_CHECKING:
    from .._api.client import Client

Row = Mapping[str, Any]
_MOST_TASKS = 1000
_BAD_SERVICES = frozenset({"error", "fence", "recovery"})
_NETWORK_KEYS = "iface type active autostart method cidr address netmask gateway bridge_ports bridge_vlan_aware".split()


def gather(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the cluster. Nothing is written, in check mode or out of it.

    Six requests, and with networks one more for each node that is online. What cannot be read is in C(missing).
    """
    rules = read_rules(params)
    most_tasks = validate.number(int(params.get("failed_tasks") or 0), 0, _MOST_TASKS, "failed_tasks")
    parts = Parts(client)
    version = parts.read("version", "version", vital=True) or {}
    head = standing(parts.read("cluster status", "cluster", "status"))
    rows: list[Row] = parts.read("listing of the cluster", "cluster", "resources") or []
    current = parts.read("HA status", "cluster", "ha", "status", "current")
    states = node_states(parts.read("HA manager's status", "cluster", "ha", "status", "manager_status"), rows)
    tasks = parts.read("tasks", "cluster", "tasks")
    nodes = nodes_of(head["members"], rows, states)
    if not nodes:
        listed = parts.read("nodes", "nodes") or []
        nodes = nodes_of({}, [{**row, "type": "node"} for row in listed], states)
    online = [node["node"] for node in nodes if node["status"] == "online"]
    vms = [row for row in rows if row.get("type") == "qemu"]
    cluster: dict[str, Any] = {
        "name": head["name"],
        "version": version.get("version"),
        "quorate": head["quorate"],
        "nodes": nodes,
        "storages": storages_of(rows),
        "networks": networks_of(parts.each("networks", online, "network")) if params.get("networks") else None,
        "totals": figures(vms),
        "containers": sum(row.get("type") == "lxc" for row in rows),
        "pools": sorted(row["pool"] for row in rows if row.get("type") == "pool"),
        **by_tenant(vms, params.get("tenant_prefix") or PREFIX),
        "ha": ha_of(current, states),
        "failed_tasks": failed(tasks or [], most_tasks),
        "missing": sorted(parts.missing, key=lambda row: str(row["part"])),
        "checked": iso(client.clock.time()),
    }
    cluster["health"] = health(cluster, rules)
    return Result(False, {"cluster": cluster}, warnings=parts.warnings)


def nodes_of(members: Mapping[str, Row], rows: Iterable[Row], states: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the nodes in short: address, state and what the HA manager thinks (pure)."""
    own = {row["node"]: row for row in rows if row.get("type") == "node"}
    result = []
    for node in sorted(own.keys() | members.keys()):
        member, row = members.get(node, {}), own.get(node, {})
        online = member.get("online", row.get("status") == "online")
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
                "ha_state": states.get(node),
                "maintenance": states.get(node) == "maintenance",
            }
        )
    return result


def storages_of(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return each storage once: a shared one with its figures, a local one with the sum over its nodes (pure)."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for row in rows:
        if row.get("type") == "storage":
            found.setdefault(row["storage"], []).append((row["node"], storage(row)))
    result = []
    for name, places in sorted(found.items()):
        first = places[0][1]
        known = [one for _node, one in places if one["total"] is not None]
        known = known[:1] if first["shared"] else known
        sums = {key: sum(one[key] or 0 for one in known) if known else None for key in ("total", "used", "free")}
        result.append(
            {
                "storage": name,
                "kind": first["kind"],
                "shared": first["shared"],
                "content": first["content"],
                "nodes": sorted(node for node, _one in places),
                "unavailable_on": sorted(node for node, one in places if not one["available"]),
                **sums,
            }
        )
    return result


def networks_of(answers: Mapping[str, list[Row] | None]) -> dict[str, list[dict[str, Any]] | None]:
    """Return the interfaces of each node, None for a node that did not tell (pure)."""
    return {
        node: None
        if rows is None
        else sorted(
            ({key: row[key] for key in _NETWORK_KEYS if row.get(key) is not None} for row in rows),
            key=lambda row: str(row["iface"]),
        )
        for node, rows in answers.items()
    }


def ha_of(current: Iterable[Row] | None, states: Mapping[str, str]) -> dict[str, Any] | None:
    """Return quorum, master, the nodes' and the services' state as the HA manager tells them, or None (pure)."""
    if current is None:
        return None
    listed = list(current)

    def first(kind: str) -> Row:
        return next((row for row in listed if row.get("type") == kind), {})

    services = [
        {
            "sid": row.get("sid"),
            "node": row.get("node"),
            "state": row.get("state"),
            "request_state": row.get("request_state"),
            "status": row.get("status"),
        }
        for row in listed
        if row.get("type") == "service"
    ]
    return {
        "quorate": bool(first("quorum").get("quorate")),
        "master": first("master").get("node"),
        "fencing": first("fencing").get("armed-state"),
        "nodes": dict(states),
        "services": sorted(services, key=lambda row: str(row["sid"])),
    }


def failed(tasks: Iterable[Row], most: int) -> list[dict[str, Any]]:
    """Return the last tasks that failed, the newest first, at most that many (pure)."""
    bad = [
        row
        for row in tasks
        if row.get("endtime")
        and row.get("status") not in (None, "OK")
        and not str(row["status"]).startswith("WARNINGS")
    ]
    bad.sort(key=lambda row: int(row["endtime"]), reverse=True)
    return [
        {
            "upid": row.get("upid"),
            "node": row.get("node"),
            "type": row.get("type"),
            "id": row.get("id"),
            "user": row.get("user"),
            "ended": iso(int(row["endtime"])),
            "status": row.get("status"),
        }
        for row in bad[:most]
    ]


def health(cluster: Mapping[str, Any], rules: Rules) -> dict[str, Any]:
    """Return the verdict C(ok), C(warning), C(critical) or C(unknown), and every reason for it (pure)."""
    grave, minor = [], []
    if cluster["quorate"] is False:
        grave.append("the cluster has no quorum: nothing can be changed")
    for node in cluster["nodes"]:
        if node["status"] == "offline":
            minor.append(f"node {node['node']} is offline")
        elif node["maintenance"]:
            minor.append(f"node {node['node']} is in maintenance")
        elif node["ha_state"] in ("fence", "gone", "unknown"):
            minor.append(f"the HA manager says that node {node['node']} is {node['ha_state']}")
    down = {node["node"] for node in cluster["nodes"] if node["status"] == "offline"}
    for one in cluster["storages"]:
        away = [node for node in one["unavailable_on"] if node not in down]
        minor += [f"storage {one['storage']} is not available on {node}" for node in away]
        minor += storage_faults({**one, "available": True}, rules)
    for service in (cluster["ha"] or {}).get("services", ()):
        if service["state"] in _BAD_SERVICES:
            minor.append(f"the HA service {service['sid']} is in state {service['state']}")
    if cluster["ambiguous"]["vmids"]:
        numbers = ", ".join(map(str, cluster["ambiguous"]["vmids"]))
        minor.append(f"VMs bear the tags of several tenants: {numbers}")
    status = "critical" if grave else "warning" if minor else "ok"
    if status == "ok" and cluster["quorate"] is None:
        status, minor = "unknown", ["the cluster's status could not be read"]
    return {"status": status, "reasons": grave + minor}
