"""Monitors, managers and metadata servers of Ceph, and whether Ceph can lose a daemon.

Source: pve-manager 9.2, API2/Ceph/MON.pm, MGR.pm, MDS.pm, Ceph/Services.pm (get_services_info,
create_mgr, create_mds, destroy_mgr, destroy_mds) and API2/Ceph.pm (cmd_safety, start, stop). The
verdicts on monitors are those of qa/standalone/misc/ok-to-stop.sh of Ceph; the texts of its reasons
are not recorded.
"""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..core.tasks import Task
from ..errors import PveError
from .ceph import ceph_of

VERSION = "19.2.3"
Daemon = dict[str, Any]


def daemons(ctx: Ctx, kind: str) -> dict[str, Daemon]:
    """The daemons of a kind by name; Ceph begins with a monitor and a manager on the first node."""
    ceph = ceph_of(ctx)
    first = next(iter(ctx.cluster.nodes))
    begin = {first: {"host": first, "running": True}} if kind in ("mon", "mgr") else {}
    found: dict[str, Daemon] = ceph.setdefault(kind, begin)
    return found


def _row(name: str, daemon: Daemon, state: str) -> dict[str, Any]:
    return {
        "name": name,
        "host": daemon["host"],
        "state": state if daemon["running"] else "stopped",
        "service": True,
        "direxists": True,
        "ceph_version_short": VERSION,
        "ceph_version": f"ceph version {VERSION} squid (stable)",
    }


