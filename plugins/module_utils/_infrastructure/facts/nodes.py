# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes as modules report them: figures, health and free capacity (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._foundation.core.quantities import readable_size
from ..._guests.kinds.words import VM

Row = Mapping[str, Any]

# States in the HA manager of a node that does not work.
FAULTY_HA_STATES = frozenset({"fence", "gone", "unknown"})


@dataclass(frozen=True)
class CapacityRules:
    """The limits of a node, as in placement, and the percentages that lead to a warning."""

    cpu_overcommit: float = 4.0
    memory_overcommit: float = 1.0
    min_free_memory: int | None = None  # bytes that must stay unused
    max_vms: int | None = None
    max_vms_by_node: Mapping[str, int] = field(default_factory=dict)
    memory_warn: int = 90
    storage_warn: int = 90


@dataclass(frozen=True)
class NodeFacts:
    """Facts about one node from the requests for the whole cluster."""

    member: Mapping[str, Any]
    ha_state: str | None = None
    version: str | None = None
    quorate: bool | None = None


def report(
    node: str, row: Row, rows: Iterable[Row], facts: NodeFacts, rules: CapacityRules
) -> dict[str, Any]:
    """Return a node. `row` is its row of C(/cluster/resources), `rows` are all rows."""
    on_node = [one for one in rows if one.get("node") == node]
    vms = of_type(on_node, VM.type)
    storages = [storage(one) for one in of_type(on_node, "storage")]
    status = _status(row, facts.member)
    free_capacity = capacity(row, guests(on_node), rules) if status == "online" else None
    result = {
        "node": node,
        "status": status,
        "ip": facts.member.get("ip"),
        "nodeid": facts.member.get("nodeid"),
        "uptime": _number(row, "uptime"),
        "version": facts.version,
        "kernel": None,
        "maintenance": facts.ha_state == "maintenance",
        "ha_state": facts.ha_state,
        "cpu": {
            "cores": _number(row, "maxcpu"),
            "used": row.get("cpu"),
            "model": None,
            "loadavg": None,
        },
        "memory": _usage(row.get("mem"), row.get("maxmem")),
        "disk": _usage(row.get("disk"), row.get("maxdisk")),
        "storages": sorted(storages, key=lambda one: one["storage"]),
        "vms": counts(vms),
        "containers": len(other_guests(on_node)),
        "capacity": free_capacity,
        "error": None,
    }
    result["health"] = health(result, facts.quorate, rules)
    return result


def _status(row: Row, member: Row) -> str:
    """Return online, offline or unknown; the listing has precedence over the membership."""
    online = row["status"] == "online" if row.get("status") else member.get("online")
    if online is None:
        return "unknown"
    return "online" if online else "offline"


def with_details(
    node: dict[str, Any], status: Row | None, reason: str | None, rules: CapacityRules
) -> dict[str, Any]:
    """Return a node with the facts of C(GET /nodes/NODE/status), or with the reason why not."""
    if status is None:
        if node["status"] != "online":
            return {**node, "error": reason or "the node is offline"}
        reasons = [f"it does not answer: {reason}", *node["health"]["reasons"]]
        critical = {"status": "critical", "reasons": reasons}
        return {**node, "error": reason, "health": critical}
    cpu = dictionary(status, "cpuinfo")
    memory = dictionary(status, "memory")
    root = dictionary(status, "rootfs")
    kernel = dictionary(status, "current-kernel")
    loadavg = status.get("loadavg") or ()
    return {
        **node,
        "uptime": int(status.get("uptime") or 0),
        "version": _version(status.get("pveversion")),
        "kernel": kernel.get("release") or status.get("kversion"),
        "cpu": {
            "cores": cpu.get("cpus"),
            "used": status.get("cpu"),
            "model": cpu.get("model"),
            "loadavg": [None if value is None else float(value) for value in loadavg],
        },
        "memory": _usage(memory.get("used"), memory.get("total")),
        "disk": _usage(root.get("used"), root.get("total")),
    }


def dictionary(answer: Row, key: str) -> Row:
    """Return the dictionary under a key of an answer, an empty one if PVE left it out."""
    value = answer.get(key)
    return value or {}


def _version(text: str | None) -> str | None:
    """Return the version in C(pve-manager/9.2.11/...)."""
    parts = [*str(text).split("/"), None]
    return parts[1]


def of_type(rows: Iterable[Row], kind: str) -> list[Row]:
    """Return the rows of C(/cluster/resources) of one type: node, storage, pool or a guest type."""
    return [row for row in rows if row.get("type") == kind]


def guests(rows: Iterable[Row]) -> list[Row]:
    """Return the guests of all kinds."""
    return [row for row in rows if "vmid" in row]


def other_guests(rows: Iterable[Row]) -> list[Row]:
    """Return the guests that are not VMs: containers."""
    return [row for row in guests(rows) if row.get("type") != VM.type]


def without_templates(listed: Iterable[Row]) -> list[Row]:
    """Return the guests that are not templates."""
    return [guest for guest in listed if not guest.get("template")]


def total(rows: Iterable[Row], key: str) -> int:
    """Return the sum of one figure over rows; a row without this figure counts 0."""
    return sum(int(row.get(key) or 0) for row in rows)


def counts(vms: Iterable[Row]) -> dict[str, int]:
    """Return the number of VMs by power state; templates are counted separately."""
    listed = list(vms)
    machines = without_templates(listed)
    statuses = [vm.get("status") for vm in machines]
    running = statuses.count("running")
    stopped = statuses.count("stopped")
    return {
        "total": len(machines),
        "running": running,
        "stopped": stopped,
        "other": len(machines) - running - stopped,
        "templates": len(listed) - len(machines),
    }


