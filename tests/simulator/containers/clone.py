"""Clones containers, in full or linked to a template (pve-container: API2/LXC.pm, clone_vm)."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from ..cluster.pools import add_to_pool
from ..config.checks import take_address
from ..core.api import Ctx, api
from ..core.state import Container
from ..core.tasks import Task
from ..errors import ApiError, PermError, PveError
from ..volumes.drives import split_volid
from ..volumes.mounts import (
    Mount,
    is_mount,
    is_net,
    is_unused,
    mounts_of,
    parse_net,
    print_mount,
    source_of,
    with_address,
)
from ..volumes.volumes import (
    Wanted,
    allocate,
    check_enabled,
    find_volume,
    free,
    has_feature,
    parse_volname,
)
from .config import check_lock, snapshot_of
from .rights import check_bridge
from .volumes import copy_volume

_RUNNING = "Full clone of a running container is only possible from a snapshot"
# The text before 6.0.19 (commit 2682d64).
_RUNNING_8 = "Cannot do full clones on a running container without snapshots"
_NOT_CLONED = frozenset({"parent", "snaptime", "snapstate", "lock", "template"})


@api("POST /nodes/{node}/lxc/{vmid}/clone")
async def clone(ctx: Ctx, p: dict[str, Any]) -> str:
    """Clone a container: the ID is taken and the settings are written before the task begins."""
    async with ctx.sim.locks.hold(p["vmid"]):
        return Clone(ctx, p).start()


class Clone:
    """One call."""

    def __init__(self, ctx: Ctx, p: dict[str, Any]) -> None:
        self.ctx = ctx
        self.p = p
        self.node: str = p["node"]
        self.newid: int = p["newid"]
        target = p.get("target")
        self.target: str | None = None if target in (None, self.node, "localhost") else target
        self.storage: str | None = p.get("storage")
        self.snapshot: str | None = p.get("snapname")
        self.mounts: list[tuple[str, Mount]] = []
        self.full = True
        self.ran = False
        self.made: list[str] = []

    def start(self) -> str:
        """Check, write the new container's settings, and start the worker."""
        ctx, cluster = self.ctx, self.ctx.cluster
        self._check_place()
        source = cluster.container_at(self.node, self.p["vmid"])
        check_lock(source)
        taken = cluster.guest(self.newid)
        if taken is not None:
            what = "CT" if taken.kind == "lxc" else "VM"
            raise PveError(f"{what} {self.newid} already exists on node '{taken.node}'")
        conf = self._settings(source)
        new = Container(self.newid, self.node, {**conf, "lock": "create"})
        source.conf["lock"] = "disk"
        cluster.containers[self.newid] = new
        cluster.write(source)
        cluster.write(new)
        firewall = cluster.firewalls.get(source.vmid)
        if firewall is not None:
            cluster.firewalls[self.newid] = copy.deepcopy(firewall)

        async def work(task: Task) -> None:
            await self._run(source, new, task)

        return ctx.task(self.node, "vzclone", source.vmid, work)

    def _check_place(self) -> None:
        cluster = self.ctx.cluster
        pool = self.p.get("pool")
        if pool is not None and pool not in cluster.pools:
            raise PermError(f"pool '{pool}' does not exist")
        if self.target and self.target not in cluster.nodes:
            raise PveError(f"no such cluster node '{self.target}'")
        if self.storage:
            storage = check_enabled(cluster, self.storage, self.node)
            if self.target:
                check_enabled(cluster, self.storage, self.target)
                if not storage.shared:
                    raise PveError(f"can't clone to non-shared storage '{self.storage}'")
        cluster.check_quorum()

    def _settings(self, source: Container) -> dict[str, str]:
        """Check the volumes and return the settings of the clone without them."""
        self.ran = source.run is not None
        self.full = bool(self.p["full"]) if "full" in self.p else not source.template
        if self.storage is not None and not self.full:
            raise PveError("parameter 'storage' not allowed for linked clones")
        conf = snapshot_of(source, self.snapshot) if self.snapshot else source.conf
        shared = True
        for name, mount in mounts_of(self.ctx.sim.schema, conf):
            shared = self._check_mount(name, mount) and shared
            self.mounts.append((name, mount))
        new = {
            name: value
            for name, value in conf.items()
            if not (name in _NOT_CLONED or is_mount(name) or is_unused(name))
        }
        for name in sorted(filter(is_net, new)):
            new[name] = with_address(self.ctx, new[name], new=True)
            check_bridge(self.ctx, new[name])
        if self.target and not shared:
            raise PveError(f"can't clone CT to node '{self.target}' (CT uses local storage)")
        for option in ("hostname", "description"):
            if self.p.get(option):
                new[option] = str(self.p[option])
        return new

    def _check_mount(self, name: str, mount: Mount) -> bool:
        """Refuse a volume that cannot be cloned; return whether its storage is shared."""
        volid = mount["volume"]
        parts = split_volid(volid)
        if parts is None:
            raise PveError(f"unable to clone mountpoint '{name}' (type {source_of(volid)})")
        storage = self.ctx.cluster.storage(parts[0])
        target = self.ctx.cluster.storage(self.storage) if self.storage else storage
        self.ctx.need(f"/storage/{target.name}", "Datastore.AllocateSpace")
        if self.full:
            if self.ran and not self.snapshot:
                raise PveError(_RUNNING_8 if self.ctx.sim.schema.is_8 else _RUNNING)
        elif not has_feature(
            storage, "clone", parse_volname(storage, parts[1]), self.snapshot, container=True
        ):
            raise PveError(f"Linked clone feature for '{volid}' is not available")
        return target.shared

    async def _run(self, source: Container, new: Container, task: Task) -> None:
        cluster = self.ctx.cluster
        task.say(f"creating a clone of container {source.vmid} with ID {self.newid}")
        try:
            if (source.run is not None) is not self.ran:
                raise PveError("unexpected state change")
            for name, mount in self.mounts:
                self._copy(source, name, mount, task)
                new.conf[name] = print_mount(self.ctx.sim.schema, name, mount)
                cluster.write(new)
            await task.transfer()
            for name in filter(is_net, new.conf):
                take_address(self.ctx, new, parse_net(self.ctx.sim.schema, new.conf[name]))
            if self.p.get("pool"):
                add_to_pool(cluster, self.p["pool"], self.newid)
                self.ctx.acl.changed()
        except (ApiError, asyncio.CancelledError) as error:
            for volid in self.made:
                free(cluster, self.node, volid)
            cluster.remove_guest(self.newid)
            text = error.text if isinstance(error, ApiError) else "interrupted by signal"
            raise PveError(f"clone failed: {text}") from None
        finally:
            source.conf.pop("lock", None)
            cluster.write(source)
        new.conf.pop("lock", None)
        if self.target:
            new.node = self.target
        cluster.write(new)

    def _copy(self, source: Container, name: str, mount: Mount, task: Task) -> None:
        old = mount["volume"]
        if not self.full:
            task.say(f"create linked clone of mount point {name} ({old})")
            mount["volume"] = self._linked(old)
            self.made.append(mount["volume"])
            return
        task.say(f"create full clone of mountpoint {name} ({old})")
        store = self.storage or old.partition(":")[0]
        mount["volume"] = copy_volume(self.ctx, source, self.newid, mount, store, task)
        self.made.append(mount["volume"])

    def _linked(self, volid: str) -> str:
        """A volume on a base volume, or on a snapshot: its name then has no base (pve-storage:
        RBDPlugin.pm, clone_image). On btrfs it never has one.
        """
        cluster = self.ctx.cluster
        store, name = volid.split(":", 1)
        storage = cluster.storage(store)
        base = find_volume(cluster, self.node, volid)
        if base is None:
            raise PveError(f"volume '{volid}' does not exist")
        made = linked_volume(self.ctx, self.node, self.newid, volid)
        if storage.kind == "btrfs":
            return made
        volume = find_volume(cluster, self.node, made)
        if volume is not None:
            volume.parent = base.name
        if self.snapshot:
            return made
        return f"{store}:{name}/{made.partition(':')[2]}" if storage.kind != "lvmthin" else made


def linked_volume(ctx: Ctx, node: str, vmid: int, volid: str) -> str:
    """Create an empty volume with the properties of another volume; it takes no room of its own."""
    storage = ctx.cluster.storage(volid.partition(":")[0])
    base = find_volume(ctx.cluster, node, volid)
    if base is None:
        raise PveError(f"volume '{volid}' does not exist")
    made = allocate(ctx.cluster, node, storage, Wanted(vmid, base.fmt, base.size, linked=True))
    volume = find_volume(ctx.cluster, node, made)
    if volume is not None:
        volume.content = "rootdir"
    return made
