"""Snapshots: a tree of saved configurations with the disks and, if asked for, the memory."""

from __future__ import annotations

from typing import Any

from ..config.checks import check_lock
from ..config.disks import add_unused, leave_unused
from ..config.vmconfig import disk_feature, typed
from ..core.api import Ctx, api
from ..core.state import Vm
from ..core.tasks import Task
from ..errors import ApiError, PveError
from ..running.power import cleanup_after_rollback, launch, quit_vm
from ..volumes.drives import drives_of, is_cdrom, split_volid
from ..volumes.volumes import find_volume, free
from .power import start_vm
from .suspend import check_migratable, save_state, state_storage

# Options that a snapshot does not copy from the configuration.
_NOT_COPIED = (
    "snapshots",
    "snapstate",
    "snaptime",
    "vmstate",
    "lock",
    "digest",
    "description",
    "pending",
)
_RUNNING = ("runningmachine", "runningcpu", "running-nets-host-mtu")


def _copied(conf: dict[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in conf.items()
        if name not in _NOT_COPIED and not (name.startswith("unused") and name[6:].isdigit())
    }


def _snapshot(vm: Vm, name: str) -> dict[str, str]:
    found = vm.snapshots.get(name)
    if found is None:
        raise PveError(f"snapshot '{name}' does not exist")
    return found


@api("GET /nodes/{node}/qemu/{vmid}/snapshot")
def snapshot_list(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The snapshots and, last, the present state."""
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    result: list[dict[str, Any]] = []
    for name, snapshot in vm.snapshots.items():
        item: dict[str, Any] = {
            "name": name,
            "snaptime": int(snapshot.get("snaptime", "0")),
            "vmstate": 1 if snapshot.get("vmstate") else 0,
            "description": snapshot.get("description", ""),
        }
        for key in ("parent", "snapstate"):
            if snapshot.get(key):
                item[key] = snapshot[key]
        result.append(item)
    current: dict[str, Any] = {
        "name": "current",
        "digest": ctx.cluster.digest(vm),
        "running": 1 if vm.run else 0,
        "description": "You are here!",
    }
    if vm.conf.get("parent"):
        current["parent"] = vm.conf["parent"]
    return [*result, current]


@api("GET /nodes/{node}/qemu/{vmid}/snapshot/{snapname}")
def snapshot_index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The subdirectories of a snapshot."""
    return [{"cmd": "rollback"}, {"cmd": "config"}]


@api("GET /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config")
def get_snapshot_config(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The configuration that the snapshot saved."""
    return typed(ctx, _snapshot(ctx.cluster.vm_at(p["node"], p["vmid"]), p["snapname"]), hide=False)


@api("PUT /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config")
async def put_snapshot_config(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the description of a snapshot."""
    if p.get("description") is None:
        return
    async with ctx.sim.locks.hold(p["vmid"]):
        vm = ctx.cluster.vm_at(p["node"], p["vmid"])
        check_lock(vm)
        _snapshot(vm, p["snapname"])["description"] = p["description"]
        ctx.cluster.write(vm)


@api("POST /nodes/{node}/qemu/{vmid}/snapshot")
def snapshot(ctx: Ctx, p: dict[str, Any]) -> str:
    """Take a snapshot."""
    node, vmid, name = p["node"], p["vmid"], p["snapname"]
    if name == "current" or name.lower() == "pending":
        raise PveError(f"unable to use snapshot name '{name.lower()}' (reserved name)")
    check_migratable(ctx.cluster.vm_at(node, vmid), with_memory=bool(p.get("vmstate")))

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            vm = ctx.cluster.vm_at(node, vmid)
            _prepare(ctx, vm, name, bool(p.get("vmstate")), p.get("description"), task)
        try:
            await task.work()
        except ApiError:
            task.say("snapshot create failed: starting cleanup")
            async with ctx.sim.locks.hold(vmid):
                _forget(ctx, vm, name, vm.snapshots[name])
            raise
        async with ctx.sim.locks.hold(vmid, log=task.say):
            _commit(ctx, vm, name, task)

    return ctx.task(node, "qmsnapshot", vmid, work)


def _prepare(
    ctx: Ctx, vm: Vm, name: str, with_state: bool, comment: str | None, task: Task
) -> None:
    if vm.template:
        raise PveError("you can't take a snapshot if it's a template")
    check_lock(vm)
    if name in vm.snapshots:
        raise PveError(f"snapshot name '{name}' already used")
    for _dummy, drive in drives_of(ctx.sim.schema, vm.conf):
        left_out = name == "vzdump" and drive.get("backup") == "0"
        if not is_cdrom(drive) and not left_out and not disk_feature(ctx, "snapshot", drive):
            raise PveError("snapshot feature is not available")
    ctx.cluster.write(vm)
    for other in vm.snapshots.values():
        if other.get("parent") == name:
            del other["parent"]
    taken = _copied(vm.conf)
    if with_state and vm.run is not None:
        taken.update(save_state(ctx, vm, name, state_storage(ctx, vm), task))
    taken["snapstate"] = "prepare"
    taken["snaptime"] = str(int(ctx.cluster.now()))
    if comment:
        taken["description"] = comment
    vm.snapshots[name] = taken
    vm.conf["lock"] = "snapshot"
    ctx.cluster.write(vm)


def _commit(ctx: Ctx, vm: Vm, name: str, task: Task) -> None:
    taken = vm.snapshots.get(name)
    if taken is None:
        raise PveError(f"snapshot '{name}' does not exist")
    if taken.get("vmstate"):
        task.say(f"saving VM state and RAM using storage '{taken['vmstate'].partition(':')[0]}'")
    for drive_name, drive in drives_of(ctx.sim.schema, taken):
        if is_cdrom(drive):
            continue
        task.say(f"snapshotting 'drive-{drive_name}' ({drive['file']})")
        volume = find_volume(ctx.cluster, vm.node, drive["file"])
        if volume is not None:
            volume.snapshots[name] = volume.virtual_size or volume.size
    taken.pop("snapstate", None)
    vm.conf.pop("lock", None)
    vm.conf["parent"] = name
    ctx.cluster.write(vm)


@api("DELETE /nodes/{node}/qemu/{vmid}/snapshot/{snapname}")
def delsnapshot(ctx: Ctx, p: dict[str, Any]) -> str:
    """Delete a snapshot; its children then depend on its parent."""
    node, vmid, name = p["node"], p["vmid"], p["snapname"]

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            vm = ctx.cluster.vm_at(node, vmid)
            taken = _snapshot(vm, name)
            check_lock(vm)
            if vm.template:
                raise PveError("you can't delete a snapshot if vm is a template")
            ctx.cluster.write(vm)
            vm.conf["lock"] = "snapshot-delete"
            taken["snapstate"] = "delete"
            ctx.cluster.write(vm)
        await task.work()
        async with ctx.sim.locks.hold(vmid, log=task.say):
            _forget(ctx, vm, name, taken)

    return ctx.task(node, "qmdelsnapshot", vmid, work)


def _forget(ctx: Ctx, vm: Vm, name: str, taken: dict[str, str]) -> None:
    if taken.get("vmstate"):
        free(ctx.cluster, vm.node, taken["vmstate"])
    unused = []
    for _dummy, drive in drives_of(ctx.sim.schema, taken):
        if is_cdrom(drive):
            continue
        volume = find_volume(ctx.cluster, vm.node, drive["file"])
        if volume is not None:
            volume.snapshots.pop(name, None)
        unused.append(drive["file"])
    parent = taken.get("parent")
    del vm.snapshots[name]
    for conf in (vm.conf, *vm.snapshots.values()):
        if conf.get("parent") == name:
            if parent:
                conf["parent"] = parent
            else:
                del conf["parent"]
    vm.conf.pop("lock", None)
    used = {
        drive.get("file")
        for place in (vm.conf, vm.pending, *vm.snapshots.values())
        for _dummy, drive in drives_of(ctx.sim.schema, place)
    }
    for volid in unused:
        if volid not in used:
            add_unused(vm, volid)
    ctx.cluster.write(vm)


@api("POST /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/rollback")
def rollback(ctx: Ctx, p: dict[str, Any]) -> str:
    """Go back to a snapshot; a running machine is stopped for it."""
    node, vmid, name = p["node"], p["vmid"], p["snapname"]
    if p.get("start"):
        ctx.need(f"/vms/{vmid}", "VM.PowerMgmt")

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            vm = ctx.cluster.vm_at(node, vmid)
            if vm.template:
                raise PveError("you can't rollback if vm is a template")
            taken = _snapshot(vm, name)
            if taken.get("snapstate"):
                raise PveError(
                    f"unable to rollback to incomplete snapshot (snapstate = {taken['snapstate']})"
                )
            check_lock(vm)
            _check_disks(ctx, vm, taken, name)
            ran = vm.run is not None
            if ran:
                quit_vm(ctx, vm)
            vm.conf["lock"] = "rollback"
            ctx.cluster.write(vm)
        await task.work()
        async with ctx.sim.locks.hold(vmid, log=task.say):
            _restore(ctx, vm, name, taken)
            if ran:
                cleanup_after_rollback(ctx, vm)
        if p.get("start") and vm.run is None:
            start_vm(ctx, node, vmid, {})

    return ctx.task(node, "qmrollback", vmid, work)


def _check_disks(ctx: Ctx, vm: Vm, taken: dict[str, str], name: str) -> None:
    """Some storages can only go back to the newest snapshot."""
    for _dummy, drive in drives_of(ctx.sim.schema, taken):
        parts = split_volid(drive.get("file", ""))
        if is_cdrom(drive) or parts is None:
            continue
        storage = ctx.cluster.storage(parts[0])
        volume = find_volume(ctx.cluster, vm.node, drive["file"])
        linear = storage.kind == "zfspool" or storage.config.get("snapshot-as-volume-chain") == "1"
        if linear and volume is not None and list(volume.snapshots)[-1:] != [name]:
            raise PveError(
                f"can't rollback, '{name}' is not most recent snapshot on '{drive['file']}'"
            )


def _restore(ctx: Ctx, vm: Vm, name: str, taken: dict[str, str]) -> None:
    cluster, schema = ctx.cluster, ctx.sim.schema
    kept_files = {drive.get("file") for _dummy, drive in drives_of(schema, taken)}
    for _dummy, drive in drives_of(schema, vm.conf):
        if (
            not is_cdrom(drive, no_cloudinit=True)
            and drive.get("file") not in kept_files
            and split_volid(drive.get("file", ""))
        ):
            leave_unused(ctx, vm, drive)
    new = {
        key: value
        for key, value in vm.conf.items()
        if key == "description" or (key.startswith("unused") and key[6:].isdigit())
    }
    new.update(_copied(taken))
    for key in _RUNNING:
        new.pop(key, None)
    if "vmgenid" in new:
        new["vmgenid"] = cluster.uuid()
    new["parent"] = name
    for key in [
        key for key, value in new.items() if key.startswith("unused") and value in kept_files
    ]:
        del new[key]
    for _dummy, drive in drives_of(schema, taken):
        volume = find_volume(cluster, vm.node, drive.get("file", ""))
        if volume is not None and name in volume.snapshots:
            volume.size = volume.snapshots[name]
            if volume.virtual_size is not None:
                volume.virtual_size = volume.size
    vm.conf = new
    vm.pending.clear()
    vm.pending_delete.clear()
    cluster.write(vm)
    if taken.get("vmstate"):
        launch(ctx, vm, resume=True)
