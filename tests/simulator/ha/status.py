"""The HA manager's reports on itself, on the nodes and on the machines.

The shapes come from pve-ha-manager: `Manager.pm` writes the manager's status, `LRM.pm` each node's,
`API2/HA/Status.pm` makes the list of both.
"""

from __future__ import annotations

import base64
import hashlib
import time
from typing import Any

from ..core.api import Ctx, api
from ..core.state import Cluster, NodeInfo
from .groups import has_groups
from .records import at_work, is_managed, is_tracked, sid_of

_DEAD_AFTER = 30  # seconds after which a timestamp counts as old


def awake(cluster: Cluster) -> bool:
    """Whether the manager has had something to do, ever: before that it knows no node."""
    return cluster.ha_active and cluster.ha_awake


def node_states(cluster: Cluster) -> dict[str, str]:
    """The manager's view of each node; fencing is not simulated."""
    if not awake(cluster):
        return {}
    return {name: _node_state(node) for name, node in cluster.nodes.items()}


def _node_state(node: NodeInfo) -> str:
    if node.maintenance:
        return "maintenance"
    return "online" if node.online else "unknown"


def _master(cluster: Cluster) -> str:
    return next((name for name in cluster.nodes if at_work(cluster, name)), cluster.local)


def _written(cluster: Cluster) -> int:
    """When the manager wrote its status last: without quorum it cannot."""
    return int(cluster.now() if cluster.quorate else cluster.quorum_lost)


def _service(cluster: Cluster, sid: str) -> dict[str, Any] | None:
    """A machine's entry in the manager's status."""
    vmid = int(sid.partition(":")[2])
    vm = cluster.guest(vmid)
    if vm is None or not is_tracked(cluster, vmid):
        return None
    wanted = cluster.ha_resources[sid].get("state", "started")
    state = "started" if wanted in ("started", "enabled") else "stopped"
    state = cluster.ha_moving.get(vmid, state)
    disarm = cluster.ha_disarm
    if disarm and disarm["mode"] == "freeze":
        state = "freeze"
    token = hashlib.md5(f"{sid} {state} {vm.node}".encode(), usedforsecurity=False).digest()
    entry: dict[str, Any] = {
        "node": vm.node,
        "state": state,
        "uid": base64.b64encode(token).decode().rstrip("="),
    }
    if state == "started" and vm.run is not None and not disarm:
        entry["running"] = 1
    if vmid in cluster.ha_homes:
        entry["maintenance_node"] = cluster.ha_homes[vmid]
    return entry


def service_status(cluster: Cluster, vmid: int) -> dict[str, Any]:
    """The HA part of a machine's status: its state in the manager, null until the manager has
    acted.
    """
    if not is_managed(cluster, vmid):
        return {"managed": 0}
    return {
        "managed": 1,
        "state": known_services(cluster).get(sid_of(cluster, vmid), {}).get("state"),
    }


def listed_state(cluster: Cluster, vmid: int) -> str | None:
    """The state of an HA resource in listings: the manager's, else the requested state, if any."""
    sid = sid_of(cluster, vmid)
    entry = known_services(cluster).get(sid) or cluster.ha_resources[sid]
    return entry.get("state")


