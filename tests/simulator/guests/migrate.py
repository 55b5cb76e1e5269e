"""The calls that move machines to other nodes."""

from __future__ import annotations

from typing import Any

from ..config.checks import check_lock
from ..core.api import Ctx, api
from ..core.state import Vm
from ..core.tasks import Task
from ..errors import ParamError, PveError
from ..ha.manager import request_move
from ..ha.records import is_managed
from ..ha.rules import motion
from ..running.migration import local_devices, mapped_info, migrate, unmapped_devices
from ..running.migration_volumes import local_volumes
from ..schema.formats import split_list
from ..volumes.drives import drives_of, split_volid
from ..volumes.volumes import check_enabled


def _storage_map(text: str | None) -> dict[str, str]:
    """The targets of local disks: by source storage, "" for all others, "1" alone for the same
    names.
    """
    result: dict[str, str] = {}
    for entry in split_list(text or ""):
        source, colon, target = entry.partition(":")
        if colon:
            result[source] = target
        else:
            result[""] = entry
    return result


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
    """The possible targets of the machine, and the obstacles on the other nodes."""
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
            name
            for name in used
            if name in ctx.cluster.storages and not ctx.cluster.storages[name].available_on(node)
        )
        refused[node] = {"unavailable_storages": missing} if missing else {}
        unmapped = unmapped_devices(ctx, mapped, node)
        if unmapped:
            refused[node]["unavailable-resources"] = unmapped
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
        "mapped-resource-info": mapped_info(ctx, mapped),
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
        await migrate(ctx, vm, target, targets, bool(p.get("with-local-disks")), task)

    return ctx.task(node, "qmigrate", vmid, work)


def _check_available(ctx: Ctx, vm: Vm, target: str) -> None:
    for _dummy, drive in drives_of(ctx.sim.schema, vm.conf):
        parts = split_volid(drive.get("file", ""))
        if parts:
            check_enabled(ctx.cluster, parts[0], target)
