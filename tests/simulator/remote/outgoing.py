"""The common part of the sources of machines and containers: checks of the call, the tunnel, and
the volumes that go through it.

Source: qemu-server, PVE/API2/Qemu.pm (remote_migrate_vm) and PVE/QemuMigrate.pm; pve-container,
PVE/API2/LXC.pm (remote_migrate_vm) and PVE/LXC/Migrate.pm; pve-guest-common,
PVE/AbstractMigrate.pm (migrate) and PVE/StorageTunnel.pm (storage_migrate).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from ..core.api import Ctx
from ..core.state import Guest, Volume
from ..core.tasks import Task
from ..errors import ApiError, PveError
from ..running.migration import duration_since, stamp
from ..volumes.drives import split_volid
from ..volumes.volumes import find_volume, free, own_key, parse_volname
from .endpoint import Endpoint, Tunnel
from .idmap import IdMap
from .incoming import export_formats
from .tunnel import VERSION


async def target_node(endpoint: Endpoint) -> str:
    """The node of the other cluster that answers. Raises PveError if it cannot be asked."""
    if not endpoint.fingerprint:
        await endpoint.call("GET", "/nodes/localhost/certificates/info")
    for entry in await endpoint.call("GET", "/cluster/status"):
        if entry["type"] == "node" and entry.get("local"):
            return str(entry["name"])
    raise PveError("couldn't determine endpoint's node name")


def maps_of(p: dict[str, Any]) -> tuple[IdMap, IdMap]:
    """The maps of storages and bridges. Raises an ApiError."""
    storages = IdMap(p["target-storage"], "target-storage")
    bridges = IdMap(p["target-bridge"], "target-bridge")
    if storages.identity:
        raise PveError("remote migration requires explicit storage mapping!")
    return storages, bridges


def has_replication(ctx: Ctx, vmid: int) -> bool:
    """Whether a replication job copies the guest."""
    file = ctx.cluster.sections.get("replication")
    return any(name.partition("-")[0] == str(vmid) for name in (file.entries if file else ()))


class Outgoing:
    """One migration: the phases of a kind of guests, and their common steps."""

    directory = ""

    def __init__(self, ctx: Ctx, guest: Guest, p: dict[str, Any], endpoint: Endpoint) -> None:
        self.ctx = ctx
        self.guest = guest
        self.p = p
        self.endpoint = endpoint
        self.vmid: int = guest.vmid
        self.target_vmid: int = p.get("target-vmid") or guest.vmid
        self.storages, self.bridges = maps_of(p)
        self.node = ""
        self.tunnel: Tunnel | None = None
        self.volume_map: dict[str, str] = {}
        self.has_errors = False
        self.task: Task

    def say(self, text: str) -> None:
        """A line of the log, with the time."""
        self.task.say(stamp(self.ctx, text))

    def error(self, text: str) -> None:
        """The same for an error, after which the migration ends with problems."""
        self.say(f"ERROR: {text}")

    async def run(self, task: Task) -> None:
        """The work of the task (AbstractMigrate.pm, migrate)."""
        self.task = task
        started_at = self.ctx.cluster.now()
        try:
            async with self.ctx.sim.locks.hold(self.vmid, log=self.say):
                await self.migrate()
        except ApiError as error:
            self.error(f"migration aborted (duration {self._since(started_at)}): {error.text}")
            raise PveError("migration aborted") from None
        finally:
            if self.tunnel is not None and self.tunnel.control is not None:
                await self.tunnel.control.close()
            await self.endpoint.close()
        if self.has_errors:
            self.error(f"migration finished with problems (duration {self._since(started_at)})")
            raise PveError("migration problems")
        self.say(f"migration finished successfully (duration {self._since(started_at)})")

    def _since(self, started_at: float) -> str:
        return duration_since(self.ctx, started_at)

    async def migrate(self) -> None:
        """The phases."""
        raise NotImplementedError

    async def interruptible(self, step: Callable[[], Awaitable[None]]) -> None:
        """Run a phase that a stop of the task ends (AbstractMigrate.pm, eval_int). A node that goes
        down cleans up nothing.
        """
        try:
            await step()
        except asyncio.CancelledError:
            if not self._node_is_up:
                raise
            raise PveError("interrupted by signal") from None

    @property
    def _node_is_up(self) -> bool:
        return self.ctx.cluster.nodes[self.guest.node].online

    async def uninterrupted(self, step: Coroutine[Any, Any, None]) -> None:
        """Do a step to its end; a stop of the task comes too late for it."""
        job = asyncio.ensure_future(step)
        while not job.done():
            try:
                await asyncio.shield(job)
            except asyncio.CancelledError:
                if not self._node_is_up:
                    job.cancel()
                    raise
                self.error("received interrupt - delayed")
            except ApiError:
                break
        job.result()

    async def logged(self, step: Coroutine[Any, Any, Any]) -> bool:
        """Do a step whose failure is only logged; whether it succeeded."""
        try:
            await self.uninterrupted(step)
        except ApiError as error:
            self.error(error.text)
            self.has_errors = True
            return False
        return True

    # -- the tunnel ------------------------------------------------------------------------------

    async def open_tunnel(self, storages: set[str], bridges: set[str]) -> None:
        """Start the worker on the other side. Raises PveError.

        A worker that runs already is left alone: it removes its empty guest only if no one has
        connected to it.
        """
        path = f"/nodes/{self.node}/{self.directory}/{self.target_vmid}"
        tunnel = Tunnel(self.endpoint, path)
        self.tunnel = tunnel
        await tunnel.start(sorted(storages), sorted(bridges))
        self.say(f"remote: started tunnel worker '{tunnel.upid}'")
        version = (await tunnel.write("version"))["api"]
        self.say(f"local WS tunnel version: {VERSION}")
        self.say(f"remote WS tunnel version: {version}")
        self.say(f"minimum required WS tunnel version: {version}")
        if version > VERSION:
            raise PveError("Remote tunnel endpoint not compatible, upgrade required")
        if version < VERSION:
            raise PveError("Remote tunnel endpoint too old, upgrade required")
        self.task.say("websocket tunnel started")

    async def write(self, command: str, **params: Any) -> dict[str, Any]:
        """Send a command through the tunnel."""
        if self.tunnel is None:
            raise PveError("no tunnel")
        return await self.tunnel.write(command, **params)

    async def finish(self, *, cleanup: bool = False) -> None:
        """End the tunnel; with `cleanup` the other side removes the guest."""
        if self.tunnel is not None:
            await self.tunnel.finish(cleanup=cleanup)
        self.tunnel = None

    def bridges_of(self, conf: dict[str, str], parse: Callable[[str], dict[str, str]]) -> set[str]:
        """The bridges of the other side that the NICs need."""
        nics = [parse(text) for name, text in conf.items() if is_nic(name)]
        return {self.bridges.target(nic["bridge"]) for nic in nics if nic.get("bridge")}

    def firewall(self) -> dict[str, Any]:
        """The firewall of the guest, which goes along as its file."""
        own = self.ctx.cluster.firewalls.get(self.vmid)
        return {"firewall-config": own} if own else {}

    # -- volumes ---------------------------------------------------------------------------------

    async def send_volume(self, volid: str, share: float, *, keeps_name: bool = False) -> str:
        """Copy a volume through the tunnel; its name on the other side (storage_migrate)."""
        cluster, (store, own) = self.ctx.cluster, volid.split(":", 1)
        storage, volume = cluster.storage(store), find_volume(cluster, self.guest.node, volid)
        if volume is None:
            raise PveError(f"volume '{volid}' does not exist")
        parsed = parse_volname(storage, own)
        name = own_key(storage, own).rpartition("/")[2]
        name = name.replace(f"-{parsed.vmid}-", f"-{self.target_vmid}-")
        with_snapshots = storage.kind == "zfspool" or volume.fmt in ("qcow2", "vmdk")
        known = export_formats(storage, volume.fmt, with_snapshots=with_snapshots)
        if not known:
            raise PveError(f"no export formats for '{volid}' - check storage plugin support!")
        await self.write("bwlimit", storages=[], bwlimit=self.p.get("bwlimit"))
        answer = await self.write(
            "disk-import",
            format=volume.fmt,
            storage=self.storages.target(store),
            with_snapshots=int(with_snapshots),
            allow_rename=int(not keeps_name),
            export_formats=",".join(known),
            volname=name,
        )
        await self.task.copy(volume.size, share)
        await self.task.send(volume.size)
        await self._stream(answer["socket"], volume)
        result = await self.write("query-disk-import")
        if result["status"] != "complete":
            self.error(f"unknown query-disk-import result: {result['status']}")
            raise PveError("disk import failed - see log above")
        self.say(f"volume '{volid}' is '{result['volid']}' on the target")
        return str(result["volid"])

    async def _stream(self, socket: str, volume: Volume) -> None:
        if self.tunnel is None:
            raise PveError("no tunnel")
        data = {"size": volume.size, "virtual_size": volume.virtual_size, "used": volume.used}
        await self.tunnel.send(socket, data)

    def destroy_source(self, volids: list[str]) -> None:
        """Remove the guest and its volumes, without a look at its lock."""
        for volid in volids:
            if split_volid(volid) is not None:
                with suppress(ApiError):
                    free(self.ctx.cluster, self.guest.node, volid)
        self.ctx.cluster.remove_guest(self.vmid)


def is_nic(name: str) -> bool:
    """Whether an option is a NIC."""
    return name.startswith("net") and name[3:].isdigit()