def known_services(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The machines the manager has taken note of."""
    return _services(cluster) if awake(cluster) else {}


def _services(cluster: Cluster) -> dict[str, dict[str, Any]]:
    found = {sid: _service(cluster, sid) for sid in cluster.ha_resources}
    return {sid: entry for sid, entry in found.items() if entry is not None}


def _mode(cluster: Cluster, node: NodeInfo) -> str:
    """The mode of a node's daemon (LRM.pm, update_service_status)."""
    if node.maintenance:
        return "maintenance"
    return "disarm" if cluster.ha_disarm else "active"


def _local(cluster: Cluster, node: str, services: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The last record of the node's own HA daemon."""
    info = cluster.nodes[node]
    busy = any(entry["node"] == node and entry["state"] != "stopped" for entry in services.values())
    mode = _mode(cluster, info)
    return {
        "state": mode if busy and mode != "disarm" else "wait_for_agent_lock",
        "mode": mode,
        "results": {},
        "timestamp": _written(cluster) if info.online else int(info.down_at),
    }


@api("GET /cluster/ha/status")
def status_index(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The parts of the status."""
    names = ["current", "manager_status"]
    if not ctx.sim.schema.is_8:
        names += ["disarm-ha", "arm-ha"]
    return [{"name": name} for name in names]


@api("GET /cluster/ha/status/current")
def status_current(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """Quorum, fencing and the state of every node and service."""
    cluster = ctx.cluster
    quorate = 1 if cluster.quorate else 0
    active = awake(cluster) and bool(cluster.ha_resources) and bool(quorate)
    result: list[dict[str, Any]] = [
        {
            "id": "quorum",
            "type": "quorum",
            "node": cluster.local,
            "quorate": quorate,
            "status": "OK" if quorate else f"No quorum on node '{cluster.local}'!",
        }
    ]
    if awake(cluster):
        word = "active"
        if not active:
            word = "idle" if quorate else "old timestamp - dead?"
        result.append(
            {
                "id": "master",
                "type": "master",
                "node": _master(cluster),
                "status": f"{_master(cluster)} ({word}, {_clock(_written(cluster))})"
                + _extra(cluster),
                "timestamp": _written(cluster),
            }
        )
    if not ctx.sim.schema.is_8:
        result.append(_fencing_row(cluster, active))
    services = _services(cluster)
    result += [_node_row(ctx, node, services) for node in sorted(node_states(cluster))]
    return result + [_service_row(ctx, sid) for sid in sorted(cluster.ha_resources)]


def _extra(cluster: Cluster) -> str:
    """The end of the master's status: whether the manager is disarmed."""
    disarm = cluster.ha_disarm
    return f" - {disarm['state']}, resource mode: {disarm['mode']}" if disarm else ""


def _fencing_row(cluster: Cluster, active: bool) -> dict[str, Any]:
    row = {
        "id": "fencing",
        "type": "fencing",
        "node": _master(cluster) if awake(cluster) else cluster.local,
    }
    if disarm := cluster.ha_disarm:
        state, mode = disarm["state"], disarm["mode"]
        watchdog = "released" if state == "disarmed" else "active"
        status = f"{state}, resource mode: {mode} (CRM watchdog {watchdog})"
        return {**row, "armed-state": state, "resource_mode": mode, "status": status}
    armed = "armed" if active else "standby"
    status = f"{armed} (CRM watchdog {'active' if active else 'standby'})"
    return {**row, "armed-state": armed, "status": status}


def _node_row(ctx: Ctx, node: str, services: dict[str, dict[str, Any]]) -> dict[str, Any]:
    local = _local(ctx.cluster, node, services)
    alive = ctx.cluster.now() - local["timestamp"] <= _DEAD_AFTER
    word = local["state"] if local["state"] != "wait_for_agent_lock" else "idle"
    if local["mode"] == "maintenance":
        word = "maintenance mode"
    elif local["mode"] == "disarm":
        word = "disarm mode"
    elif not alive:
        word = "old timestamp - dead?"
    guard = "active" if alive and local["state"] in ("active", "maintenance") else "standby"
    if guard == "standby" and local["mode"] == "disarm":
        guard = "released"
    return {
        "id": f"lrm:{node}",
        "type": "lrm",
        "node": node,
        "status": f"{node} ({word}, watchdog {guard}, {_clock(local['timestamp'])})",
        "timestamp": local["timestamp"],
    }


def _service_row(ctx: Ctx, sid: str) -> dict[str, Any]:
    cluster = ctx.cluster
    resource = cluster.ha_resources[sid]
    vm = cluster.guest(int(sid.partition(":")[2]))
    node = vm.node if vm else ""
    state = resource.get("state", "started")
    entry = _service(cluster, sid)
    shown = state if cluster.ha_active or state == "ignored" else "queued"
    if entry and vm and vm.vmid in cluster.ha_moving:
        shown = entry["state"]
    if disarm := cluster.ha_disarm:
        frozen = entry["state"] if entry else shown
        shown = "ignore" if disarm["mode"] == "ignore" else frozen
    row: dict[str, Any] = {
        "id": f"service:{sid}",
        "type": "service",
        "sid": sid,
        "node": node,
        "request_state": state,
        "state": shown,
        "status": f"{sid} ({node}, {shown})",
        "max_relocate": resource.get("max_relocate", 1),
        "max_restart": resource.get("max_restart", 1),
        **{name: resource[name] for name in ("group", "comment") if name in resource},
    }
    if not has_groups(ctx):
        row["failback"] = resource.get("failback", 1)
    return {**row, "crm_state": entry["state"]} if entry and awake(cluster) else row


def _clock(seconds: int) -> str:
    return time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(seconds))


@api("GET /cluster/ha/status/manager_status")
def manager_status(ctx: Ctx, _p: dict[str, Any]) -> dict[str, Any]:
    """The manager's own state, and the records of the nodes' daemons."""
    cluster = ctx.cluster
    quorum = {"node": cluster.local, "quorate": "1" if cluster.quorate else ""}
    states = node_states(cluster)
    if not states:
        return {"manager_status": {"node_status": {}}, "quorum": quorum}
    services = _services(cluster)
    own: dict[str, Any] = {
        "master_node": _master(cluster),
        "node_status": states,
        "service_status": services,
        "timestamp": _written(cluster),
    }
    asked = {name: {"maintenance": 1} for name, node in cluster.nodes.items() if node.maintenance}
    if asked:
        own["node_request"] = asked
    if cluster.ha_disarm:
        own["disarm"] = dict(cluster.ha_disarm)
    return {
        "manager_status": own,
        "quorum": quorum,
        "lrm_status": {node: _local(cluster, node, services) for node in sorted(states)},
    }
