"""Moves machines to other nodes."""

from __future__ import annotations

import re
from typing import Any

from .api import Ctx, api
from .drives import drives_of, parse_props, split_volid
from .errors import ParamError, PveError
from .formats import split_list
from .ha import is_managed, request_move
from .ha_rules import motion
from .migrate_volumes import Local, carry, local_volumes, scan, stamp
from .state import Vm
from .tasks import Task
from .vmcheck import check_lock
from .volumes import check_enabled

_DEVICE = re.compile(r"(usb|hostpci|serial|parallel|virtiofs)\d+")
_NO_CONNTRACK = "conntrack state migration not supported or disabled, active connections might get dropped"


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


def local_devices(ctx: Ctx, vm: Vm) -> tuple[list[str], dict[str, str]]:
    """Devices of the host that the machine uses, and among them those that are mapped, with the mapping's name."""
    blocking: list[str] = []
    mapped: dict[str, str] = {}
    for name in sorted(vm.conf):
        kind = _DEVICE.fullmatch(name)
        if not kind or (kind[1] == "serial" and vm.conf[name] == "socket"):
            continue
        keys = ctx.sim.schema.vm_options[name].get("format")
        parts = parse_props(keys, vm.conf[name]) if isinstance(keys, dict) else {}
        if kind[1] == "usb" and parts.get("host", "").lower() == "spice":
            continue
        mapping = parts.get("dirid" if kind[1] == "virtiofs" else "mapping")
        if mapping and kind[1] in ("usb", "hostpci", "virtiofs"):
            mapped[name] = mapping
            if kind[1] == "hostpci" and vm.run is None:
                continue
        blocking.append(name)
    return blocking, mapped


def _precondition_disks(ctx: Ctx, vm: Vm) -> list[dict[str, Any]]:
    found = []
    for local in local_volumes(ctx, vm).values():
        item: dict[str, Any] = {
            "volid": local.volid,
            "cdrom": 1 if local.cdrom or local.cloudinit else 0,
            "is_attached": 1 if local.attached else 0,
            "is_cloudinit": 1 if local.cloudinit else 0,
            "is_tpmstate": 1 if local.drive == "tpmstate0" else 0,
            "is_unused": 1 if local.unused else 0,
            "is_vmstate": 1 if local.memory else 0,
            "replicate": 1,
            "shared": 0,
        }
        if local.drive:
            item["drivename"] = local.drive
        if local.size is not None:
            item["size"] = local.size
        if local.snapshots:
            item["referenced_in_snapshot"] = dict.fromkeys(local.snapshots, 1)
        if local.pending:
            item["referenced_in_pending"] = 1
        found.append(item)
    return found


@api("GET /nodes/{node}/qemu/{vmid}/migrate")
def migrate_precondition(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Where the machine could go, and what would stand in the way."""
    ctx.cluster.check_quorum()
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    check_lock(vm)
    used = {
        drive["file"].partition(":")[0]
        for _dummy, drive in drives_of(ctx.sim.schema, vm.conf)
        if split_volid(drive.get("file", ""))
    }
    allowed: list[str] = []
    refused: dict[str, dict[str, Any]] = {}
    blocking, mapped = local_devices(ctx, vm)
    managed = is_managed(ctx.cluster, vm.vmid)
    along, apart = motion(ctx.cluster, f"vm:{vm.vmid}") if managed else ([], {})
    for node in ctx.cluster.nodes:
        if node == p["node"]:
            continue
        missing = sorted(
            name for name in used if name in ctx.cluster.storages and not ctx.cluster.storages[name].available_on(node)
        )
        refused[node] = {"unavailable_storages": missing} if missing else {}
        if mapped:
            refused[node]["unavailable-resources"] = sorted(mapped)
        if node in apart:
            refused[node]["blocking-ha-resources"] = apart[node]
        if not refused[node]:
            allowed.append(node)
    return {
        "allowed_nodes": allowed,
        "not_allowed_nodes": refused,
        "local_disks": _precondition_disks(ctx, vm),
        "local_resources": blocking,
        "mapped-resources": sorted(mapped),
        "mapped-resource-info": {name: {"name": mapped[name]} for name in mapped},
        "has-dbus-vmstate": 1,
        "running": 1 if vm.run else 0,
        **({"dependent-ha-resources": along} if managed else {}),
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
    for _dummy, drive in drives_of(ctx.sim.schema, vm.conf):
        parts = split_volid(drive.get("file", ""))
        if parts:
            check_enabled(ctx.cluster, parts[0], target)


async def _migrate(ctx: Ctx, vm: Vm, target: str, targets: dict[str, str], with_local: bool, task: Task) -> None:
    cluster = ctx.cluster
    source, begun = vm.node, cluster.now()
    async with ctx.sim.locks.hold(vm.vmid, log=task.say):
        try:
            _prepare(ctx, vm, source, target, task)
            task.say(stamp(ctx, f"starting migration of VM {vm.vmid} to node '{target}' ({cluster.nodes[target].ip})"))
            try:
                await _transfer(ctx, vm, target, targets, scan(ctx, vm, with_local, task), task)
            except PveError as error:
                task.say(stamp(ctx, f"ERROR: {error.text}"))
                task.say(stamp(ctx, "aborting phase 1 - cleanup resources"))
                raise
        except PveError as error:
            task.say(stamp(ctx, f"ERROR: migration aborted (duration {_duration(ctx, begun)}): {error.text}"))
            raise PveError("migration aborted") from None
        vm.node = target
        if vm.run is not None:
            node = cluster.nodes[target]
            node.next_pid += 1
            vm.run.pid = node.next_pid
        cluster.touch(vm.vmid)
        task.say(stamp(ctx, f"migration finished successfully (duration {_duration(ctx, begun)})"))


def _duration(ctx: Ctx, begun: float) -> str:
    taken = int(ctx.cluster.now() - begun)
    return f"{taken // 3600:02d}:{taken // 60 % 60:02d}:{taken % 60:02d}"


def _prepare(ctx: Ctx, vm: Vm, source: str, target: str, task: Task) -> None:
    """What must hold before anything is copied."""
    if ctx.cluster.vms.get(vm.vmid) is not vm or vm.node != source:
        raise PveError(f"Configuration file 'nodes/{source}/qemu-server/{vm.vmid}.conf' does not exist")
    check_lock(vm)
    if vm.run is not None:
        task.say(stamp(ctx, _NO_CONNTRACK))
    blocking, mapped = local_devices(ctx, vm)
    blocking = [name for name in blocking if name not in mapped]
    if blocking:
        raise PveError(f"can't migrate VM which uses local devices: {', '.join(blocking)}")
    if mapped:
        raise PveError(f"can't migrate to '{target}': missing mapped devices {', '.join(sorted(mapped))}")
    if not ctx.cluster.nodes[target].online:
        raise PveError("Can't connect to destination address using public key")


async def _transfer(ctx: Ctx, vm: Vm, target: str, targets: dict[str, str], volumes: list[Local], task: Task) -> None:
    cluster = ctx.cluster
    vm.conf["lock"] = "migrate"
    cluster.write(vm)
    if vm.run is not None:
        task.say(stamp(ctx, f"starting VM {vm.vmid} on remote node '{target}'"))
        cluster.tasks.start(target, "qmstart", vm.vmid, "root@pam", _incoming)
    try:
        await carry(ctx, vm, target, targets, volumes, task)
    finally:
        vm.conf.pop("lock", None)
        cluster.write(vm)


async def _incoming(task: Task) -> None:
    """The other end of an online migration: a machine that waits for the memory."""
    await task.work()
