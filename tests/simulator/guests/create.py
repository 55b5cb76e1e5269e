"""Creates and destroys machines."""

from __future__ import annotations

import asyncio
from typing import Any

from ..cluster.pools import add_to_pool
from ..cluster.replication import drop_jobs
from ..config.checks import (
    check_bridges,
    check_cpu_model,
    check_devices,
    check_drive_params,
    check_lock,
    check_modify,
    check_protection,
    check_ssh_keys,
    check_storage_access,
    check_tags,
    resolve_cdrom_alias,
    unique_tags,
)
from ..config.disks import Maker
from ..config.hardware import check_vga, clamp_cpuunits, pinned_machine
from ..core.api import Ctx, api
from ..core.state import Vm
from ..core.tasks import Task
from ..errors import ApiError, ParamError, PermError, PveError
from ..ha.records import add_resource, drop_resource, is_configured
from ..volumes.drives import (
    default_boot,
    drives_of,
    is_cdrom,
    is_net,
    print_boot,
    split_volid,
    with_mac,
)
from ..volumes.volumes import base_in_use, free, own_key, volume_owner
from .backup_jobs import drop_from_jobs
from .power import start_vm
from .restore import Restore, check_archive

# Options of the call itself, which do not go into the configuration.
_CALL = (
    "node",
    "vmid",
    "archive",
    "bwlimit",
    "force",
    "pool",
    "start",
    "ha-managed",
    "storage",
    "unique",
    "live-restore",
    "import-working-storage",
)


@api("POST /nodes/{node}/qemu")
async def create_vm(ctx: Ctx, p: dict[str, Any]) -> str:
    """Create a machine: the ID is taken at once, disks are made by the task."""
    call = {name: p.pop(name) for name in _CALL if name in p}
    node, vmid, pool, store = call["node"], call["vmid"], call.get("pool"), call.get("storage")
    cluster = ctx.cluster
    check_ssh_keys(p)
    cluster.check_quorum()
    if pool is not None and pool not in cluster.pools:
        raise PermError(f"pool '{pool}' does not exist")
    _check_privileges(ctx, call)
    if call.get("archive"):
        check_archive(ctx, vmid, node, call["archive"], p)
    params: dict[str, Any] = {
        name: None if value is None else str(value) for name, value in p.items()
    }
    unset = [name for name, value in params.items() if value is None]
    given = {name: value for name, value in params.items() if value is not None}
    if "cpuunits" in given:
        given["cpuunits"] = clamp_cpuunits(given["cpuunits"])
    resolve_cdrom_alias(given)
    check_storage_access(ctx, vmid, given, store)
    check_modify(ctx, vmid, pool, params)
    check_devices(ctx, vmid, pool, given)
    check_bridges(ctx, given)
    check_cpu_model(ctx, given, {})
    check_drive_params(ctx, given)
    for name in [name for name in given if is_net(name)]:
        given[name] = with_mac(cluster, given[name])
    if call.get("archive"):
        return await Restore(ctx, call, given).start()
    taken = cluster.guest(vmid)
    if taken is not None:
        what = "CT" if taken.kind == "lxc" else "VM"
        raise PveError(
            f"unable to create VM {vmid} - {what} {vmid} already exists on node '{taken.node}'"
        )
    vm = Vm(vmid, node, {"lock": "create"})
    cluster.vms[vmid] = vm
    cluster.write(vm)

    async def work(task: Task) -> None:
        try:
            async with ctx.sim.locks.hold(vmid, 1, log=task.say):
                await _fill(ctx, vm, given, unset, call, task)
        except (ApiError, asyncio.CancelledError):
            if cluster.vms.get(vmid) is vm:
                cluster.remove_guest(vmid)
            raise
        await _afterwards(ctx, vm, call, task)

    return ctx.task(node, "qmcreate", vmid, work)


def _check_privileges(ctx: Ctx, call: dict[str, Any]) -> None:
    vmid, pool, store = call["vmid"], call.get("pool"), call.get("storage")
    path = f"/vms/{vmid}"
    if store is not None:
        ctx.need(f"/storage/{store}", "Datastore.AllocateSpace")
    if call.get("ha-managed"):
        ctx.need("/", "Sys.Console")
    if call.get("start"):
        ctx.acl.require_vm(ctx.who, vmid, pool, ["VM.PowerMgmt"])
    if ctx.may(path, "VM.Allocate"):
        return
    if pool and ctx.may(f"/pool/{pool}", "VM.Allocate"):
        return
    # VM.Backup is enough for a restore over a machine of this node.
    vm = ctx.cluster.vms.get(vmid)
    is_there = vm is not None and vm.node == call["node"]
    if call.get("archive") and call.get("force") and is_there and ctx.may(path, "VM.Backup"):
        return
    raise PermError


