"""Clones machines, in full or linked to a template."""

from __future__ import annotations

import asyncio
import copy
import re
from typing import Any

from ..cluster.pools import add_to_pool
from ..config.checks import check_bridges, check_cpu_model, check_lock, check_mapping
from ..core.api import Ctx, api
from ..core.state import Vm
from ..core.tasks import Task
from ..errors import ApiError, ParamError, PermError, PveError
from ..schema.named_hashes import HASHES
from ..schema.units import format_size, parse_props, print_props
from ..volumes.drives import (
    drives_of,
    is_cdrom,
    is_cloudinit,
    is_drive,
    is_net,
    is_unused,
    parse_drive,
    parse_net,
    print_drive,
    print_net,
    split_volid,
)
from ..volumes.volumes import (
    check_enabled,
    find_volume,
    format_line,
    free,
    has_feature,
    is_path_based,
    linked_clone,
    parse_volname,
)
from .moves import Copy, copy_disk

_NOT_CLONED = frozenset(
    {
        "parent",
        "snaptime",
        "vmstate",
        "snapstate",
        "runningcpu",
        "runningmachine",
        "running-nets-host-mtu",
        "lock",
        "template",
    }
)


class Clone:
    """One clone call: its checks, which are made before and again within the task, and the work."""

    def __init__(self, ctx: Ctx, p: dict[str, Any]) -> None:
        self.ctx = ctx
        self.node: str = p["node"]
        self.vmid: int = p["vmid"]
        self.newid: int = p["newid"]
        self.p = p
        target = p.get("target")
        self.target: str | None = None if target in (None, self.node, "localhost") else target
        self.storage: str | None = p.get("storage")
        self.format: str | None = p.get("format")
        self.snapname: str | None = p.get("snapname")
        self.copies: dict[str, bool] = {}
        self.made: list[str] = []

    def check(self) -> tuple[Vm, dict[str, str]]:
        """The source and the configuration to clone; refused when it cannot be done."""
        ctx, cluster = self.ctx, self.ctx.cluster
        self._check_places()
        cluster.check_quorum()
        vm = cluster.vm_at(self.node, self.vmid)
        check_lock(vm)
        if self.snapname and self.snapname not in vm.snapshots:
            raise PveError(f"snapshot '{self.snapname}' does not exist")
        full = bool(self.p["full"]) if "full" in self.p else not vm.template
        for name, value in (("storage", self.storage), ("format", self.format)):
            if value is not None and not full:
                raise PveError(f"parameter '{name}' not allowed for linked clones")
        conf = vm.snapshots[self.snapname] if self.snapname else vm.conf
        shared = self._check_storages(conf)
        for name in sorted(conf):
            if re.fullmatch(r"(?:usb|hostpci|virtiofs)\d+", name):
                check_mapping(ctx, name, conf[name])
        check_bridges(ctx, conf)
        if not cluster.version["release"].startswith("8"):
            # since qemu-server 9.1.15, see its debian/changelog
            check_cpu_model(ctx, conf, {})
        if self.target and not shared:
            raise PveError(f"can't clone VM to node '{self.target}' (VM uses local storage)")
        taken = cluster.vms.get(self.newid)
        if taken is not None and taken.node == self.node:
            raise PveError(f"unable to create VM {self.newid}: config file already exists")
        self._check_features(conf, full)
        return vm, conf

    def _check_places(self) -> None:
        """The pool, node and storage that the copy is wanted in."""
        cluster, pool = self.ctx.cluster, self.p.get("pool")
        if pool is not None and pool not in cluster.pools:
            raise PermError(f"pool '{pool}' does not exist")
        if self.target and self.target not in cluster.nodes:
            raise PveError(f"no such cluster node '{self.target}'")
        if self.storage:
            self._check_storage(self.storage)

    def _check_storage(self, name: str) -> None:
        """The storage that the copy is wanted on."""
        cluster = self.ctx.cluster
        storage = check_enabled(cluster, name, self.node)
        if "images" not in storage.content:
            raise ParamError({"storage": f"storage '{name}' does not support vm images"})
        if self.target:
            check_enabled(cluster, name, self.target)
            if not storage.shared:
                raise PveError(f"can't clone to non-shared storage '{name}'")

    def _check_storages(self, conf: dict[str, str]) -> bool:
        shared = True
        for _dummy, drive in drives_of(self.ctx.sim.schema, conf):
            file = drive.get("file", "")
            if file in ("", "none"):
                continue
            parts = split_volid(file)
            if is_cdrom(drive) and file == "cdrom":
                self.ctx.need("/", "Sys.Console")
                continue
            if parts is None:
                raise PveError(f"unable to parse volume ID '{file}'")
            shared = shared and self.ctx.cluster.storage(parts[0]).shared
            if not is_cdrom(drive):
                self.ctx.need(f"/storage/{self.storage or parts[0]}", "Datastore.AllocateSpace")
        if conf.get("vmstatestorage"):
            self.ctx.need(f"/storage/{conf['vmstatestorage']}", "Datastore.AllocateSpace")
        return shared

    def _check_features(self, conf: dict[str, str], full: bool) -> None:
        self.copies = {}
        for name, drive in drives_of(self.ctx.sim.schema, conf):
            if is_cdrom(drive, no_cloudinit=True):
                continue
            parts = split_volid(drive["file"])
            if parts is None:
                raise PveError(f"unable to parse volume ID '{drive['file']}'")
            storage = self.ctx.cluster.storage(parts[0])
            parsed = parse_volname(storage, parts[1])
            whole = full or is_cloudinit(drive) or name == "tpmstate0"
            snapshot = None if is_cloudinit(drive) else self.snapname
            if not has_feature(storage, "copy" if whole else "clone", parsed, snapshot):
                of = " a snapshot of" if self.snapname else ""
                kind = "Full" if whole else "Linked"
                raise PveError(
                    f"{kind} clone feature is not supported for{of} '{drive['file']}' ({name})"
                )
            self.copies[name] = whole

    async def run(self, task: Task) -> None:
        """Make the clone within the task."""
        vm = self.ctx.cluster.vms.get(self.vmid)
        shared = vm is None or vm.run is None
        locks = self.ctx.sim.locks
        async with (
            locks.hold(self.vmid, 1, shared=shared, log=task.say),
            locks.hold(self.newid, 1, log=task.say),
        ):
            vm, conf = self.check()
            task.say(f"creating a clone of VM {self.vmid} with ID {self.newid}")
            if self.ctx.cluster.guest(self.newid) is not None:
                # The other node's file, or a container's, is met only when this one's is put in
                # its place.
                file = f"/etc/pve/nodes/{self.node}/qemu-server/{self.newid}.conf"
                raise PveError(f"close (rename) atomic file '{file}' failed: File exists")
            new = Vm(
                self.newid, self.node, {"lock": "clone", "description": " qmclone temporary file"}
            )
            self.ctx.cluster.vms[self.newid] = new
            self.ctx.cluster.touch(self.newid)
            if self.vmid in self.ctx.cluster.firewalls:
                self.ctx.cluster.firewalls[self.newid] = copy.deepcopy(
                    self.ctx.cluster.firewalls[self.vmid]
                )
            try:
                await self._fill(vm, conf, new, task)
            except (ApiError, asyncio.CancelledError) as error:
                for volid in self.made:
                    free(self.ctx.cluster, self.node, volid)
                self.ctx.cluster.remove_guest(self.newid)
                if isinstance(error, ApiError):
                    raise PveError(f"clone failed: {error.text}") from None
                raise PveError("clone failed: interrupted by signal") from None

    async def _fill(self, vm: Vm, conf: dict[str, str], new: Vm, task: Task) -> None:
        cluster, schema = self.ctx.cluster, self.ctx.sim.schema
        fresh = self._plain(conf)
        if not any(whole and not self._is_ci(conf[name]) for name, whole in self.copies.items()):
            await task.work()
        for name in sorted(self.copies):
            drive = parse_drive(schema, name, conf[name])
            fresh[name] = print_drive(schema, name, await self._disk(name, drive, task))
            new.conf = {**fresh, "lock": "clone"}
            cluster.write(new)
        new.conf = fresh
        new.conf.pop("lock", None)
        cluster.write(new)
        if self.target:
            new.node = self.target
            cluster.touch(new.vmid)
        if self.p.get("pool"):
            add_to_pool(cluster, self.p["pool"], new.vmid)
            self.ctx.acl.changed()

    def _is_ci(self, text: str) -> bool:
        return is_cloudinit({"file": text.split(",")[0]})

    def _plain(self, conf: dict[str, str]) -> dict[str, str]:
        """The clone's settings apart from the disks that are cloned."""
        cluster, schema = self.ctx.cluster, self.ctx.sim.schema
        fresh: dict[str, str] = {}
        for name, value in conf.items():
            if name in _NOT_CLONED or is_unused(name) or name in self.copies:
                continue
            if is_net(name):
                net = parse_net(schema, value)
                net.pop("macaddr", None)
                fresh[name] = print_net(cluster, net)
            elif not is_drive(name) or value:
                fresh[name] = value
        keys = HASHES["pve-qm-smbios1"]
        smbios = parse_props(keys, conf.get("smbios1", ""))
        smbios["uuid"] = cluster.uuid()
        fresh["smbios1"] = print_props(keys, smbios)
        if "vmgenid" in conf:
            fresh["vmgenid"] = cluster.uuid()
        fresh["name"] = self.p.get("name") or f"Copy-of-VM-{conf.get('name', self.vmid)}"
        if self.p.get("description"):
            fresh["description"] = self.p["description"]
        return fresh

    async def _disk(self, name: str, drive: dict[str, str], task: Task) -> dict[str, str]:
        cluster = self.ctx.cluster
        drive.pop("format", None)
        old = drive["file"]
        if self.copies[name]:
            store = self.storage or old.partition(":")[0]
            running = None if self.snapname else cluster.vms.get(self.vmid)
            copy = Copy(name, drive, store, self.format, running)
            new, size = await copy_disk(self.ctx, self.node, self.newid, copy, task)
            volume = find_volume(cluster, self.node, old)
            if self.snapname and volume is not None and self.snapname in volume.snapshots:
                size = volume.snapshots[self.snapname]
                copied = find_volume(cluster, self.node, new)
                if copied is not None:
                    copied.size = size
        else:
            task.say(f"create linked clone of drive {name} ({old})")
            volume = find_volume(cluster, self.node, old)
            if volume is None:
                raise PveError(f"volume '{old}' does not exist")
            size = volume.snapshots.get(self.snapname or "") or volume.virtual_size or volume.size
            new = linked_clone(cluster, self.node, old, self.newid, size)
            storage = cluster.storage(old.partition(":")[0])
            backing = f"../{old.partition(':')[2]}" if is_path_based(storage) else None
            for line in format_line(storage, new, "qcow2", size, backing):
                task.say(line)
        self.made.append(new)
        drive.update(file=new, size=format_size(size))
        return drive


@api("POST /nodes/{node}/qemu/{vmid}/clone")
def clone_vm(ctx: Ctx, p: dict[str, Any]) -> str:
    """Clone a machine."""
    clone = Clone(ctx, p)
    ctx.cluster.vm_found(p["node"], p["vmid"])
    clone.check()
    return ctx.task(p["node"], "qmclone", p["vmid"], clone.run)