@api("GET /nodes/{node}/ceph/mon")
def monitors(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The monitors of all nodes."""
    rows = []
    for rank, (name, daemon) in enumerate(daemons(ctx, "mon").items()):
        address = daemon.get("address") or ctx.cluster.nodes[daemon["host"]].ip
        row = {**_row(name, daemon, "running"), "rank": rank, "addr": f"{address}:6789/0"}
        if daemon["running"]:
            row["quorum"] = 1
        rows.append(row)
    return rows


@api("GET /nodes/{node}/ceph/mgr")
def managers(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The managers of all nodes, of which one is active."""
    found = daemons(ctx, "mgr")
    active = next((name for name, daemon in found.items() if daemon["running"]), "")
    return [
        _row(name, daemon, "active" if name == active else "standby")
        for name, daemon in found.items()
    ]


@api("GET /nodes/{node}/ceph/mds")
def metadata_servers(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The metadata servers of all nodes; the first that runs serves the file system."""
    found = daemons(ctx, "mds")
    active = _serving(ctx)
    return [
        _row(name, daemon, "up:active" if name == active else "up:standby")
        for name, daemon in found.items()
    ]


def _serving(ctx: Ctx) -> str:
    """The metadata server of the file system, if there is a file system."""
    running = [name for name, daemon in daemons(ctx, "mds").items() if daemon["running"]]
    return running[0] if running and ceph_of(ctx).get("fs") else ""


@api("POST /nodes/{node}/ceph/mon/{monid}")
def create_monitor(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that creates a monitor (MON.pm, assert_mon_prerequisites)."""
    found, node, name = daemons(ctx, "mon"), p["node"], p["monid"]
    address = p.get("mon-address") or ctx.cluster.nodes[node].ip
    used = [one.get("address") or ctx.cluster.nodes[one["host"]].ip for one in found.values()]
    if address in used:
        raise PveError(f"monitor address '{address}' already in use")
    if name in found:
        raise PveError(f"monitor '{name}' already exists")

    async def work(_task: Task) -> None:
        found[name] = {"host": node, "running": True, "address": address}

    return ctx.task(node, "cephcreatemon", f"mon.{name}", work)


@api("DELETE /nodes/{node}/ceph/mon/{monid}")
def destroy_monitor(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that destroys a monitor, except the last one (assert_mon_can_remove)."""
    found, node, name = daemons(ctx, "mon"), p["node"], p["monid"]
    if name not in found:
        raise PveError(f"no such monitor id '{name}'")
    if found[name]["host"] != node:
        folder = f"/var/lib/ceph/mon/ceph-{name}"
        raise PveError(f"monitor filesystem '{folder}' does not exist on this node")
    if len(found) <= 1:
        raise PveError("can't remove last monitor")

    async def work(_task: Task) -> None:
        del found[name]

    return ctx.task(node, "cephdestroymon", f"mon.{name}", work)


@api("POST /nodes/{node}/ceph/mgr/{id}")
def create_manager(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that creates a manager."""
    found, node, name = daemons(ctx, "mgr"), p["node"], p["id"]

    async def work(_task: Task) -> None:
        if name in found and found[name]["host"] == node:
            folder = f"/var/lib/ceph/mgr/ceph-{name}"
            raise PveError(f"ceph manager directory '{folder}' already exists")
        found[name] = {"host": node, "running": True}

    return ctx.task(node, "cephcreatemgr", f"mgr.{name}", work)


@api("DELETE /nodes/{node}/ceph/mgr/{id}")
def destroy_manager(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that destroys a manager; the last one as well."""
    found, node, name = daemons(ctx, "mgr"), p["node"], p["id"]

    async def work(_task: Task) -> None:
        if name not in found or found[name]["host"] != node:
            raise PveError(f"ceph manager directory '/var/lib/ceph/mgr/ceph-{name}' not found")
        del found[name]

    return ctx.task(node, "cephdestroymgr", f"mgr.{name}", work)


@api("POST /nodes/{node}/ceph/mds/{name}")
def create_metadata_server(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that creates a metadata server (MDS.pm, createmds)."""
    found, node, name = daemons(ctx, "mds"), p["node"], p["name"]
    if name[0].isdigit():
        raise PveError("ID of the MDS cannot start with a number!")

    async def work(_task: Task) -> None:
        if name in found:
            raise PveError(f"MDS '{name}' already referenced in ceph config, abort!")
        found[name] = {"host": node, "running": True}

    return ctx.task(node, "cephcreatemds", f"mds.{name}", work)


@api("DELETE /nodes/{node}/ceph/mds/{name}")
def destroy_metadata_server(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that destroys a metadata server; a missing one gives warnings only."""
    found, name = daemons(ctx, "mds"), p["name"]

    async def work(task: Task) -> None:
        if found.pop(name, None) is None:
            task.warn(f"cannot cleanup MDS {name} directory, not found")

    return ctx.task(p["node"], "cephdestroymds", f"mds.{name}", work)


def _monitor_safety(ctx: Ctx, name: str, action: str) -> str:
    """Why Ceph cannot lose a monitor: the others need a majority, of the map after a removal."""
    found = daemons(ctx, "mon")
    left = [one for one, daemon in found.items() if daemon["running"] and one != name]
    size = len(found) - (action == "destroy")
    if name not in found or (left and len(left) > size // 2):
        return ""
    return f"not enough monitors would be available ({','.join(left)}) without mon.{name}"


def _metadata_safety(ctx: Ctx, name: str, _action: str) -> str:
    """Why Ceph cannot lose a metadata server: it is active, and no other one is ready."""
    running = [one for one, daemon in daemons(ctx, "mds").items() if daemon["running"]]
    if name != _serving(ctx) or len(running) > 1:
        return ""
    return f"one or more filesystems is currently degraded without mds.{name}"


SAFETY = {"mon": _monitor_safety, "mds": _metadata_safety}


@api("GET /nodes/{node}/ceph/cmd-safety")
def cmd_safety(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The verdict of Ceph (Ceph.pm, cmd_safety)."""
    ceph_of(ctx)
    service, action = p["service"], p["action"]
    if (service, action) == ("mds", "destroy"):
        raise PveError(f"Service does not support this action: {service}: {action}")
    reason = SAFETY[service](ctx, p["id"], action)
    return {"safe": not reason, **({"status": reason} if reason else {})}
