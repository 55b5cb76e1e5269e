"""Migration of containers to other clusters: no other cluster is simulated, and nothing connects.

Source: pve-container, API2/LXC.pm (remote_migrate_vm, mtunnel, mtunnelwebsocket).
"""

from __future__ import annotations

import hashlib
from typing import Any

from ..core.api import Ctx, api
from ..core.state import Container
from ..core.tasks import Task
from ..errors import ApiError, ParamError, PveError
from ..ha.records import is_managed
from ..schema.formats import split_list
from ..volumes.volumes import check_enabled
from .config import check_lock

BASE = "/nodes/{node}/lxc/{vmid}"


@api(f"POST {BASE}/remote_migrate")
def remote_migrate(ctx: Ctx, p: dict[str, Any]) -> str:
    """Check the container; the connection to the other cluster then fails."""
    vmid = p["vmid"]
    ctx.cluster.check_quorum()
    container = ctx.cluster.container_at(p["node"], vmid)
    check_lock(container)
    if container.run is not None and not (p.get("online") or p.get("restart")):
        raise PveError("can't migrate running container without --online or --restart")
    if is_managed(ctx.cluster, vmid):
        raise ParamError({"vmid": "cannot remote-migrate CT that is configured for HA"})
    endpoint = dict(part.partition("=")[::2] for part in p["target-endpoint"].split(","))
    place = f"{endpoint.get('host')}:{endpoint.get('port', 8006)}"
    raise PveError(f"500 Can't connect to {place} (No route to host)")


@api(f"POST {BASE}/mtunnel")
def tunnel(ctx: Ctx, p: dict[str, Any]) -> dict[str, str]:
    """Take the VMID, and wait for the other cluster until the time is over."""
    cluster, vmid = ctx.cluster, p["vmid"]
    _require_local(ctx, p["node"])
    for name in split_list(p.get("storages") or ""):
        storage = check_enabled(cluster, name, cluster.local)
        ctx.need(f"/storage/{name}", "Datastore.AllocateSpace")
        if "rootdir" not in storage.content:
            raise PveError(f"storage '{name}' does not support CT rootdirs")
    cluster.check_quorum()
    taken = cluster.guest(vmid)
    if taken is not None:
        what = "CT" if taken.kind == "lxc" else "VM"
        text = f"{what} {vmid} already exists on node '{taken.node}'"
        raise ParamError({"vmid": f"unable to create empty CT config - {text}"})
    container = Container(vmid, cluster.local, {"lock": "create"})
    cluster.containers[vmid] = container
    cluster.write(container)

    async def work(task: Task) -> None:
        task.say("mtunnel started")
        await task.work()
        task.say("Failed to accept tunnel connection - got timeout")
        task.say("Removing tunnel socket..")
        task.say("Removing temporary VM config..")
        cluster.remove_guest(vmid)
        raise PveError("Exiting mtunnel")

    socket = f"/run/pve/ct-{vmid}.mtunnel"
    upid = ctx.task(cluster.local, "vzmtunnel", vmid, work)
    return {"ticket": _ticket(ctx, socket), "upid": upid, "socket": socket}


@api(f"GET {BASE}/mtunnelwebsocket")
def websocket(ctx: Ctx, p: dict[str, Any]) -> dict[str, str]:
    """The socket, for a ticket of `mtunnel`."""
    _require_local(ctx, p["node"])
    ctx.cluster.container_at(ctx.cluster.local, p["vmid"])
    if p["ticket"] != _ticket(ctx, p["socket"]):
        raise ApiError(401, "permission denied - invalid PVETUNNEL ticket\n")
    return {"socket": p["socket"]}


def _require_local(ctx: Ctx, node: str) -> None:
    local = ctx.cluster.local
    if node not in ("localhost", local):
        raise ParamError({"node": f"node needs to be 'localhost' or local hostname '{local}'"})


def _ticket(ctx: Ctx, socket: str) -> str:
    """The ticket of a user for a socket (pve-access-control: assemble_tunnel_ticket)."""
    signed = hashlib.sha256(f"{ctx.who}:/socket/{socket}".encode()).hexdigest()
    return f"PVETUNNEL::{signed}"
