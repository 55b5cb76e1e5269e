"""Moves disks to other storages, and hands them to other machines."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..cluster.replication import may_join
from ..config.checks import check_lock
from ..config.disks import add_unused
from ..config.update import Update
from ..config.vmconfig import to_base
from ..core.api import Ctx, api
from ..core.state import Vm
from ..core.tasks import Task
from ..errors import ApiError, ParamError, PveError
from ..schema.units import format_size
from ..volumes.drives import (
    boot_devices,
    is_cdrom,
    is_cloudinit,
    is_unused,
    parse_drive,
    print_boot,
    print_drive,
    split_volid,
)
from ..volumes.volumes import (
    Wanted,
    allocate,
    check_enabled,
    default_format,
    find_volume,
    format_line,
    formats,
    free,
    has_feature,
    in_snapshots,
    is_path_based,
    parse_volname,
    rename_volume,
    volume_size,
)


@api("POST /nodes/{node}/qemu/{vmid}/move_disk")
def move_disk(ctx: Ctx, p: dict[str, Any]) -> str:
    """Move a disk to another storage, or hand it to another machine."""
    storage, target = p.get("storage"), p.get("target-vmid")
    if storage and target:
        text = "either set 'storage' or 'target-vmid', but not both"
        raise ParamError({"storage": text, "target-vmid": text})
    if target:
        return _reassign(ctx, p, target)
    if not storage:
        if p["vmid"] not in ctx.cluster.vms:
            ctx.cluster.vm_at(p["node"], p["vmid"])
        text = "both 'storage' and 'target-vmid' missing, either needs to be set"
        raise ParamError({"storage": text, "target-vmid": text})
    return _move(ctx, p, storage)


def _move(ctx: Ctx, p: dict[str, Any], store: str) -> str:
    ctx.need(f"/storage/{store}", "Datastore.AllocateSpace")
    move = _Move(ctx, p, store)
    move.check()
    return ctx.task(move.node, "qmmove", move.vmid, move.work)


class _Move:
    """A disk that moves to another storage."""

    def __init__(self, ctx: Ctx, p: dict[str, Any], store: str) -> None:
        self.ctx = ctx
        self.node: str = p["node"]
        self.vmid: int = p["vmid"]
        self.name: str = p["disk"]
        self.fmt: str | None = p.get("format")
        self.digest: str | None = p.get("digest")
        self.delete = bool(p.get("delete"))
        self.store = store

    def check(self) -> tuple[Vm, dict[str, str], bool]:
        """The machine, the drive and whether snapshots have it; refused if it cannot move."""
        ctx, name = self.ctx, self.name
        vm = ctx.cluster.vm_at(self.node, self.vmid)
        check_lock(vm)
        if self.digest and self.digest != ctx.cluster.digest(vm):
            raise PveError(
                "detected modified configuration - file changed by other user? Try again."
            )
        if name not in vm.conf:
            raise PveError(f"disk '{name}' does not exist")
        drive = parse_drive(ctx.sim.schema, name, vm.conf[name])
        self._check_places(drive)
        kept = in_snapshots(ctx.sim.schema, vm, drive["file"])
        if kept and self.delete:
            raise PveError("you can't move a disk with snapshots and delete the source")
        return vm, drive, kept

    def _check_places(self, drive: dict[str, str]) -> None:
        cluster = self.ctx.cluster
        parts = split_volid(drive.get("file", ""))
        if is_cdrom(drive, no_cloudinit=True):
            raise PveError("you can't move a cdrom")
        if parts is None:
            raise PveError(f"disk '{self.name}' has no associated volume")
        old = parse_volname(cluster.storage(parts[0]), parts[1])
        if parts[0] == self.store and (not self.fmt or old.fmt == self.fmt):
            raise PveError("you can't move to the same storage with same format")
        if "images" not in check_enabled(cluster, self.store, self.node).content:
            raise ParamError({"storage": f"storage '{self.store}' does not support vm images"})

    async def work(self, task: Task) -> None:
        """Move it."""
        async with self.ctx.sim.locks.hold(self.vmid, log=task.say):
            vm, drive, kept = self.check()
            if vm.run is not None and self.name == "tpmstate0":
                raise PveError(
                    "storage migration failed: cannot move TPM state while VM is running"
                )
            await self._copy_over(vm, drive, kept, task)

    async def _copy_over(self, vm: Vm, drive: dict[str, str], kept: bool, task: Task) -> None:
        ctx, cluster, name = self.ctx, self.ctx.cluster, self.name
        old = drive["file"]
        source = old.partition(":")[0]
        task.say(
            f"copying volume '{old}' from current storage '{source}' to target storage"
            f" '{self.store}'"
        )
        if kept:
            task.say("moving disk with snapshots, snapshots will not be moved!")
        try:
            copy = Copy(name, drive, self.store, self.fmt, vm)
            new, size = await copy_disk(ctx, vm.node, vm.vmid, copy, task)
        except ApiError as error:
            raise PveError(f"storage migration failed: {error.text}") from None
        drive["file"] = new
        if not is_unused(name):
            drive["size"] = format_size(size)
        vm.conf[name] = print_drive(ctx.sim.schema, name, drive)
        if not self.delete:
            place = add_unused(vm, old)
            task.say(f"adding source volume '{old}' as '{place}' to config")
        if vm.template:
            to_base(ctx, vm, name)
        try:
            cluster.write(vm)
        except ApiError as error:
            # Qemu.pm, move_vm_disk: the copies are removed.
            free(cluster, vm.node, new)
            raise PveError(f"storage migration failed: {error.text}") from None
        if self.delete:
            task.say(f"removing source volume '{old}' after successful copy")
            try:
                free(cluster, vm.node, old)
            except ApiError as error:
                task.say(error.text)


@dataclass(frozen=True)
class Copy:
    """A disk that is copied in full to a storage.

    The source is a running machine if one is given.
    """

    name: str
    drive: dict[str, str]
    store: str
    fmt: str | None
    running: Vm | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the running machine has lost the disk."""
        if self.running is None or self.running.run is None:
            return False
        return self.name in self.running.run.lost


