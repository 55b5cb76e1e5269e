"""Reading and changing the configuration of machines: config, pending, resize, unlink, template, moving disks."""

from __future__ import annotations

import asyncio
from typing import Any

from .api import Ctx, api
from .disks import add_unused
from .drives import (
    boot_devices,
    drives_of,
    is_cdrom,
    is_cloudinit,
    is_drive,
    is_unused,
    parse_drive,
    print_boot,
    print_drive,
    split_volid,
)
from .errors import ApiError, ParamError, PveError
from .state import Vm
from .tasks import Task
from .units import format_size
from .vmcheck import check_lock
from .vmupdate import Update
from .volumes import (
    allocate,
    check_enabled,
    find_volume,
    format_line,
    formats,
    free,
    has_feature,
    in_snapshots,
    make_base,
    own_key,
    parse_volname,
    storage_path,
    volume_size,
)  # fmt: skip

HIDDEN = "**********"


def typed(ctx: Ctx, conf: dict[str, str]) -> dict[str, Any]:
    """The settings with integers and booleans as numbers, as the API gives them."""
    ints = ctx.sim.schema.int_options
    result: dict[str, Any] = {
        name: int(value) if name in ints and value.strip() else value for name, value in conf.items()
    }
    if "cipassword" in result:
        result["cipassword"] = HIDDEN
    return result