def capacity(row: Row, listed: Iterable[Row], rules: CapacityRules) -> dict[str, Any]:
    """Return the resources allocated to the guests of a node, and the rest that the rules leave.

    Memory is in bytes. The rest is below 0 if the rules are exceeded. It includes the overcommit
    factors of the rules: with a factor above 1, more cores can be left than the node has.
    As in placement, every VM and container counts with its maximum, whether it runs or not. PVE
    lists a container without `cores` with the cores of its node (pve-container: LXC.pm, vmstatus).
    """
    machines = without_templates(listed)
    memory = total(machines, "maxmem")
    cores = total(machines, "maxcpu")
    node_cores, node_memory = _number(row, "maxcpu"), _number(row, "maxmem")
    cores_left = memory_left = None
    if node_cores is not None:
        cores_left = int(node_cores * rules.cpu_overcommit) - cores
    if node_memory is not None:
        memory_left = int(node_memory * rules.memory_overcommit) - memory
        if rules.min_free_memory is not None:
            free = node_memory - int(row.get("mem") or 0)
            memory_left = min(memory_left, free - rules.min_free_memory)
    max_vms = rules.max_vms_by_node.get(str(row.get("node")), rules.max_vms)
    vms_left = max_vms - len(machines) if max_vms is not None else None
    return {
        "memory_given": memory,
        "memory_left": memory_left,
        "cores_given": cores,
        "cores_left": cores_left,
        "vms_left": vms_left,
        "cpu_overcommit": rules.cpu_overcommit,
        "memory_overcommit": rules.memory_overcommit,
    }


def storage(row: Row) -> dict[str, Any]:
    """Return a storage of a node."""
    content = str(row.get("content") or "").split(",")
    return {
        "storage": row["storage"],
        "kind": row.get("plugintype"),
        "shared": bool(row.get("shared")),
        "content": sorted(filter(None, content)),
        "available": row.get("status") == "available",
        **_usage(row.get("disk"), row.get("maxdisk")),
    }


def health(node: Mapping[str, Any], quorate: bool | None, rules: CapacityRules) -> dict[str, Any]:
    """Return the verdict C(ok), C(warning), C(critical) or C(unknown), and every reason for it."""
    if node["status"] == "offline":
        return {"status": "critical", "reasons": ["the node is offline"]}
    if node["status"] == "unknown":
        reason = "the caller may not see the state of the node (Sys.Audit)"
        return {"status": "unknown", "reasons": [reason]}
    grave: list[str] = []
    minor: list[str] = []
    capacity_left = node["capacity"] or {}
    if quorate is False:
        grave.append("the cluster has no quorum")
    if node["maintenance"]:
        minor.append("the node is in maintenance")
    if node["ha_state"] in FAULTY_HA_STATES:
        grave.append(f"the HA manager says {node['ha_state']}")
    share = _share(node["memory"])
    if share >= rules.memory_warn:
        minor.append(f"{share}% of its memory is in use")
    share = _share(node["disk"])
    if share >= rules.storage_warn:
        minor.append(f"{share}% of its root file system is in use")
    for one in node["storages"]:
        minor += storage_faults(one, rules)
    minor += _overcommitted(capacity_left, rules)
    return verdict(grave, minor)


def verdict(grave: list[str], minor: list[str]) -> dict[str, Any]:
    """Return C(critical) if there is a grave reason, C(warning) for a minor one, else C(ok)."""
    status = "warning" if minor else "ok"
    if grave:
        status = "critical"
    return {"status": status, "reasons": grave + minor}


def _overcommitted(rest: Mapping[str, Any], rules: CapacityRules) -> list[str]:
    """Return the limits that are exceeded, each with its factor."""
    limits = {
        "memory_left": ("memory", f" (memory_overcommit {rules.memory_overcommit:g})"),
        "cores_left": ("cores", f" (cpu_overcommit {rules.cpu_overcommit:g})"),
        "vms_left": ("guests", ""),
    }
    reasons: list[str] = []
    for key, (unit, factor) in limits.items():
        amount = rest.get(key)
        if amount is None or amount >= 0:
            continue
        excess = readable_size(-amount) if key == "memory_left" else str(-amount)
        reasons.append(f"{unit}: {excess} more than the placement rules allow{factor}")
    return reasons


def storage_faults(one: Mapping[str, Any], rules: CapacityRules) -> list[str]:
    """Return the faults of a storage, as sentences."""
    if not one["available"]:
        return [f"storage {one['storage']} is not available"]
    share = _share(one)
    if share >= rules.storage_warn:
        return [f"storage {one['storage']} is {share}% full"]
    return []


def _share(usage: Mapping[str, Any]) -> int:
    """Return the used share in percent, 0 if it is not known."""
    used, available = usage.get("used"), usage.get("total")
    return round(100 * used / available) if used is not None and available else 0


def _number(row: Row, key: str) -> int | None:
    value = row.get(key)
    return None if value is None else int(value)


def _usage(used: Any, available: Any) -> dict[str, int | None]:
    """Return `total`, `used` and `free` in bytes, each None if it is not known."""
    return {
        "total": None if available is None else int(available),
        "used": None if used is None else int(used),
        "free": None if None in (used, available) else int(available) - int(used),
    }