async def copy_disk(ctx: Ctx, node: str, vmid: int, copy: Copy, task: Task) -> tuple[str, int]:
    """Copy a disk for a machine: the new volume ID and its size."""
    cluster, name, drive = ctx.cluster, copy.name, copy.drive
    storage = check_enabled(cluster, copy.store, node)
    parsed = parse_volname(
        cluster.storage(drive["file"].partition(":")[0]), drive["file"].partition(":")[2]
    )
    size = volume_size(cluster, node, drive["file"])
    wanted = copy.fmt or parsed.fmt
    target = wanted if wanted in formats(storage) else default_format(storage)
    task.say(f"create full clone of drive {name} ({drive['file']})")
    own = None
    if is_cloudinit(drive):
        own = f"vm-{vmid}-cloudinit" + (f".{target}" if is_path_based(storage) else "")
    source = find_volume(cluster, node, drive["file"])
    if source is not None:
        source.active = node
    volid = allocate(cluster, node, storage, Wanted(vmid, target, size, own), say=task.say)
    for line in format_line(storage, volid, target, size):
        task.say(line)
    task.say(f"allocated target volume '{volid}'")
    if own is None:
        try:
            if copy.is_lost:
                raise PveError(f"no block node found for drive 'drive-{name}'")
            await task.copy(size)
        except (ApiError, asyncio.CancelledError):
            free(cluster, node, volid)
            raise
    return volid, size


