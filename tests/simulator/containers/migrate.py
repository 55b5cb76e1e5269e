"""Moves containers to other nodes, stopped or with a restart.

Source: pve-container, API2/LXC.pm (migrate_vm) and LXC/Migrate.pm.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ..core.api import Ctx, api
from ..core.state import Container
from ..core.tasks import Task
from ..errors import ParamError, PveError
from ..ha.manager import OTHER_MOVES, request_move
from ..ha.records import is_managed
from ..ha.rules import motion
from ..running.migration import duration_since, stamp
from ..schema.formats import split_list
from ..volumes.drives import split_volid
from ..volumes.mounts import mounts_of, new_volume, print_mount, source_of
from ..volumes.volumes import check_enabled, find_volume, free, parse_volname
from .config import check_lock
from .power import launch, stop

BASE = "/nodes/{node}/lxc/{vmid}/migrate"
_INTERRUPTED = "interrupted by signal"
_MOVABLE = ("dir", "zfspool", "lvmthin", "lvm", "btrfs")


@api(f"GET {BASE}")
def precondition(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The possible targets of the container."""
    ctx.cluster.check_quorum()
    container = ctx.cluster.container_at(p["node"], p["vmid"])
    check_lock(container)
    answer: dict[str, Any] = {
        "running": int(container.run is not None),
        "allowed-nodes": [],
        "not-allowed-nodes": {},
    }
    apart: dict[str, Any] = {}
    if is_managed(ctx.cluster, container.vmid):
        along, apart = motion(ctx.cluster, f"ct:{container.vmid}")
        answer["dependent-ha-resources"] = along
    for node in ctx.cluster.nodes:
        if node == p["node"]:
            continue
        if node in apart:
            answer["not-allowed-nodes"][node] = {"blocking-ha-resources": apart[node]}
        else:
            answer["allowed-nodes"].append(node)
    return answer


def _storage_map(text: str | None) -> dict[str, str]:
    """The target of each storage; "" stands for all others, "1" for the same names."""
    result: dict[str, str] = {}
    for entry in split_list(text or ""):
        source, colon, target = entry.partition(":")
        if colon:
            result[source] = target
        elif entry != "1":
            result[""] = entry
    return result


@api(f"POST {BASE}")
def migrate(ctx: Ctx, p: dict[str, Any]) -> str:
    """Move a container, or ask the HA manager to."""
    node, vmid, target, cluster = p["node"], p["vmid"], p["target"], ctx.cluster
    if target == node:
        raise ParamError({"target": "target is local node."})
    cluster.check_quorum()
    if target not in cluster.nodes:
        raise PveError(f"no such cluster node '{target}'")
    container = cluster.container_at(node, vmid)
    if container.run is not None and not (p.get("online") or p.get("restart")):
        raise PveError("can't migrate running container without --online or --restart")
    storages = _storage_map(p.get("target-storage"))
    if storages:
        ctx.acl.require_vm(ctx.who, vmid, None, ["VM.Config.Disk"])
    for name in storages.values():
        storage = check_enabled(cluster, name, target)
        ctx.need(f"/storage/{name}", "Datastore.AllocateSpace")
        if "rootdir" not in storage.content:
            raise PveError(f"storage '{name}' does not support CT rootdirs")
    if is_managed(cluster, vmid):

        async def request(task: Task) -> None:
            task.say(f"Requesting HA migration for CT {vmid} to node {target}")
            request_move(ctx, vmid, target)

        return ctx.task(node, "hamigrate", vmid, request)

    async def work(task: Task) -> None:
        await _Migration(ctx, container, p, storages, task).run()

    return ctx.task(node, "vzmigrate", vmid, work)


def _move_for_manager(ctx: Ctx, vmid: int, target: str) -> None:
    """Move a container with a restart, as the HA manager does."""
    container = ctx.cluster.containers[vmid]
    options = {"target": target, "restart": True}

    async def work(task: Task) -> None:
        await _Migration(ctx, container, options, {}, task).run()

    ctx.cluster.tasks.start(container.node, "vzmigrate", vmid, "root@pam", work)


OTHER_MOVES.append(_move_for_manager)