async def _fill(
    ctx: Ctx, vm: Vm, given: dict[str, str], unset: list[str], call: dict[str, Any], task: Task
) -> None:
    cluster = ctx.cluster
    await task.work()
    try:
        conf = dict(given)
        for name in unset:
            raise PveError(f"unable to parse value of '{name}' - got undefined value")
        conf["meta"] = f"creation-qemu={cluster.qemu},ctime={int(cluster.now())}"
        conf.update(await Maker(ctx, vm, call.get("storage"), task).run(given, conf))
        conf["boot"] = conf.get("boot") or print_boot(default_boot(ctx.sim.schema, conf))
        check_vga(ctx.sim.schema, conf.get("vga"))
        conf.setdefault("smbios1", f"uuid={cluster.uuid()}")
        if conf.get("vmgenid", "1") == "1":
            conf["vmgenid"] = cluster.uuid()
        machine = pinned_machine(cluster, conf.get("machine"), conf.get("ostype"))
        if machine:
            conf["machine"] = machine
        if "tags" in conf:
            check_tags(ctx, vm.vmid, "", conf["tags"])
            conf["tags"] = unique_tags(ctx, conf["tags"])
        vm.conf = conf
        cluster.write(vm)
    except ApiError as error:
        raise PveError(f"unable to create VM {vm.vmid} - {error.text}") from None
    if call.get("pool"):
        add_to_pool(cluster, call["pool"], vm.vmid)
        ctx.acl.changed()


async def _afterwards(ctx: Ctx, vm: Vm, call: dict[str, Any], task: Task) -> None:
    if call.get("ha-managed"):
        task.say("Add as HA resource")
        add_resource(
            ctx.cluster, f"vm:{vm.vmid}", {"state": "started" if call.get("start") else "stopped"}
        )
    if call.get("start"):
        task.say("Execute autostart")
        try:
            start_vm(ctx, vm.node, vm.vmid, {})
        except ApiError as error:
            task.say(error.text)


def _early(ctx: Ctx, node: str, vmid: int, purge: bool) -> tuple[Vm, bool]:
    vm = ctx.cluster.vm_at(node, vmid)
    check_protection(vm, f"can't remove VM {vmid}")
    managed = is_configured(ctx.cluster, vmid)
    if managed and not purge:
        raise PveError(
            f"unable to remove VM {vmid} - used in HA resources and purge parameter not set."
        )
    if vm.run is not None:
        raise PveError(f"VM {vmid} is running - destroy failed")
    return vm, managed


@api("DELETE /nodes/{node}/qemu/{vmid}")
async def destroy_vm(ctx: Ctx, p: dict[str, Any]) -> str:
    """Destroy a machine and the volumes it owns."""
    ctx.root_only(p, "skiplock")
    node, vmid, purge = p["node"], p["vmid"], bool(p.get("purge"))
    _early(ctx, node, vmid, purge)

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            vm, managed = _early(ctx, node, vmid, purge)
            if not p.get("skiplock") and vm.conf.get("lock") != "suspended":
                check_lock(vm)
            await task.work()
            _check_bases(ctx, vm)
            ctx.cluster.write(vm)
            _free_owned(ctx, vm, bool(p.get("destroy-unreferenced-disks")), task)
            for path in [path for path in ctx.acl.entries if path == f"/vms/{vmid}"]:
                del ctx.acl.entries[path]
            if purge:
                task.say(f"purging VM {vmid} from related configurations..")
                drop_from_jobs(ctx.cluster, vmid)
                drop_jobs(ctx.cluster, vmid)
                if managed:
                    drop_resource(ctx.cluster, f"vm:{vmid}")
                    task.say(f"NOTE: removed VM {vmid} from HA resource configuration.")
            ctx.cluster.remove_guest(vmid)
            ctx.acl.changed()

    return ctx.task(node, "qmdestroy", vmid, work)


def _check_bases(ctx: Ctx, vm: Vm) -> None:
    if not vm.template:
        return
    for _dummy, drive in drives_of(ctx.sim.schema, vm.conf, unused=True):
        parts = split_volid(drive.get("file", ""))
        if is_cdrom(drive) or parts is None or parts[0] not in ctx.cluster.storages:
            continue
        storage = ctx.cluster.storages[parts[0]]
        if base_in_use(ctx.cluster, storage, vm.node, own_key(storage, parts[1])):
            raise PveError(f"base volume '{drive['file']}' is still in use by linked cloned")


def owned_volumes(ctx: Ctx, vm: Vm) -> list[str]:
    """The volumes that the configuration names and the machine owns, pending ones and saved memory
    included.
    """
    found: dict[str, None] = {}
    for place in (vm.conf, vm.pending, *vm.snapshots.values()):
        now = place is vm.conf or place is vm.pending
        for _dummy, drive in drives_of(ctx.sim.schema, place, unused=True) if now else ():
            if not is_cdrom(drive, no_cloudinit=True):
                found[drive.get("file", "")] = None
        if place.get("vmstate"):
            found[place["vmstate"]] = None
    return [volid for volid in found if volume_owner(ctx.cluster, volid) == vm.vmid]


def _free_owned(ctx: Ctx, vm: Vm, unreferenced: bool, task: Task) -> None:
    cluster = ctx.cluster
    for volid in owned_volumes(ctx, vm):
        try:
            note = free(cluster, vm.node, volid)
        except ApiError as error:
            task.warn(f"Could not remove disk '{volid}', check manually: {error.text}")
            continue
        if note:
            task.say(note)
    if not unreferenced:
        return
    for storage in cluster.storages.values():
        if storage.disabled or not storage.available_on(vm.node):
            continue
        volumes = storage.on(vm.node)
        for name in [
            name
            for name, volume in volumes.items()
            if volume.vmid == vm.vmid and volume.content == "images"
        ]:
            del volumes[name]


__all__ = ["ParamError", "create_vm", "destroy_vm", "owned_volumes"]