def _reassign(ctx: Ctx, p: dict[str, Any], target: int) -> str:
    node, vmid, name = p["node"], p["vmid"], p["disk"]
    place = p.get("target-disk") or name
    ctx.acl.require_vm(ctx.who, target, None, ["VM.Config.Disk"])
    if target == vmid:
        raise ParamError({"target-vmid": "must be different than source VMID to reassign disk"})
    drive = _check_reassign(ctx, p, target, place)[2]
    ctx.need(f"/storage/{drive['file'].partition(':')[0]}", "Datastore.AllocateSpace")

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say), ctx.sim.locks.hold(target, log=task.say):
            source, other, drive = _check_reassign(ctx, p, target, place)
            await _hand_over(ctx, source, other, _Handover(name, place, drive), task)

    return ctx.task(node, "qmmove", f"{vmid}-{name}>{target}-{place}", work)


def _check_reassign(
    ctx: Ctx, p: dict[str, Any], target: int, place: str
) -> tuple[Vm, Vm, dict[str, str]]:
    vms, vmid, name = ctx.cluster.vms, p["vmid"], p["disk"]
    if vmid not in vms:
        raise PveError(f"could not find VM {vmid}")
    if target not in vms:
        raise PveError(f"could not find target VM {target}")
    source, other = ctx.cluster.vm_at(p["node"], vmid), vms[target]
    if source.node != other.node:
        raise PveError(f"Both VMs need to be on the same node ({source.node} != {other.node})")
    check_lock(source)
    check_lock(other)
    if source.template or other.template:
        raise PveError("Can't move disks from or to template VMs")
    for vm, key in ((source, "digest"), (other, "target-digest")):
        if p.get(key) and p[key] != ctx.cluster.digest(vm):
            text = "detected modified configuration - file changed by other user? Try again."
            raise PveError(f"VM {vm.vmid}: {text}")
    if name not in source.conf:
        raise PveError(f"Disk '{name}' for VM '{vmid}' does not exist")
    if place in other.conf:
        raise PveError(f"Target disk key '{place}' is already in use for VM '{target}'")
    drive = _check_movable(ctx, source, name)
    if not may_join(ctx, target, drive["file"]):
        raise PveError("Cannot move disk to a replicated VM. Storage does not support replication!")
    return source, other, drive


def _check_movable(ctx: Ctx, source: Vm, name: str) -> dict[str, str]:
    """The drive, which another machine can have."""
    drive = parse_drive(ctx.sim.schema, name, source.conf[name])
    if is_cdrom(drive, no_cloudinit=True):
        raise PveError("CD drive contents can't be moved to another VM")
    if split_volid(drive.get("file", "")) is None:
        raise PveError(f"Volume '{drive.get('file', '')}' not managed by PVE")
    if in_snapshots(ctx.sim.schema, source, drive["file"]):
        raise PveError("Can't move disk used by a snapshot to another VM")
    store, volume = drive["file"].split(":", 1)
    if not has_feature(
        ctx.cluster.storage(store), "rename", parse_volname(ctx.cluster.storage(store), volume)
    ):
        raise PveError("Storage does not support moving of this disk to another VM")
    if source.run is not None and not is_unused(name):
        raise PveError(
            "Cannot move disk to another VM while the source VM is running - detach first"
        )
    return drive


class _Handover(NamedTuple):
    """A disk, its key in the other machine and its drive."""

    name: str
    place: str
    drive: dict[str, str]


async def _hand_over(ctx: Ctx, source: Vm, other: Vm, disk: _Handover, task: Task) -> None:
    cluster = ctx.cluster
    name, place, drive = disk
    await task.work()
    task.say(f"reassign disk '{name}' from VM '{source.vmid}' as '{place}' to VM '{other.vmid}'")
    drive["file"] = rename_volume(cluster, source.node, drive["file"], other.vmid)
    devices = boot_devices(source.conf)
    if devices and name in devices:
        task.say(f"removing disk '{name}' from boot order config")
        source.conf["boot"] = print_boot([device for device in devices if device != name])
    del source.conf[name]
    task.say(f"removing disk '{name}' from VM '{source.vmid}' config")
    cluster.write(source)
    if is_unused(place):
        other.conf[place] = drive["file"]
        cluster.write(other)
        return
    text = print_drive(ctx.sim.schema, place, drive)
    await Update(ctx, {"node": other.node, "vmid": other.vmid, place: text}).run(task)
