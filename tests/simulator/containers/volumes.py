"""Grows volumes of containers, moves them to other storages or containers, makes templates.

Source: pve-container, API2/LXC.pm (resize_vm, move_volume, template) and LXC.pm (copy_volume,
template_create).
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from ..cluster.replication import may_join
from ..core.api import Ctx, api
from ..core.state import Container
from ..core.tasks import Task
from ..errors import ApiError, ParamError, PveError
from ..schema.units import format_size, parse_size
from ..volumes.drives import split_volid
from ..volumes.mounts import (
    Mount,
    add_unused,
    is_unused,
    mounts_of,
    new_volume,
    parse_mount,
    print_mount,
    source_of,
    volumes_of,
)
from ..volumes.space import check_growth
from ..volumes.volumes import (
    check_enabled,
    find_volume,
    free,
    has_feature,
    make_base,
    parse_volname,
    rename_volume,
    storage_path,
    volume_size,
)
from .config import MODIFIED, Change, check_digest, check_lock


@api("PUT /nodes/{node}/lxc/{vmid}/resize")
def resize(ctx: Ctx, p: dict[str, Any]) -> str:
    """Grow a volume and the file system on it."""
    node, vmid, name = p["node"], p["vmid"], p["disk"]
    requested = parse_size(p["size"].removeprefix("+"))
    if requested is None:
        raise PveError("invalid size string")

    def check() -> tuple[Container, Mount, int]:
        container = ctx.cluster.container_at(node, vmid)
        check_lock(container)
        check_digest(ctx, container, p.get("digest"))
        mount = parse_mount(ctx.sim.schema, name, container.conf.get(name))
        volid = mount["volume"]
        parts = split_volid(volid)
        if parts is None:
            raise PveError(f"unable to parse volume ID '{volid}'")
        owner = parse_volname(ctx.cluster.storage(parts[0]), parts[1]).vmid
        if owner != vmid:
            raise PveError(f"can't resize mount point owned by another container ({owner})")
        ctx.need(f"/storage/{parts[0]}", "Datastore.AllocateSpace")
        size = volume_size(ctx.cluster, node, volid)
        new = size + requested if p["size"].startswith("+") else requested
        if new < size:
            raise PveError("unable to shrink disk size")
        if new == size:
            raise PveError("disk is already at specified size")
        return container, mount, new

    check()

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            container, mount, size = check()
            store, volname = mount["volume"].split(":", 1)
            storage = ctx.cluster.storage(store)
            if parse_volname(storage, volname).fmt == "subvol" and storage.kind != "zfspool":
                raise PveError("can't resize this image format")
            volume = find_volume(ctx.cluster, node, mount["volume"])
            if volume is None:
                raise PveError(f"volume '{mount['volume']}' does not exist")
            path = storage_path(storage, volname)
            check_growth(storage, (node, path), volume, size, running=False, say=task.say)
            await task.work()
            volume.size = size
            mount["size"] = format_size(size)
            container.conf[name] = print_mount(ctx.sim.schema, name, mount)
            ctx.cluster.write(container)

    return ctx.task(node, "resize", vmid, work)


@api("POST /nodes/{node}/lxc/{vmid}/move_volume")
async def move_volume(ctx: Ctx, p: dict[str, Any]) -> str:
    """Move a volume to another storage, or hand it to another container."""
    storage, target = p.get("storage"), p.get("target-vmid")
    if storage and target:
        raise PveError("either set storage or target-vmid, but not both")
    if target:
        return _reassign(ctx, p)
    if not storage:
        text = "both 'storage' and 'target-vmid' missing, either needs to be set"
        raise ParamError({"storage": text, "target-vmid": text})
    return await _move(ctx, p)


async def _move(ctx: Ctx, p: dict[str, Any]) -> str:
    node, vmid, name = p["node"], p["vmid"], p["volume"]
    ctx.need(f"/storage/{p['storage']}", "Datastore.AllocateSpace")
    async with ctx.sim.locks.hold(vmid):
        container = ctx.cluster.container_at(node, vmid)
        mount = _check_move(ctx, container, p)
        container.conf["lock"] = "disk"
        ctx.cluster.write(container)

    async def work(task: Task) -> None:
        old, made = mount["volume"], ""
        try:
            made = copy_volume(ctx, container, vmid, mount, p["storage"], task)
            await task.transfer()
            mount["volume"] = make_base(ctx.cluster, node, made) if container.template else made
        except ApiError:
            if made:
                free(ctx.cluster, node, made)
            container.conf.pop("lock", None)
            ctx.cluster.write(container)
            raise
        container.conf[name] = print_mount(ctx.sim.schema, name, mount)
        if p.get("delete"):
            free(ctx.cluster, node, old)
        else:
            add_unused(container, old)
        container.conf.pop("lock", None)
        ctx.cluster.write(container)

    return ctx.task(node, "move_volume", vmid, work)


def _check_move(ctx: Ctx, container: Container, p: dict[str, Any]) -> Mount:
    check_lock(container)
    name = p["volume"]
    if container.run is not None:
        raise PveError("cannot move volumes of a running container")
    if is_unused(name):
        raise PveError(
            f"cannot move volume '{name}', only configured volumes can be moved to another storage"
        )
    mount = parse_mount(ctx.sim.schema, name, container.conf.get(name))
    kept = any(
        mount["volume"] in volumes_of(ctx.sim.schema, conf) for conf in container.snapshots.values()
    )
    if p.get("delete") and kept:
        raise PveError("you can't move a volume with snapshots and delete the source")
    check_digest(ctx, container, p.get("digest"))
    return mount


def copy_volume(
    ctx: Ctx, container: Container, vmid: int, mount: Mount, store: str, task: Task
) -> str:
    """Copy a volume of a container for a VMID; the size of the mount point follows."""
    source = source_of(mount["volume"])
    if source != "volume":
        raise PveError(f"cannot copy volumes of type {source}")
    size = volume_size(ctx.cluster, container.node, mount["volume"])
    storage = check_enabled(ctx.cluster, store, container.node)  # Storage.pm, activate_storage
    volid = new_volume(ctx.cluster, container.node, vmid, storage, size, task.say)
    mount["size"] = format_size(size)
    return volid


def _reassign(ctx: Ctx, p: dict[str, Any]) -> str:
    """Hand a mount point to another container of the node, or to another slot."""
    vmid, name, target_vmid = p["vmid"], p["volume"], p["target-vmid"]
    target_name = p.get("target-volume") or name
    ctx.acl.require_vm(ctx.who, target_vmid, None, ["VM.Config.Disk"])
    volid = _check_reassign(ctx, p, target_name)[2]["volume"]
    ctx.need(f"/storage/{volid.partition(':')[0]}", "Datastore.AllocateSpace")

    async def work(task: Task) -> None:
        async with AsyncExitStack() as held:
            for number in dict.fromkeys((vmid, target_vmid)):
                await held.enter_async_context(ctx.sim.locks.hold(number, log=task.say))
            source, target, mount = _check_reassign(ctx, p, target_name)
            await task.work()
            task.say(f"moving volume '{name}' from container '{vmid}' to '{target_vmid}'")
            mount["volume"] = rename_volume(ctx.cluster, source.node, mount["volume"], target_vmid)
            del source.conf[name]
            task.say(f"removing volume '{name}' from container '{vmid}' config")
            ctx.cluster.write(source)
            _receive(ctx, target, target_name, mount)
            task.say(f"target container '{target_vmid}' updated with '{target_name}'")

    ident = f"{vmid}-{name}>{target_vmid}-{target_name}"
    return ctx.task(p["node"], "move_volume", ident, work)


def _receive(ctx: Ctx, target: Container, name: str, mount: Mount) -> None:
    """Write the volume into the configuration of its new container."""
    if is_unused(name):
        target.conf[name] = mount["volume"]
    else:
        Change(ctx, target).run({name: print_mount(ctx.sim.schema, name, mount)}, [], [])
    ctx.cluster.write(target)


def _check_reassign(
    ctx: Ctx, p: dict[str, Any], target_name: str
) -> tuple[Container, Container, Mount]:
    vmid, name, target_vmid = p["vmid"], p["volume"], p["target-vmid"]
    _check_names(name, target_name)
    source, target = _pair(ctx, vmid, target_vmid)
    check_lock(source)
    check_lock(target)
    if source.template or target.template:
        raise PveError("Can't move volumes from or to template CT")
    for container, key in ((source, "digest"), (target, "target-digest")):
        if p.get(key) and p[key] != ctx.cluster.digest(container):
            raise PveError(f"Container {container.vmid}: {MODIFIED}")
    if name not in source.conf:
        raise PveError(f"volume '{name}' for container '{vmid}' does not exist")
    if target_name in target.conf:
        raise PveError(
            f"Target volume key '{target_name}' is already in use for container '{target_vmid}'"
        )
    mount = _check_movable(ctx, source, name)
    if not may_join(ctx, target_vmid, mount["volume"]):
        raise PveError(
            f"Cannot move volume on storage '{mount['volume'].partition(':')[0]}' to a replicated"
            " container - missing replication support"
        )
    return source, target, mount


def _check_movable(ctx: Ctx, source: Container, name: str) -> Mount:
    """The mount point, which another container can have."""
    schema = ctx.sim.schema
    mount = {"volume": source.conf[name]}
    if not is_unused(name):
        mount = parse_mount(schema, name, source.conf[name])
    volid = mount["volume"]
    if any(volid in volumes_of(schema, conf) for conf in source.snapshots.values()):
        raise PveError("Cannot move volume used by a snapshot to another container")
    parts = split_volid(volid)
    if parts is None or source_of(volid) != "volume":
        raise PveError("Cannot move a bindmount or device mount to another container")
    storage = ctx.cluster.storage(parts[0])
    if not has_feature(storage, "rename", parse_volname(storage, parts[1])):
        raise PveError("Storage does not support moving of this disk to another container")
    if source.run is not None and not is_unused(name):
        raise PveError(
            "Cannot move in-use volume while the source CT is running - detach or shutdown first"
        )
    return mount


def _check_names(name: str, target: str) -> None:
    if "rootfs" in (name, target):
        raise PveError("Cannot move to/from 'rootfs'")
    if is_unused(name) and not is_unused(target):
        raise PveError("Moving an unused volume to a used one is not possible")


def _pair(ctx: Ctx, vmid: int, target_vmid: int) -> tuple[Container, Container]:
    """The two containers, if they are on one node."""
    found = []
    for number in (vmid, target_vmid):
        container = ctx.cluster.containers.get(number)
        if container is None:
            raise PveError(f"could not find CT {number}")
        found.append(container)
    source, target = found
    if source.node != target.node:
        raise PveError(
            f"Both containers need to be on the same node ({source.node} != {target.node})"
        )
    return source, target


@api("POST /nodes/{node}/lxc/{vmid}/template")
async def template(ctx: Ctx, p: dict[str, Any]) -> None:
    """Make a template of a container: the answer is null, the task runs on without a UPID."""
    node, vmid = p["node"], p["vmid"]
    async with ctx.sim.locks.hold(vmid):
        container = ctx.cluster.container_at(node, vmid)
        check_lock(container)
        if container.snapshots:
            raise PveError("unable to create template, because CT contains snapshots")
        if container.template:
            raise PveError("you can't convert a template to a template")
        if container.run is not None:
            raise PveError("you can't convert a CT to template if the CT is running")

    async def work(task: Task) -> None:
        await task.work()
        to_template(ctx, container)

    ctx.task(node, "vztemplate", vmid, work)


def to_template(ctx: Ctx, container: Container) -> None:
    """Make base volumes of all volumes."""
    schema = ctx.sim.schema
    mounts = list(mounts_of(schema, container.conf))
    for _name, mount in mounts:
        if not _can_be_base(ctx, mount["volume"]):
            raise PveError(f"Template feature is not available for '{mount['volume']}'")
    for name, mount in mounts:
        mount["volume"] = make_base(ctx.cluster, container.node, mount["volume"])
        container.conf[name] = print_mount(schema, name, mount)
    container.conf["template"] = "1"
    ctx.cluster.write(container)


def _can_be_base(ctx: Ctx, volid: str) -> bool:
    parts = split_volid(volid)
    if parts is None:
        return False
    storage = ctx.cluster.storage(parts[0])
    return has_feature(storage, "template", parse_volname(storage, parts[1]))
