"""The other side of a migration: the worker that receives a guest, and its sockets.

Source: qemu-server, PVE/API2/Qemu.pm (mtunnel, mtunnelwebsocket); pve-container,
PVE/API2/LXC.pm (the same). Both know the same commands, besides those of a running machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from ..core.api import Ctx, Result, api
from ..core.state import Guest
from ..core.tasks import Task
from ..errors import ApiError, ParamError, PveError
from ..schema.formats import split_list
from ..volumes.volumes import check_enabled, free
from . import incoming
from .incoming import Kind

QEMU = "/nodes/{node}/qemu/{vmid}"
LXC = "/nodes/{node}/lxc/{vmid}"
VERSION = 2
# Seconds until the worker gives up because no source connects.
_ACCEPT_S = 300.0
Reply = dict[str, Any]
Command = Callable[["Worker", dict[str, Any]], Awaitable[Reply | None]]


@dataclass(eq=False)
class Worker:
    """One tunnel: the guest that it fills, and its state between commands."""

    ctx: Ctx
    kind: Kind
    vmid: int
    lock: str | None = "create"
    sockets: dict[str, str] = field(default_factory=dict)  # the command that a socket belongs to
    received: dict[str, dict[str, Any]] = field(default_factory=dict)
    volumes: list[str] = field(default_factory=list)  # freed by a cleanup
    is_exiting: bool = False
    connection: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    open_sockets: list[web.WebSocketResponse] = field(default_factory=list)
    say: Callable[[str], None] = print

    @property
    def guest(self) -> Guest:
        """The guest. Raises PveError if it is gone."""
        node = self.ctx.cluster.local
        return self.kind.at(self.ctx.cluster, node, self.vmid)

    def require_lock(self) -> None:
        """Refuse a command if someone has changed the lock of the guest."""
        if self.lock and self.guest.conf.get("lock") != self.lock:
            raise PveError("Encountered wrong lock - aborting mtunnel command handling.")

    async def close(self) -> None:
        """Close every socket."""
        for socket in self.open_sockets:
            await socket.close()
        self.open_sockets.clear()


@api(f"POST {QEMU}/mtunnel")
def tunnel_of_vm(ctx: Ctx, p: dict[str, Any]) -> dict[str, str]:
    """Take the VMID, and wait for the source."""
    return _start(ctx, p, incoming.VM)


@api(f"POST {LXC}/mtunnel")
def tunnel_of_container(ctx: Ctx, p: dict[str, Any]) -> dict[str, str]:
    """Take the VMID, and wait for the source."""
    return _start(ctx, p, incoming.CT)


def _start(ctx: Ctx, p: dict[str, Any], kind: Kind) -> dict[str, str]:
    cluster, vmid = ctx.cluster, p["vmid"]
    _require_local(ctx, p["node"])
    for name in split_list(p.get("storages") or ""):
        check_storage(ctx, kind, name)
    for bridge in split_list(p.get("bridges") or ""):
        if not cluster.nodes[cluster.local].has_bridge(bridge):
            raise PveError(f"bridge '{bridge}' does not exist")  # Network.pm, read_bridge_mtu
    cluster.check_quorum()
    taken = cluster.guest(vmid)
    if taken is not None:
        what = "CT" if taken.kind == "lxc" else "VM"
        text = f"{what} {vmid} already exists on node '{taken.node}'"
        raise ParamError({"vmid": f"unable to create empty {kind.noun} config - {text}"})
    kind.create(cluster, vmid)
    worker = Worker(ctx, kind, vmid)
    socket = kind.socket.format(vmid)
    worker.sockets[socket] = ""
    workers = cluster.sections.setdefault("tunnels", {})
    workers[socket] = worker

    async def work(task: Task) -> None:
        worker.say = task.say
        try:
            await _serve(worker, task)
        finally:
            if workers.get(socket) is worker:
                del workers[socket]
            await worker.close()

    upid = ctx.task(cluster.local, kind.task, vmid, work)
    return {"ticket": _ticket(ctx, socket), "upid": upid, "socket": socket}


def check_storage(ctx: Ctx, kind: Kind, name: str) -> None:
    """Refuse a storage that the guest cannot be written to (check_storage_access_migrate)."""
    storage = check_enabled(ctx.cluster, name, ctx.cluster.local)
    ctx.need(f"/storage/{name}", "Datastore.AllocateSpace")
    if kind.content not in storage.content:
        raise PveError(f"storage '{name}' does not support {kind.content_name}")


async def _serve(worker: Worker, task: Task) -> None:
    task.say("mtunnel started")
    if not await _is_connected(worker, task):
        task.say("Failed to accept tunnel connection - got timeout")
        task.say("Removing tunnel socket..")
        task.say("Removing temporary VM config..")
        worker.ctx.cluster.remove_guest(worker.vmid)
        raise PveError("Exiting mtunnel")
    await worker.ended.wait()
    incoming.tunnel_closed(worker)
    if not worker.is_exiting:
        raise PveError("mtunnel exited unexpectedly")
    task.say("mtunnel exited")


async def _is_connected(worker: Worker, task: Task) -> bool:
    """Whether the source connects in time: 300 s, or the duration that is set for the task."""
    board, loop = task.board, asyncio.get_running_loop()
    started = loop.time()
    while not worker.connection.is_set():
        left = started + board.durations.get(task.kind, _ACCEPT_S * 1000) / 1000 - loop.time()
        if left <= 0:
            return False
        try:
            await asyncio.wait_for(worker.connection.wait(), min(left, 0.05))
        except asyncio.TimeoutError:
            continue
    return True


# -- sockets -------------------------------------------------------------------------------------


@api(f"GET {QEMU}/mtunnelwebsocket", f"GET {LXC}/mtunnelwebsocket")
def websocket(ctx: Ctx, p: dict[str, Any]) -> Result:
    """A socket of the tunnel, for a ticket of `mtunnel` or of the command `ticket`."""
    _require_local(ctx, p["node"])
    kind = incoming.CT if "/lxc/" in ctx.method.path else incoming.VM
    kind.at(ctx.cluster, ctx.cluster.local, p["vmid"])
    if p["ticket"] != _ticket(ctx, p["socket"]):
        raise ApiError(401, "permission denied - invalid PVETUNNEL ticket\n")
    own = kind.socket.format(p["vmid"])
    worker: Worker | None = ctx.cluster.sections.get("tunnels", {}).get(own)

    async def talk(connection: web.WebSocketResponse) -> None:
        if worker is None or p["socket"] not in worker.sockets:
            return
        worker.open_sockets.append(connection)
        command = worker.sockets[p["socket"]]
        await (_take_stream(worker, command, connection) if command else _talk(worker, connection))

    return Result({"socket": p["socket"]}, upgrade=talk)


async def _talk(worker: Worker, connection: web.WebSocketResponse) -> None:
    """Carry out commands until the source closes the connection."""
    worker.connection.set()
    try:
        async for message in connection:
            if message.type is not aiohttp.WSMsgType.TEXT:
                break
            reply = await _reply(worker, json.loads(message.data))
            if reply is None:
                break
            await connection.send_str(json.dumps(reply))
    finally:
        worker.ended.set()


async def _reply(worker: Worker, parsed: dict[str, Any]) -> Reply | None:
    """The reply to a command; None if a fault breaks the tunnel."""
    name = parsed.pop("cmd", None)
    if name is None:
        return {"success": False, "msg": "'cmd' missing"}
    if worker.is_exiting:
        text = f"tunnel is in exit-mode, processing '{name}' cmd not possible"
        return {"success": False, "msg": text}
    command = COMMANDS[worker.kind.noun].get(name)
    if command is None:
        return {"success": False, "msg": f"unknown command '{name}' given"}
    place = f"/nodes/{worker.ctx.cluster.local}/{worker.kind.directory}/{worker.vmid}/mtunnel"
    fault = worker.ctx.cluster.tasks.faults.pick("TUNNEL", f"{place}/{name}")
    if fault is not None and fault.delay_ms:
        await asyncio.sleep(fault.delay_ms / 1000)
    if fault is not None and fault.drop == "before":
        return None
    worker.say(f"received command '{name}'")
    try:
        if fault is not None and fault.status is not None:
            raise PveError(fault.message or "got timeout")
        reply = await _carry_out(worker, command, parsed)
    except ApiError as error:
        reply = {"success": False, "msg": f"failed to handle '{name}' command - {error.text}\n"}
    return None if fault is not None and fault.drop == "after" else reply


async def _carry_out(worker: Worker, command: Command, parsed: dict[str, Any]) -> Reply:
    async with worker.ctx.sim.locks.hold(worker.vmid, log=worker.say):
        worker.require_lock()
        return {**(await command(worker, parsed) or {}), "success": True}


async def _take_stream(worker: Worker, command: str, connection: web.WebSocketResponse) -> None:
    """Receive the data of a disk or of the memory, unless a fault breaks the tunnel."""
    place = f"/nodes/{worker.ctx.cluster.local}/{worker.kind.directory}/{worker.vmid}/mtunnel"
    message = await connection.receive()
    fault = worker.ctx.cluster.tasks.faults.pick("TUNNEL", f"{place}/{command}")
    if fault is not None and fault.delay_ms:
        await asyncio.sleep(fault.delay_ms / 1000)
    if message.type is not aiohttp.WSMsgType.TEXT or (fault is not None and fault.drop == "before"):
        await worker.close()
        return
    worker.received[command] = json.loads(message.data)
    if command == "memory":
        incoming.memory_arrived(worker)
    if fault is not None and fault.drop == "after":
        await worker.close()
        return
    await connection.send_str("taken")


def _require_local(ctx: Ctx, node: str) -> None:
    local = ctx.cluster.local
    if node not in ("localhost", local):
        raise ParamError({"node": f"node needs to be 'localhost' or local hostname '{local}'"})


def _ticket(ctx: Ctx, socket: str) -> str:
    """The ticket of a user for a socket (pve-access-control: assemble_tunnel_ticket)."""
    signed = hashlib.sha256(f"{ctx.who}:/socket/{socket}".encode()).hexdigest()
    return f"PVETUNNEL::{signed}"


# -- commands ------------------------------------------------------------------------------------


async def _version(worker: Worker, _params: dict[str, Any]) -> Reply:
    version = worker.ctx.cluster.sections.get("tunnel_version", VERSION)
    return {"api": version, "age": 0}


async def _bwlimit(_worker: Worker, params: dict[str, Any]) -> Reply:
    return {"bwlimit": params.get("bwlimit")}


async def _ticket_for(worker: Worker, params: dict[str, Any]) -> Reply:
    path = params["path"]
    if path not in worker.sockets:
        raise PveError(f"Not allowed to generate ticket for unknown socket '{path}'")
    return {"ticket": _ticket(worker.ctx, path)}


async def _config(worker: Worker, params: dict[str, Any]) -> None:
    await worker.kind.write(worker, params)
    worker.lock = "migrate"


async def _disk(worker: Worker, params: dict[str, Any]) -> Reply:
    check_storage(worker.ctx, worker.kind, params["storage"])
    return incoming.allocate_for_nbd(worker, params)


async def _disk_import(worker: Worker, params: dict[str, Any]) -> Reply:
    check_storage(worker.ctx, worker.kind, params["storage"])
    return incoming.start_import(worker, params)


async def _query_import(worker: Worker, _params: dict[str, Any]) -> Reply:
    return incoming.query_import(worker)


async def _unlock(worker: Worker, _params: dict[str, Any]) -> None:
    guest = worker.guest
    guest.conf.pop("lock", None)
    worker.ctx.cluster.write(guest)
    worker.lock = None


async def _quit(worker: Worker, params: dict[str, Any]) -> None:
    if params.get("cleanup"):
        for volid in worker.volumes:
            worker.say(f"freeing volume '{volid}' as part of cleanup")
            free(worker.ctx.cluster, worker.ctx.cluster.local, volid)
        worker.ctx.cluster.remove_guest(worker.vmid)
        worker.lock = None
    worker.say("switching to exit-mode, waiting for client to disconnect")
    worker.is_exiting = True


async def _nothing(_worker: Worker, _params: dict[str, Any]) -> None:
    """Nothing that is simulated changes."""


_BOTH: dict[str, Command] = {
    "version": _version,
    "config": _config,
    "bwlimit": _bwlimit,
    "disk-import": _disk_import,
    "query-disk-import": _query_import,
    "unlock": _unlock,
    "ticket": _ticket_for,
    "quit": _quit,
}
COMMANDS: dict[str, dict[str, Command]] = {
    "VM": {
        **_BOTH,
        "disk": _disk,
        "start": incoming.start_vm,
        "stop": incoming.stop_vm,
        "nbdstop": _nothing,
        "resume": incoming.resume_vm,
        "fstrim": _nothing,
    },
    "CT": {**_BOTH, "start": incoming.start_container, "stop": incoming.stop_container},
}