class _Migration:
    """The work of one task."""

    def __init__(
        self,
        ctx: Ctx,
        container: Container,
        p: dict[str, Any],
        storages: dict[str, str],
        task: Task,
    ) -> None:
        self.ctx = ctx
        self.container = container
        self.p = p
        self.target: str = p["target"]
        self.storages = storages
        self.task = task

    def _log(self, text: str) -> None:
        self.task.say(stamp(self.ctx, text))

    def _place(self, store: str) -> str:
        """The storage that a volume is copied to."""
        return self.storages.get(store, self.storages.get("", store))

    async def run(self) -> None:
        """Migrate; an error is in the log alone (pve-guest-common: AbstractMigrate.pm, migrate)."""
        started_at = self.ctx.cluster.now()
        try:
            async with self.ctx.sim.locks.hold(self.container.vmid, log=self._log):
                await self._migrate()
        except PveError as error:
            duration = duration_since(self.ctx, started_at)
            self._log(f"ERROR: migration aborted (duration {duration}): {error.text}")
            raise PveError("migration aborted") from None
        duration = duration_since(self.ctx, started_at)
        self._log(f"migration finished successfully (duration {duration})")

    async def _migrate(self) -> None:
        """Check, move, and start it again; a failed move starts it on its old node."""
        ctx, container = self.ctx, self.container
        check_lock(container)
        ran = container.run is not None
        if ran and self.p.get("online"):
            raise PveError("lxc live migration is currently not implemented")
        self._check_mounts()
        if ran:
            self._log(f"shutdown CT {container.vmid}")
            stop(ctx, container)
        try:
            await self._move()
        except (PveError, asyncio.CancelledError) as error:
            text = error.text if isinstance(error, PveError) else _INTERRUPTED
            self._clean_up(text)
            if ran:
                self._log("start container on source node")
                launch(ctx, container)
            raise PveError(text) from None
        if ran:
            self._log("start container on target node")
            launch(ctx, container)

    async def _move(self) -> None:
        """Copy the volumes and hand the configuration over (LXC/Migrate.pm, phase1)."""
        ctx, container = self.ctx, self.container
        ip = ctx.cluster.nodes[self.target].ip
        self._log(f"starting migration of CT {container.vmid} to node '{self.target}' ({ip})")
        container.conf["lock"] = "migrate"
        ctx.cluster.write(container)
        self._check_volumes()
        await self.task.transfer()
        self._copy()
        self._log("start final cleanup")
        container.node = self.target
        container.conf.pop("lock", None)
        ctx.cluster.write(container)

    def _clean_up(self, error: str) -> None:
        """Remove the lock of a move that failed or was interrupted by a signal (pve-guest-common:
        AbstractMigrate.pm, migrate; LXC/Migrate.pm, phase1_cleanup and final_cleanup).
        """
        self._log(f"ERROR: {error}")
        self._log("aborting phase 1 - cleanup resources")
        self._log("start final cleanup")
        self.container.conf.pop("lock", None)
        try:
            self.ctx.cluster.write(self.container)
        except PveError as fault:
            self._log(f"ERROR: {fault.text}")

    def _check_mounts(self) -> None:
        """Source: LXC/Migrate.pm, prepare."""
        cluster = self.ctx.cluster
        for name, mount in mounts_of(self.ctx.sim.schema, self.container.conf, unused=True):
            source = source_of(mount["volume"])
            if source != "volume":
                if mount.get("shared") != "1":
                    raise PveError(f"cannot migrate local {source} mount point '{name}'")
                continue
            store = mount["volume"].partition(":")[0]
            storage = check_enabled(cluster, store, self.container.node)
            if "rootdir" not in storage.content:
                raise PveError(f"content type 'rootdir' is not available on storage '{store}'")
            place = store if storage.shared else self._place(store)
            target = check_enabled(cluster, place, self.target)
            if "rootdir" not in target.content:
                raise PveError(
                    f"{mount['volume']}: content type 'rootdir' is not available on storage"
                    f" '{place}'"
                )

    def _local(self) -> list[str]:
        found: dict[str, None] = {}
        places = (self.container.conf, *self.container.snapshots.values())
        for conf in places:
            for _name, mount in mounts_of(self.ctx.sim.schema, conf, unused=True):
                parts = split_volid(mount["volume"])
                if parts and not self.ctx.cluster.storage(parts[0]).shared:
                    found[mount["volume"]] = None
        return sorted(found)

    def _check_volumes(self) -> None:
        """Source: LXC/Migrate.pm, phase1."""
        faults: dict[str, str] = {}
        schema = self.ctx.sim.schema
        saved = {
            mount["volume"]
            for conf in self.container.snapshots.values()
            for _name, mount in mounts_of(schema, conf)
        }
        for volid in self._local():
            store, name = volid.split(":", 1)
            storage = self.ctx.cluster.storage(store)
            parsed = parse_volname(storage, name)
            if volid in saved and storage.kind not in ("zfspool", "btrfs"):
                faults[volid] = "non-migratable snapshot exists"
            elif storage.kind not in _MOVABLE:
                faults[volid] = f"storage type '{storage.kind}' not supported"
            elif parsed.base:
                faults[volid] = f"clone of '{parsed.base}'"
            place = "referenced by snapshot(s)" if volid in saved else "in current VM config"
            self._log(f"found local volume '{volid}' ({place})")
        for volid, fault in faults.items():
            self._log(f"can't migrate local volume '{volid}': {fault}")
        if faults:
            self._log("ERROR: can't migrate CT - check log")
            raise PveError("can't migrate CT - check log")

    def _copy(self) -> None:
        cluster, container = self.ctx.cluster, self.container
        moved: dict[str, str] = {}
        for volid in self._local():
            store = volid.partition(":")[0]
            volume = find_volume(cluster, container.node, volid)
            if volume is None:
                continue
            storage = cluster.storage(self._place(store))
            new = new_volume(cluster, self.target, container.vmid, storage, volume.size, None)
            copied = find_volume(cluster, self.target, new)
            if copied is not None:
                copied.snapshots = dict(volume.snapshots)
            free(cluster, container.node, volid)
            moved[volid] = new
            self._log(f"volume '{volid}' is '{new}' on the target")
        for conf in (container.conf, *container.snapshots.values()):
            self._rename(conf, moved)

    def _rename(self, conf: dict[str, str], moved: dict[str, str]) -> None:
        schema = self.ctx.sim.schema
        for name, mount in list(mounts_of(schema, conf, unused=True)):
            new = moved.get(mount["volume"])
            if new is None:
                continue
            mount["volume"] = new
            conf[name] = print_mount(schema, name, mount)
