"""Snapshots of containers: configurations that were saved with the state of the volumes.

Source: pve-container, API2/LXC/Snapshot.pm; pve-guest-common, AbstractConfig.pm (snapshot_create,
snapshot_delete, snapshot_rollback).
"""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..core.state import Container
from ..core.tasks import Task
from ..errors import ApiError, PveError
from ..volumes.drives import split_volid
from ..volumes.mounts import add_unused, in_use, is_unused, mounts_of, source_of, volumes_of
from ..volumes.volumes import find_volume, has_feature, parse_volname
from .config import check_lock, snapshot_of, typed
from .power import start_container, stop

BASE = "/nodes/{node}/lxc/{vmid}/snapshot"
# Options that a snapshot does not copy from the configuration.
_NOT_COPIED = frozenset({"snapstate", "snaptime", "lock", "description"})


def feature_of(ctx: Ctx, feature: str, conf: dict[str, str], snapshot: str | None = None) -> bool:
    """Whether all storages can do that with the volumes (LXC/Config.pm, has_feature)."""
    for _name, mount in mounts_of(ctx.sim.schema, conf):
        parts = split_volid(mount["volume"])
        if source_of(mount["volume"]) != "volume" or parts is None:
            return False
        storage = ctx.cluster.storage(parts[0])
        parsed = parse_volname(storage, parts[1])
        if not has_feature(storage, feature, parsed, snapshot, container=True):
            return False
    return True


@api("GET /nodes/{node}/lxc/{vmid}/feature")
def feature(ctx: Ctx, p: dict[str, Any]) -> dict[str, int]:
    """Whether the container can be copied, cloned or saved."""
    container = ctx.cluster.container_at(p["node"], p["vmid"])
    snapshot = p.get("snapname")
    conf = snapshot_of(container, snapshot) if snapshot else container.conf
    return {"hasFeature": int(feature_of(ctx, p["feature"], conf, snapshot))}


