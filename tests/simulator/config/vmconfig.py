"""Reading and changing the configuration of machines: config, pending, resize, unlink, template,
moving disks.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ..core.api import Ctx, api
from ..core.state import Vm
from ..core.tasks import Task
from ..errors import ParamError, PveError
from ..schema.units import format_size
from ..volumes.drives import drives_of, is_cdrom, parse_drive, print_drive, split_volid
from ..volumes.space import check_growth
from ..volumes.volumes import (
    find_volume,
    has_feature,
    make_base,
    parse_volname,
    storage_path,
    volume_size,
)
from .checks import check_lock
from .update import Update

HIDDEN = "**********"


def typed(ctx: Ctx, conf: dict[str, str], *, hide: bool = True) -> dict[str, Any]:
    """The settings with integers and booleans as numbers, as the API gives them, mostly without the
    password.
    """
    ints = ctx.sim.schema.int_options
    result: dict[str, Any] = {
        name: int(value) if name in ints and value.strip() else value
        for name, value in conf.items()
    }
    if hide and "cipassword" in result:
        result["cipassword"] = HIDDEN
    return result


@api("GET /nodes/{node}/qemu/{vmid}/config")
def get_config(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The configuration with pending changes, the live configuration, or a snapshot's."""
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
    """Every option with its live value, its pending value, or its pending removal."""
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
    result += [
        {"key": name, "pending": value} for name, value in pending.items() if name not in live
    ]
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
    parts = split_volid(volid)
    if parts is None:
        raise PveError(f"unable to parse volume ID '{volid}'")
    parse_volname(ctx.cluster.storage(parts[0]), parts[1])
    if is_cdrom(drive):
        raise PveError("you can't resize a cdrom")
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
        task.say(
            f"qemu-img: Could not open '{path}': Could not open '{path}': Operation not permitted"
        )
        option = " '--preallocation=metadata'" if parsed.fmt == "qcow2" else ""
        raise PveError(
            f"command '/usr/bin/qemu-img resize{option} -f {parsed.fmt} {path} {target}' failed:"
            " exit code 1"
        )
    if volume is not None:
        path = storage_path(storage, parts[1])
        check_growth(
            storage, (vm.node, path), volume, target, running=vm.run is not None, say=task.say
        )
    ctx.cluster.write(vm)
    if volume is not None:
        # Image files grow in sectors; the configuration has the requested size.
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
        disk_feature(ctx, p["feature"], drive, name)
        for _dummy, drive in drives_of(ctx.sim.schema, conf)
        if not is_cdrom(drive)
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
    """The nodes that see all the disks, going by the definitions of their storages."""
    nodes = set(ctx.cluster.nodes)
    for _dummy, drive in drives_of(ctx.sim.schema, conf):
        parts = split_volid(drive.get("file", ""))
        if not parts:
            continue
        storage = ctx.cluster.storage(parts[0])
        if storage.disabled:
            nodes = set()
        elif storage.config.get("nodes"):
            nodes = {node for node in nodes if storage.available_on(node)}
        elif not storage.shared:
            nodes &= {own}
    return sorted(nodes)


__all__ = ["disk_feature", "shared_nodes", "to_base", "typed", "update_now"]