@api("GET /nodes/{node}/qemu/{vmid}/config")
def get_config(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The configuration with pending changes, the live one, or that of a snapshot."""
    if p.get("snapshot") and p.get("current"):
        text = "cannot use 'snapshot' parameter with 'current'"
        raise ParamError({"snapshot": text, "current": text})
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    if p.get("snapshot"):
        snapshot = vm.snapshots.get(p["snapshot"])
        if snapshot is None:
            raise PveError(f"snapshot '{p['snapshot']}' does not exist")
        return {**typed(ctx, snapshot), "digest": ctx.cluster.digest(vm)}
    conf = vm.conf
    if not p.get("current") and (vm.pending or vm.pending_delete):
        conf = {**conf, **vm.pending}
        for name in vm.pending_delete:
            conf.pop(name, None)
    result = typed(ctx, conf)
    result["digest"] = ctx.cluster.digest(vm)
    return result


@api("GET /nodes/{node}/qemu/{vmid}/pending")
def get_pending(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """Every option with its live value, its pending value, or that it is to be deleted."""
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    live, pending = typed(ctx, vm.conf), typed(ctx, vm.pending)
    result: list[dict[str, Any]] = []
    for name, value in live.items():
        item = {"key": name, "value": value}
        if name in pending:
            item["pending"] = pending[name]
        if name in vm.pending_delete:
            item["delete"] = 2 if vm.pending_delete[name] else 1
        result.append(item)
    result += [{"key": name, "pending": value} for name, value in pending.items() if name not in live]
    result.append({"key": "digest", "value": ctx.cluster.digest(vm)})
    return result


@api("PUT /nodes/{node}/qemu/{vmid}/config")
async def put_config(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the configuration now."""
    await update_now(ctx, p)


async def update_now(ctx: Ctx, p: dict[str, Any]) -> None:
    """The same for other calls that are a change of the configuration."""
    update = Update(ctx, p)
    update.load()
    async with ctx.sim.locks.hold(update.vmid):
        await update.run()


@api("POST /nodes/{node}/qemu/{vmid}/config")
async def post_config(ctx: Ctx, p: dict[str, Any]) -> str | None:
    """Change the configuration with a task."""
    update = Update(ctx, p)
    update.load()

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(update.vmid, log=task.say):
            await task.work()
            await update.run(task)

    upid = ctx.task(update.node, "qmconfig", update.vmid, work)
    if not update.delay:
        return upid
    task = ctx.cluster.tasks.by_upid[upid]
    if task.handle is not None:
        await asyncio.wait([task.handle], timeout=update.delay)
    if task.running:
        return upid
    if task.status != "OK" and not str(task.status).startswith("WARNINGS"):
        raise PveError(f"failed to update VM {update.vmid}: {task.status}")
    return None


@api("PUT /nodes/{node}/qemu/{vmid}/unlink")
async def unlink(ctx: Ctx, p: dict[str, Any]) -> None:
    """Detach disks, or remove them for good."""
    p = dict(p)
    p["delete"] = p.pop("idlist")
    await update_now(ctx, p)


# -- resize --------------------------------------------------------------------------------------


@api("PUT /nodes/{node}/qemu/{vmid}/resize")
def resize(ctx: Ctx, p: dict[str, Any]) -> str:
    """Grow a disk; everything is checked by the task."""
    ctx.root_only(p, "skiplock")
    node, vmid, name, text = p["node"], p["vmid"], p["disk"], p["size"]

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            vm = ctx.cluster.vm_at(node, vmid)
            if p.get("digest") and p["digest"] != ctx.cluster.digest(vm):
                raise PveError("checksum mismatch (file change by other user?)")
            if not p.get("skiplock"):
                check_lock(vm)
            if name not in vm.conf:
                raise PveError(f"disk '{name}' does not exist")
            await task.work()
            _grow(ctx, vm, name, text, task)

    return ctx.task(node, "resize", vmid, work)


def _grow(ctx: Ctx, vm: Vm, name: str, text: str, task: Task) -> None:
    drive = parse_drive(ctx.sim.schema, name, vm.conf[name])
    volid = drive.get("file", "")
    if is_cdrom(drive):
        raise PveError("you can't resize a cdrom")
    parts = split_volid(volid)
    if parts is None:
        raise PveError(f"disk '{name}' has no associated volume")
    ctx.need(f"/storage/{parts[0]}", "Datastore.AllocateSpace")
    size = volume_size(ctx.cluster, vm.node, volid)
    number = text.removeprefix("+").rstrip("KMGT")
    unit = text[-1] if text[-1] in "KMGT" else ""
    new = float(number) * {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}[unit]
    target = int(new + size if text.startswith("+") else new)
    if target < size:
        raise PveError("shrinking disks is not supported")
    if target == size:
        return
    storage = ctx.cluster.storage(parts[0])
    volume = find_volume(ctx.cluster, vm.node, volid)
    parsed = parse_volname(storage, parts[1])
    if parsed.is_base:
        path = storage_path(storage, parts[1])
        task.say(f"qemu-img: Could not open '{path}': Could not open '{path}': Operation not permitted")
        option = " '--preallocation=metadata'" if parsed.fmt == "qcow2" else ""
        raise PveError(
            f"command '/usr/bin/qemu-img resize{option} -f {parsed.fmt} {path} {target}' failed: exit code 1"
        )
    ctx.cluster.write(vm)
    if volume is not None:
        # Image files grow in sectors; what the configuration says is what was asked for.
        volume.size = -(-target // 512) * 512
        volume.virtual_size = target
    if vm.run is None:
        task.say("Image resized.")
    drive["size"] = format_size(target)
    vm.conf[name] = print_drive(ctx.sim.schema, name, drive)
    ctx.cluster.write(vm)


# -- templates -----------------------------------------------------------------------------------


@api("POST /nodes/{node}/qemu/{vmid}/template")
def template(ctx: Ctx, p: dict[str, Any]) -> str:
    """Turn a machine, or one disk of it, into a template."""
    node, vmid, disk = p["node"], p["vmid"], p.get("disk")

    def check() -> Vm:
        vm = ctx.cluster.vm_at(node, vmid)
        check_lock(vm)
        if vm.snapshots:
            raise PveError("unable to create template, because VM contains snapshots")
        if vm.template and not disk:
            raise PveError("you can't convert a template to a template")
        if vm.run is not None:
            raise PveError("you can't convert a VM to template if VM is running")
        return vm

    check()

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            vm = check()
            vm.conf["template"] = "1"
            ctx.cluster.write(vm)
            await task.work()
            to_base(ctx, vm, disk)

    return ctx.task(node, "qmtemplate", vmid, work)


def to_base(ctx: Ctx, vm: Vm, only: str | None = None) -> None:
    """Turn the disks of a template into base volumes."""
    for name, drive in list(drives_of(ctx.sim.schema, vm.conf)):
        if is_cdrom(drive) or (only and name != only):
            continue
        parts = split_volid(drive.get("file", ""))
        if parts is None or parts[0] not in ctx.cluster.storages:
            continue
        storage = ctx.cluster.storages[parts[0]]
        if has_feature(storage, "template", parse_volname(storage, parts[1])):
            drive["file"] = make_base(ctx.cluster, vm.node, drive["file"])
            vm.conf[name] = print_drive(ctx.sim.schema, name, drive)
            ctx.cluster.write(vm)


# -- moving disks --------------------------------------------------------------------------------


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
    node, vmid, name, fmt = p["node"], p["vmid"], p["disk"], p.get("format")

    def check() -> tuple[Vm, dict[str, str], bool]:
        vm = ctx.cluster.vm_at(node, vmid)
        check_lock(vm)
        if p.get("digest") and p["digest"] != ctx.cluster.digest(vm):
            raise PveError("detected modified configuration - file changed by other user? Try again.")
        if name not in vm.conf:
            raise PveError(f"disk '{name}' does not exist")
        drive = parse_drive(ctx.sim.schema, name, vm.conf[name])
        parts = split_volid(drive.get("file", ""))
        if is_cdrom(drive, no_cloudinit=True):
            raise PveError("you can't move a cdrom")
        if parts is None:
            raise PveError(f"disk '{name}' has no associated volume")
        old = parse_volname(ctx.cluster.storage(parts[0]), parts[1])
        if parts[0] == store and (not fmt or old.fmt == fmt):
            raise PveError("you can't move to the same storage with same format")
        if "images" not in check_enabled(ctx.cluster, store, node).content:
            raise ParamError({"storage": f"storage '{store}' does not support vm images"})
        kept = in_snapshots(ctx.sim.schema, vm, drive["file"])
        if kept and p.get("delete"):
            raise PveError("you can't move a disk with snapshots and delete the source")
        return vm, drive, kept

    check()

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            vm, drive, kept = check()
            await _copy_over(ctx, vm, name, drive, store, fmt, bool(p.get("delete")), kept, task)

    return ctx.task(node, "qmmove", vmid, work)


async def _copy_over(
    ctx: Ctx, vm: Vm, name: str, drive: dict[str, str], store: str, fmt: str | None, delete: bool, kept: bool, task: Task
) -> None:
    cluster = ctx.cluster
    old = drive["file"]
    source = old.partition(":")[0]
    task.say(f"copying volume '{old}' from current storage '{source}' to target storage '{store}'")
    if kept:
        task.say("moving disk with snapshots, snapshots will not be moved!")
    new, size = await copy_disk(ctx, vm.node, vm.vmid, name, drive, store, fmt, task)
    drive["file"] = new
    if not is_unused(name):
        drive["size"] = format_size(size)
    vm.conf[name] = print_drive(ctx.sim.schema, name, drive)
    if not delete:
        place = add_unused(vm, old)
        task.say(f"adding source volume '{old}' as '{place}' to config")
    if vm.template:
        to_base(ctx, vm, name)
    cluster.write(vm)
    if delete:
        task.say(f"removing source volume '{old}' after successful copy")
        try:
            free(cluster, vm.node, old)
        except ApiError as error:
            task.say(error.text)


async def copy_disk(
    ctx: Ctx, node: str, vmid: int, name: str, drive: dict[str, str], store: str, fmt: str | None, task: Task
) -> tuple[str, int]:
    """Copy a disk in full to a storage: the new volume ID and its size."""
    cluster = ctx.cluster
    storage = check_enabled(cluster, store, node)
    parsed = parse_volname(cluster.storage(drive["file"].partition(":")[0]), drive["file"].partition(":")[2])
    size = volume_size(cluster, node, drive["file"])
    wanted = fmt or parsed.fmt
    target = wanted if wanted in formats(storage) else formats(storage)[0]
    task.say(f"create full clone of drive {name} ({drive['file']})")
    own = None
    if is_cloudinit(drive):
        own = f"vm-{vmid}-cloudinit" + (f".{target}" if len(formats(storage)) > 1 else "")
    volid = allocate(cluster, node, storage, vmid, target, size, own)
    for line in format_line(storage, volid, target, size):
        task.say(line)
    task.say(f"allocated target volume '{volid}'")
    if own is None:
        try:
            await task.copy(size)
        except asyncio.CancelledError:
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
            await _hand_over(ctx, source, other, name, place, drive, task)

    return ctx.task(node, "qmmove", f"{vmid}-{name}>{target}-{place}", work)


def _check_reassign(ctx: Ctx, p: dict[str, Any], target: int, place: str) -> tuple[Vm, Vm, dict[str, str]]:
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
    drive = parse_drive(ctx.sim.schema, name, source.conf[name])
    if is_cdrom(drive, no_cloudinit=True):
        raise PveError("CD drive contents can't be moved to another VM")
    if split_volid(drive.get("file", "")) is None:
        raise PveError(f"Volume '{drive.get('file', '')}' not managed by PVE")
    if in_snapshots(ctx.sim.schema, source, drive["file"]):
        raise PveError("Can't move disk used by a snapshot to another VM")
    store, volume = drive["file"].split(":", 1)
    if not has_feature(ctx.cluster.storage(store), "rename", parse_volname(ctx.cluster.storage(store), volume)):
        raise PveError("Storage does not support moving of this disk to another VM")
    if source.run is not None and not is_unused(name):
        raise PveError("Cannot move disk to another VM while the source VM is running - detach first")
    return source, other, drive


async def _hand_over(
    ctx: Ctx, source: Vm, other: Vm, name: str, place: str, drive: dict[str, str], task: Task
) -> None:
    cluster = ctx.cluster
    await task.work()
    task.say(f"reassign disk '{name}' from VM '{source.vmid}' as '{place}' to VM '{other.vmid}'")
    store, volume = drive["file"].split(":", 1)
    storage = cluster.storage(store)
    key = own_key(storage, volume)
    held = storage.on(source.node).pop(key, None)
    if held is None:
        raise PveError(f"volume '{drive['file']}' does not exist")
    new = allocate(cluster, source.node, storage, other.vmid, held.fmt, held.size)
    made = storage.on(source.node)[new.partition(":")[2]]
    made.virtual_size, made.used, made.parent, made.ctime = held.virtual_size, held.used, held.parent, held.ctime
    drive["file"] = f"{store}:{volume[: len(volume) - len(key)]}{made.name}"
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


@api("GET /nodes/{node}/qemu/{vmid}/feature")
def feature(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Whether the disks of the machine can be snapshotted, cloned or copied."""
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    conf, name = vm.conf, p.get("snapname")
    if name:
        if name not in vm.snapshots:
            raise PveError(f"snapshot '{name}' does not exist")
        conf = vm.snapshots[name]
    good = all(
        disk_feature(ctx, p["feature"], drive, name) for _, drive in drives_of(ctx.sim.schema, conf) if not is_cdrom(drive)
    )
    return {"hasFeature": 1 if good else 0, "nodes": shared_nodes(ctx, conf, vm.node)}


def disk_feature(ctx: Ctx, what: str, drive: dict[str, str], snapshot: str | None = None) -> bool:
    """Whether the storage of one disk can do that with it."""
    parts = split_volid(drive.get("file", ""))
    if parts is None or parts[0] not in ctx.cluster.storages:
        return False
    storage = ctx.cluster.storages[parts[0]]
    return has_feature(storage, what, parse_volname(storage, parts[1]), snapshot)


def shared_nodes(ctx: Ctx, conf: dict[str, str], own: str) -> list[str]:
    """The nodes that see all the disks."""
    nodes = set(ctx.cluster.nodes)
    for _, drive in drives_of(ctx.sim.schema, conf):
        parts = split_volid(drive.get("file", ""))
        if parts and parts[0] in ctx.cluster.storages:
            storage = ctx.cluster.storages[parts[0]]
            nodes &= {node for node in nodes if storage.available_on(node)} if storage.shared else {own}
    return sorted(nodes)


__all__ = ["copy_disk", "disk_feature", "is_drive", "shared_nodes", "typed", "update_now"]