@api(f"GET {BASE}")
def listing(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The snapshots and, last, the present state."""
    container = ctx.cluster.container_at(p["node"], p["vmid"])
    rows: list[dict[str, Any]] = []
    for name, kept in container.snapshots.items():
        description = kept.get("description", "")
        row: dict[str, Any] = {
            "name": name,
            "snaptime": int(kept.get("snaptime", "0")),
            "description": f"{description}\n" if description else "",
        }
        for key in ("parent", "snapstate"):
            if kept.get(key):
                row[key] = kept[key]
        rows.append(row)
    current: dict[str, Any] = {
        "name": "current",
        "digest": ctx.cluster.digest(container),
        "running": int(container.run is not None),
        "description": "You are here!",
    }
    if container.conf.get("parent"):
        current["parent"] = container.conf["parent"]
    return [*rows, current]


@api(f"GET {BASE}/{{snapname}}")
def index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The subdirectories of a snapshot."""
    return [{"cmd": "rollback"}, {"cmd": "config"}]


@api(f"GET {BASE}/{{snapname}}/config")
def saved_config(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The configuration that the snapshot saved."""
    container = ctx.cluster.container_at(p["node"], p["vmid"])
    return typed(ctx, snapshot_of(container, p["snapname"]))


@api(f"PUT {BASE}/{{snapname}}/config")
async def describe(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the description of a snapshot."""
    if p.get("description") is None:
        return
    async with ctx.sim.locks.hold(p["vmid"]):
        container = ctx.cluster.container_at(p["node"], p["vmid"])
        check_lock(container)
        snapshot_of(container, p["snapname"])["description"] = p["description"]
        ctx.cluster.write(container)


@api(f"POST {BASE}")
def create(ctx: Ctx, p: dict[str, Any]) -> str:
    """Take a snapshot; PVE removes one that fails (AbstractConfig.pm, snapshot_create)."""
    node, vmid, name = p["node"], p["vmid"], p["snapname"]
    if name in ("current", "vzdump"):
        raise PveError(f"unable to use snapshot name '{name}' (reserved name)")

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            container = ctx.cluster.container_at(node, vmid)
            _prepare(ctx, container, name, p.get("description"))
        try:
            await task.work()
        except ApiError:
            task.say("snapshot create failed: starting cleanup")
            async with ctx.sim.locks.hold(vmid, log=task.say):
                _forget(ctx, container, name)
            raise
        async with ctx.sim.locks.hold(vmid, log=task.say):
            _commit(ctx, container, name)

    return ctx.task(node, "vzsnapshot", vmid, work)


def _commit(ctx: Ctx, container: Container, name: str) -> None:
    for volid in volumes_of(ctx.sim.schema, container.snapshots[name]):
        volume = find_volume(ctx.cluster, container.node, volid)
        if volume is not None:
            volume.snapshots[name] = volume.size
    container.snapshots[name].pop("snapstate", None)
    container.conf.pop("lock", None)
    container.conf["parent"] = name
    ctx.cluster.write(container)


def _prepare(ctx: Ctx, container: Container, name: str, description: str | None) -> None:
    if container.template:
        raise PveError("you can't take a snapshot if it's a template")
    check_lock(container)
    if name in container.snapshots:
        raise PveError(f"snapshot name '{name}' already used")
    if not feature_of(ctx, "snapshot", container.conf):
        raise PveError("snapshot feature is not available")
    for other in container.snapshots.values():
        if other.get("parent") == name:
            del other["parent"]
    taken = _copied(container.conf)
    taken["snapstate"] = "prepare"
    taken["snaptime"] = str(int(ctx.cluster.now()))
    if description:
        taken["description"] = description
    container.snapshots[name] = taken
    container.conf["lock"] = "snapshot"
    ctx.cluster.write(container)


def _copied(conf: dict[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in conf.items()
        if name not in _NOT_COPIED and not is_unused(name)
    }


@api(f"DELETE {BASE}/{{snapname}}")
def delete(ctx: Ctx, p: dict[str, Any]) -> str:
    """Delete a snapshot; its children then depend on its parent."""
    node, vmid, name = p["node"], p["vmid"], p["snapname"]

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            container = ctx.cluster.container_at(node, vmid)
            taken = snapshot_of(container, name)
            check_lock(container)
            if container.template:
                raise PveError("you can't delete a snapshot if vm is a template")
            container.conf["lock"] = "snapshot-delete"
            taken["snapstate"] = "delete"
            ctx.cluster.write(container)
        await task.work()
        async with ctx.sim.locks.hold(vmid, log=task.say):
            _forget(ctx, container, name)

    return ctx.task(node, "vzdelsnapshot", vmid, work)


def _forget(ctx: Ctx, container: Container, name: str) -> None:
    taken = container.snapshots.pop(name)
    parent = taken.get("parent")
    for conf in (container.conf, *container.snapshots.values()):
        if conf.get("parent") == name:
            del conf["parent"]
            if parent:
                conf["parent"] = parent
    container.conf.pop("lock", None)
    for volid in volumes_of(ctx.sim.schema, taken):
        volume = find_volume(ctx.cluster, container.node, volid)
        if volume is not None:
            volume.snapshots.pop(name, None)
        if volume is not None and not in_use(ctx.sim.schema, container, volid):
            add_unused(container, volid)
    ctx.cluster.write(container)


@api(f"POST {BASE}/{{snapname}}/rollback")
def rollback(ctx: Ctx, p: dict[str, Any]) -> str:
    """Go back to a snapshot; a running container is stopped for it."""
    node, vmid, name = p["node"], p["vmid"], p["snapname"]

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            container = ctx.cluster.container_at(node, vmid)
            if container.template:
                raise PveError("you can't rollback if vm is a template")
            taken = snapshot_of(container, name)
            if taken.get("snapstate"):
                state = taken["snapstate"]
                raise PveError(f"unable to rollback to incomplete snapshot (snapstate = {state})")
            check_lock(container)
            _check_newest(ctx, container, name)
            if container.run is not None:
                stop(ctx, container)
            container.conf["lock"] = "rollback"
            ctx.cluster.write(container)
        await task.work()
        async with ctx.sim.locks.hold(vmid, log=task.say):
            _restore(ctx, container, name)
        if p.get("start"):
            start_container(ctx, node, vmid)

    return ctx.task(node, "vzrollback", vmid, work)


def _check_newest(ctx: Ctx, container: Container, name: str) -> None:
    """A ZFS volume goes back to its newest snapshot only."""
    for volid in volumes_of(ctx.sim.schema, container.snapshots[name]):
        volume = find_volume(ctx.cluster, container.node, volid)
        is_linear = ctx.cluster.storage(volid.partition(":")[0]).kind == "zfspool"
        if is_linear and volume is not None and list(volume.snapshots)[-1:] != [name]:
            raise PveError(f"can't rollback, '{name}' is not most recent snapshot on '{volid}'")


def _restore(ctx: Ctx, container: Container, name: str) -> None:
    schema, taken = ctx.sim.schema, container.snapshots[name]
    kept = volumes_of(schema, taken)
    gone = [volid for volid in volumes_of(schema, container.conf) if volid not in kept]
    new = {key: value for key, value in container.conf.items() if is_unused(key)}
    if "description" in container.conf:
        new["description"] = container.conf["description"]
    new.update(_copied(taken))
    new["parent"] = name
    container.conf = {
        key: value for key, value in new.items() if not (is_unused(key) and value in kept)
    }
    for volid in gone:
        add_unused(container, volid)
    for volid in kept:
        volume = find_volume(ctx.cluster, container.node, volid)
        if volume is not None and name in volume.snapshots:
            volume.size = volume.snapshots[name]
    container.pending, container.pending_delete = {}, {}
    ctx.cluster.write(container)
