# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes as modules report them: figures, health and the room that is left (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

VERDICTS = ("ok", "unknown", "warning", "critical")


@dataclass(frozen=True)
class Rules:
    """How full a node may become, as in the choice of a node, and from what percentage on that is worth a word."""

    cpu_overcommit: float = 4.0
    memory_overcommit: float = 1.0
    min_free_memory: int | None = None  # bytes that nobody uses
    max_vms: int | None = None
    memory_warn: int = 90
    storage_warn: int = 90


@dataclass(frozen=True)
class Facts:
    """What is known about a node from the requests that are made once for all."""

    member: Mapping[str, Any]
    ha_state: str | None = None
    version: str | None = None
    quorate: bool | None = None


def report(node: str, row: Row, rows: Iterable[Row], facts: Facts, rules: Rules) -> dict[str, Any]:
    """Return a node. `row` is its own row of C(/cluster/resources), `rows` are all of them."""
    mine = [one for one in rows if one.get("node") == node]
    online = row.get("status") == "online" if row.get("status") else facts.member.get("online")
    vms = [one for one in mine if one.get("type") == "qemu"]
    result = {
        "node": node,
        "status": "online" if online else "unknown" if online is None else "offline",
        "ip": facts.member.get("ip"),
        "nodeid": facts.member.get("nodeid"),
        "uptime": _number(row, "uptime"),
        "version": facts.version,
        "kernel": None,
        "maintenance": facts.ha_state == "maintenance",
        "ha_state": facts.ha_state,
        "cpu": {"cores": _number(row, "maxcpu"), "used": row.get("cpu"), "model": None, "loadavg": None},
        "memory": _room(row, "mem", "maxmem"),
        "disk": _room(row, "disk", "maxdisk"),
        "storages": sorted((storage(one) for one in mine if one.get("type") == "storage"), key=lambda s: s["storage"]),
        "vms": counts(vms),
        "containers": sum(one.get("type") == "lxc" for one in mine),
        "capacity": capacity(row, vms, rules) if online else None,
        "error": None,
    }
    result["health"] = health(result, facts.quorate, rules)
    return result


def with_details(result: dict[str, Any], status: Row | None, reason: str | None, rules: Rules) -> dict[str, Any]:
    """Return a node with what C(GET /nodes/NODE/status) tells, or with the reason why it did not."""
    if status is None:
        if result["status"] == "online":
            health = {"status": "critical", "reasons": [f"it does not answer: {reason}", *result["health"]["reasons"]]}
            return {**result, "error": reason, "health": health}
        return {**result, "error": reason or "the node is offline"}
    cpu = status.get("cpuinfo") or {}
    memory = status.get("memory") or {}
    root = status.get("rootfs") or {}
    fresh = {
        **result,
        "uptime": int(status.get("uptime") or 0),
        "version": str(status.get("pveversion") or "").split("/")[1:2][0] if status.get("pveversion") else None,
        "kernel": (status.get("current-kernel") or {}).get("release") or status.get("kversion"),
        "cpu": {
            "cores": cpu.get("cpus"),
            "used": status.get("cpu"),
            "model": cpu.get("model"),
            "loadavg": [float(value) for value in status.get("loadavg") or ()],
        },
        "memory": _figures(memory.get("used"), memory.get("total")),
        "disk": _figures(root.get("used"), root.get("total")),
    }
    return fresh


def counts(vms: Iterable[Row]) -> dict[str, int]:
    """Return how many VMs there are by power state; templates are counted apart."""
    listed = list(vms)
    machines = [one for one in listed if not one.get("template")]
    running = sum(one.get("status") == "running" for one in machines)
    stopped = sum(one.get("status") == "stopped" for one in machines)
    return {
        "total": len(machines),
        "running": running,
        "stopped": stopped,
        "other": len(machines) - running - stopped,
        "templates": len(listed) - len(machines),
    }


def capacity(row: Row, vms: Iterable[Row], rules: Rules) -> dict[str, Any]:
    """Return what VMs were given of a node and what is left under the rules; below 0 there is too much on it.

    Every VM counts with what it may use, also one that does not run.
    """
    machines = [one for one in vms if not one.get("template")]
    memory = sum(int(one.get("maxmem") or 0) for one in machines)
    cores = sum(int(one.get("maxcpu") or 0) for one in machines)
    total, most = _number(row, "maxmem"), _number(row, "maxcpu")
    left = None if total is None else int(total * rules.memory_overcommit) - memory
    if left is not None and total is not None and rules.min_free_memory is not None:
        left = min(left, total - int(row.get("mem") or 0) - rules.min_free_memory)
    return {
        "memory_given": memory,
        "memory_left": left,
        "cores_given": cores,
        "cores_left": None if most is None else int(most * rules.cpu_overcommit) - cores,
        "vms_left": None if rules.max_vms is None else rules.max_vms - len(machines),
    }


def storage(row: Row) -> dict[str, Any]:
    """Return a storage of a node."""
    return {
        "storage": row["storage"],
        "kind": row.get("plugintype"),
        "shared": bool(row.get("shared")),
        "content": sorted(part for part in str(row.get("content") or "").split(",") if part),
        "available": row.get("status") == "available",
        **_room(row, "disk", "maxdisk"),
    }


def health(node: Mapping[str, Any], quorate: bool | None, rules: Rules) -> dict[str, Any]:
    """Return the verdict C(ok), C(warning), C(critical) or C(unknown), and every reason for it."""
    if node["status"] == "offline":
        return {"status": "critical", "reasons": ["the node is offline"]}
    if node["status"] == "unknown":
        return {"status": "unknown", "reasons": ["the caller may not see the state of the node (Sys.Audit)"]}
    grave, minor = [], []
    if quorate is False:
        grave.append("the cluster has no quorum")
    if node["maintenance"]:
        minor.append("the node is in maintenance")
    if node["ha_state"] in ("fence", "gone", "unknown"):
        grave.append(f"the HA manager says {node['ha_state']}")
    if (share := _share(node["memory"])) is not None and share >= rules.memory_warn:
        minor.append(f"{share}% of its memory is in use")
    if (share := _share(node["disk"])) is not None and share >= rules.storage_warn:
        minor.append(f"{share}% of its root file system is in use")
    minor += [text for one in node["storages"] for text in storage_faults(one, rules)]
    left = node["capacity"] or {}
    minor += [
        f"the placement rules allow {-left[key]}{unit} less than it has"
        for key, unit in (("memory_left", " bytes of memory"), ("cores_left", " cores"), ("vms_left", " VMs"))
        if left.get(key) is not None and left[key] < 0
    ]
    return {"status": "critical" if grave else "warning" if minor else "ok", "reasons": grave + minor}


def storage_faults(one: Mapping[str, Any], rules: Rules) -> list[str]:
    """Return what is wrong with a storage."""
    if not one["available"]:
        return [f"storage {one['storage']} is not available"]
    share = _share(one)
    full = share is not None and share >= rules.storage_warn
    return [f"storage {one['storage']} is {share}% full"] if full else []


def _share(room: Mapping[str, Any]) -> int | None:
    used, total = room.get("used"), room.get("total")
    return None if used is None or not total else round(100 * used / total)


def _number(row: Row, key: str) -> int | None:
    return int(row[key]) if row.get(key) is not None else None


def _room(row: Row, used: str, total: str) -> dict[str, int | None]:
    return _figures(_number(row, used), _number(row, total))


def _figures(used: Any, total: Any) -> dict[str, int | None]:
    free = None if used is None or total is None else int(total) - int(used)
    return {
        "total": None if total is None else int(total),
        "used": None if used is None else int(used),
        "free": free,
    }
