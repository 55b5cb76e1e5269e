"""Moves machines to other nodes."""

from __future__ import annotations

import time
from typing import Any

from .api import Ctx, api
from .drives import drives_of, is_cdrom, is_cloudinit, print_drive, split_volid
from .errors import ParamError, PveError
from .formats import split_list
from .ha import is_managed, request_move
from .state import Vm
from .tasks import Task
from .vmcheck import check_lock
from .volumes import check_enabled, find_volume, own_key


def _storage_map(text: str | None) -> dict[str, str]:
    """The targets of local disks: by source storage, "" for all others, "1" alone for the same names."""
    result: dict[str, str] = {}
    for entry in split_list(text or ""):
        source, colon, target = entry.partition(":")
        if colon:
            result[source] = target
        else:
            result[""] = entry
    return result


def _local_disks(ctx: Ctx, vm: Vm) -> list[tuple[str, dict[str, str]]]:
    """The drives on storages that the other nodes do not see."""
    found = []
    for name, drive in drives_of(ctx.sim.schema, vm.conf, unused=True):
        parts = split_volid(drive.get("file", ""))
        if parts and parts[0] in ctx.cluster.storages and not ctx.cluster.storages[parts[0]].shared:
            found.append((name, drive))
    return found


@api("GET /nodes/{node}/qemu/{vmid}/migrate")
def migrate_precondition(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Where the machine could go, and what would stand in the way."""
    ctx.cluster.check_quorum()
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    check_lock(vm)
    used = {
        drive["file"].partition(":")[0]
        for _, drive in drives_of(ctx.sim.schema, vm.conf)
        if split_volid(drive.get("file", ""))
    }
    allowed, refused = [], {}
    for node in ctx.cluster.nodes:
        if node == p["node"]:
            continue
        missing = sorted(
            name for name in used if name in ctx.cluster.storages and not ctx.cluster.storages[name].available_on(node)
        )
        refused[node] = {"unavailable_storages": missing} if missing else {}
        if not missing:
            allowed.append(node)
    disks = []
    for name, drive in _local_disks(ctx, vm):
        volume = find_volume(ctx.cluster, vm.node, drive["file"])
        item: dict[str, Any] = {
            "volid": drive["file"],
            "cdrom": 1 if is_cdrom(drive) else 0,
            "drivename": name,
            "is_attached": 1,
        }
        if volume is not None:
            item["size"] = volume.virtual_size or volume.size
        disks.append(item)
    return {
        "allowed_nodes": allowed,
        "not_allowed_nodes": refused,
        "local_disks": disks,
        "local_resources": [],
        "mapped-resources": [],
        "mapped-resource-info": {},
        "has-dbus-vmstate": 1,
        "running": 1 if vm.run else 0,
    }


@api("POST /nodes/{node}/qemu/{vmid}/migrate")
def migrate_vm(ctx: Ctx, p: dict[str, Any]) -> str:
    """Move a machine, online or offline, or ask the HA manager to."""
    node, vmid, target, cluster = p["node"], p["vmid"], p["target"], ctx.cluster
    if target == node:
        raise ParamError({"target": "target is local node."})
    cluster.check_quorum()
    if target not in cluster.nodes:
        raise PveError(f"no such cluster node '{target}'")
    ctx.root_only(p, "force", "migration_type", "migration_network")
    vm = cluster.vm_at(node, vmid)
    check_lock(vm)
    if vm.run is not None and not p.get("online"):
        raise PveError("can't migrate running VM without --online")
    targets = _storage_map(p.get("targetstorage"))
    if targets and targets != {"": "1"}:
        ctx.acl.require_vm(ctx.who, vmid, None, ["VM.Config.Disk"])
        for name in targets.values():
            storage = check_enabled(cluster, name, target)
            ctx.need(f"/storage/{name}", "Datastore.AllocateSpace")
            if "images" not in storage.content:
                raise PveError(f"storage '{name}' does not support vm images")
    else:
        _check_available(ctx, vm, target)
    if is_managed(cluster, vmid):

        async def request(task: Task) -> None:
            task.say(f"Requesting HA migration for VM {vmid} to node {target}")
            request_move(ctx, vmid, target)

        return ctx.task(node, "hamigrate", vmid, request)

    async def work(task: Task) -> None:
        await _migrate(ctx, vm, target, targets, bool(p.get("with-local-disks")), task)

    return ctx.task(node, "qmigrate", vmid, work)


def _check_available(ctx: Ctx, vm: Vm, target: str) -> None:
    for _, drive in drives_of(ctx.sim.schema, vm.conf):
        parts = split_volid(drive.get("file", ""))
        if parts:
            check_enabled(ctx.cluster, parts[0], target)


def _stamp(ctx: Ctx) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ctx.cluster.now()))


async def _migrate(ctx: Ctx, vm: Vm, target: str, targets: dict[str, str], with_local: bool, task: Task) -> None:
    cluster = ctx.cluster
    source, online = vm.node, vm.run is not None
    async with ctx.sim.locks.hold(vm.vmid, log=task.say):
        if cluster.vms.get(vm.vmid) is not vm or vm.node != source:
            raise PveError(f"Configuration file 'nodes/{source}/qemu-server/{vm.vmid}.conf' does not exist")
        check_lock(vm)
        if not cluster.nodes[target].online:
            raise PveError(
                "migration aborted (duration 00:00:00): Can't connect to destination address using public key"
            )
        begun = cluster.now()
        task.say(f"{_stamp(ctx)} starting migration of VM {vm.vmid} to node '{target}' ({cluster.nodes[target].ip})")
        local = [(name, drive) for name, drive in _local_disks(ctx, vm) if not is_cdrom(drive, no_cloudinit=True)]
        if online and [name for name, drive in local if not is_cloudinit(drive)] and not with_local:
            names = ", ".join(drive["file"] for _, drive in local)
            task.say(
                f"{_stamp(ctx)} ERROR: Problem found while scanning volumes - can't live migrate attached local"
                f" disks without with-local-disks option ({names})"
            )
            raise PveError("migration aborted")
        cdroms = [drive["file"] for _, drive in _local_disks(ctx, vm) if is_cdrom(drive, no_cloudinit=True)]
        for file in cdroms:
            if find_volume(cluster, target, file) is None:
                raise PveError("migration aborted")
        vm.conf["lock"] = "migrate"
        cluster.write(vm)
        if online:
            task.say(f"{_stamp(ctx)} starting VM {vm.vmid} on remote node '{target}'")
            cluster.tasks.start(target, "qmstart", vm.vmid, "root@pam", _incoming)
        try:
            await _carry(ctx, vm, target, targets, local, task)
        finally:
            vm.conf.pop("lock", None)
            cluster.write(vm)
        vm.node = target
        if vm.run is not None:
            node = cluster.nodes[target]
            node.next_pid += 1
            vm.run.pid = node.next_pid
        cluster.touch(vm.vmid)
        taken = int(cluster.now() - begun)
        task.say(f"{_stamp(ctx)} migration finished successfully (duration 00:{taken // 60:02d}:{taken % 60:02d})")


async def _incoming(task: Task) -> None:
    """The other end of an online migration: a machine that waits for the memory."""
    await task.work()


async def _carry(
    ctx: Ctx, vm: Vm, target: str, targets: dict[str, str], local: list[tuple[str, dict[str, str]]], task: Task
) -> None:
    cluster = ctx.cluster
    moves = []
    for name, drive in local:
        store, volume = drive["file"].split(":", 1)
        goal = targets.get(store, targets.get("", store))
        goal = store if goal == "1" else goal
        storage, other = cluster.storage(store), check_enabled(cluster, goal, target)
        key = own_key(storage, volume)
        held = storage.on(vm.node).get(key)
        if held is None:
            raise PveError(f"volume '{drive['file']}' does not exist")
        if key in other.on(target):
            raise PveError(f"migration aborted (duration 00:00:00): volume '{goal}:{key}' already exists")
        moves.append((name, drive, storage, other, key, held, f"{goal}:{volume}"))
    if not moves:
        await task.work()
    for name, drive, storage, other, key, held, new in moves:
        task.say(f"{_stamp(ctx)} found local disk '{drive['file']}' (attached)")
        await task.copy(held.size, 1 / len(moves))
        storage.on(vm.node).pop(key, None)
        other.on(target)[key] = held
        if new != drive["file"]:
            drive["file"] = new
            vm.conf[name] = print_drive(ctx.sim.schema, name, drive) if not name.startswith("unused") else new
    for snapshot in vm.snapshots.values():
        for name, drive, _, _, _, _, new in moves:
            if snapshot.get(name, "").startswith(drive["file"]):
                snapshot[name] = snapshot[name].replace(drive["file"], new, 1)
