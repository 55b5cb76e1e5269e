"""ZFS pools, volume groups, thin pools and directories on disks of nodes.

Source: pve-storage, PVE/API2/Disks/{ZFS,LVM,LVMThin,Directory}.pm, and PVE/API2/Storage/Config.pm
(create_or_update, cleanup_storages_for_node). The refusal of devices of different sizes is that of
OpenZFS, cmd/zpool/zpool_vdev.c (get_replication), which tolerates 16 MiB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.api import Ctx, api
from ..core.state import NodeInfo
from ..core.tasks import Task
from ..errors import PveError
from ..schema.formats import split_list
from ..storage.definitions import make_storage
from .disks import Disk, clear, found, use_of

BASE = "/nodes/{node}/disks"
_RESERVED = 8 << 20
_EXTENT = 4 << 20
_FUZZ = 16 << 20
_MINIMUM = {
    "single": 1,
    "mirror": 2,
    "raid10": 4,
    "raidz": 3,
    "raidz2": 4,
    "raidz3": 5,
    "draid": 3,
    "draid2": 4,
    "draid3": 5,
}


def _here(ctx: Ctx, p: dict[str, Any]) -> NodeInfo:
    return ctx.cluster.nodes[p["node"]]


def _unused(node: NodeInfo, path: str) -> Disk:
    disk = found(node, path)
    if use_of(disk):
        raise PveError(f"device '{disk['devpath']}' is already in use\n")
    return disk


def _link(disk: Disk) -> str:
    """The first partition of a disk, by the path that the pool was created with."""
    if disk.get("by_id_link"):
        return f"{disk['by_id_link']}-part1"
    return _first(disk)


def _first(disk: Disk) -> str:
    path: str = disk["devpath"]
    return f"{path}p1" if path[-1].isdigit() else f"{path}1"


# -- the definition of a storage -----------------------------------------------------------------


def _define(ctx: Ctx, p: dict[str, Any], kind: str, config: dict[str, str], *verify: str) -> None:
    """Check the name of the storage, before the task, and again within it."""
    name, node, storages = p["name"], p["node"], ctx.cluster.storages
    known = storages.get(name)
    if known is None:
        return
    if known.available_on(node):
        raise PveError(f"Storage ID '{name}' already exists on node {node}\n")
    for key, value in [("type", kind), *((key, config[key]) for key in verify)]:
        there = known.kind if key == "type" else known.config.get(key)
        if there != value:
            raise PveError(
                f"Option '{key}' ({value}) does not match existing storage configuration"
                f" '{there}'\n"
            )


def _add(ctx: Ctx, p: dict[str, Any], kind: str, config: dict[str, str], *verify: str) -> None:
    """Create the storage, or add the node to the one that exists."""
    _define(ctx, p, kind, config, *verify)
    known = ctx.cluster.storages.get(p["name"])
    if known is not None:
        nodes = {*split_list(known.config["nodes"]), p["node"]}
        known.config["nodes"] = ",".join(sorted(nodes))
    else:
        new = make_storage(p["name"], kind, {**config, "nodes": p["node"]}, 1 << 40, 0)
        ctx.cluster.storages[p["name"]] = new
    ctx.cluster.revision += 1


def _forget(ctx: Ctx, node: str, kind: str, config: dict[str, str]) -> None:
    """Take the node out of the storages with these options, or remove them."""
    storages = ctx.cluster.storages
    for name, storage in list(storages.items()):
        options = {key: storage.config.get(key) for key in config}
        if storage.kind != kind or options != config or not storage.available_on(node):
            continue
        nodes = split_list(storage.config.get("nodes", "")) or list(ctx.cluster.nodes)
        rest = sorted({*nodes} - {node})
        if rest:
            storage.config["nodes"] = ",".join(rest)
        else:
            del storages[name]
    ctx.cluster.revision += 1


def _create(
    ctx: Ctx, p: dict[str, Any], worker: str, storage: tuple[Any, ...], change: Callable[[], None]
) -> str:
    """Start a task that creates something and the storage on it."""
    if p.get("add_storage"):
        ctx.need("/storage", "Datastore.Allocate")
        _define(ctx, p, *storage)

    async def work(task: Task) -> None:
        await task.work()
        change()
        if p.get("add_storage"):
            _add(ctx, p, *storage)

    return ctx.task(p["node"], worker, p["name"], work)


def _remove(
    ctx: Ctx,
    p: dict[str, Any],
    worker: tuple[str, str],
    storage: tuple[str, dict[str, str]],
    change: Callable[[], list[Disk]],
) -> str:
    """Start a task that removes something; `change` returns its disks."""
    if p.get("cleanup-config"):
        ctx.need("/storage", "Datastore.Allocate")

    async def work(task: Task) -> None:
        await task.work()
        disks = change()
        if p.get("cleanup-config"):
            _forget(ctx, p["node"], *storage)
        for disk in disks if p.get("cleanup-disks") else ():
            clear(disk)

    return ctx.task(p["node"], *worker, work)


# -- ZFS -----------------------------------------------------------------------------------------


@api(f"GET {BASE}/zfs")
def pools(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The pools of the node."""
    return [
        {
            "name": name,
            "size": pool["size"],
            "alloc": 1 << 20,
            "free": pool["size"] - (1 << 20),
            "frag": 0,
            "dedup": 1,
            "health": "ONLINE",
        }
        for name, pool in _here(ctx, p).on_disks["zfs"].items()
    ]


@api(f"GET {BASE}/zfs/{{name}}")
def pool(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The devices of a pool, as `zpool status -P` shows them."""
    entry = _here(ctx, p).on_disks["zfs"].get(p["name"])
    if entry is None:
        raise PveError(f"command '/sbin/zpool status -P {p['name']}' failed: exit code 1\n")
    disks = [_device(_link(found(_here(ctx, p), path))) for path in entry["devices"]]
    level = entry["raidlevel"]
    groups = disks
    if level in ("mirror", "raid10"):
        pairs = (
            [disks[at : at + 2] for at in range(0, len(disks), 2)] if level[0] == "r" else [disks]
        )
        groups = [_device(f"mirror-{at}", pair) for at, pair in enumerate(pairs)]
    elif level != "single":
        names = {"raidz": "raidz1-0", "draid": "draid1:1d:3c:0s-0"}
        word = f"{level}:1d:{len(disks)}c:0s-0" if level[0] == "d" else f"{level}-0"
        groups = [_device(names.get(level, word), disks)]
    return {
        "name": p["name"],
        "state": "ONLINE",
        "errors": "No known data errors",
        "leaf": 0,
        "children": [_device(p["name"], groups)],
    }


def _device(name: str, children: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    row = {"name": name, "state": "ONLINE", "read": 0, "write": 0, "cksum": 0, "msg": ""}
    return {**row, "leaf": 0, "children": children} if children else {**row, "leaf": 1}


@api(f"POST {BASE}/zfs")
def create_pool(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that creates a pool."""
    node, level = _here(ctx, p), p["raidlevel"]
    if p.get("draid-config") and not level.startswith("draid"):
        raise PveError("draid-config set without using dRAID level\n")
    paths = split_list(p["devices"])
    disks = [_unused(node, path) for path in paths]
    if p.get("add_storage"):
        _define(ctx, p, "zfspool", {"pool": p["name"]}, "pool")
    if p["name"] in node.on_disks["zfs"]:
        raise PveError(f"pool '{p['name']}' already exists on node '{p['node']}'\n")
    _check_count(p, len(disks))

    def change() -> None:
        for path in paths:
            _unused(node, path)
        _check_sizes(level, disks)
        entry = {"raidlevel": level, "devices": [disk["devpath"] for disk in disks]}
        node.on_disks["zfs"][p["name"]] = {**entry, "size": sum(disk["size"] for disk in disks)}
        for disk in disks:
            data = {"devpath": _first(disk), "size": disk["size"] - _RESERVED, "used": "ZFS"}
            last = {"devpath": f"{_first(disk)[:-1]}9", "size": _RESERVED, "used": "ZFS reserved"}
            disk.update(gpt=1, partitions=[data, last])

    storage = ("zfspool", {"pool": p["name"], "content": "rootdir,images"}, "pool")
    return _create(ctx, p, "zfscreate", storage, change)


def _check_count(p: dict[str, Any], count: int) -> None:
    level = p["raidlevel"]
    if level == "raid10" and count % 2:
        raise PveError("raid10 needs an even number of disks\n")
    if level == "single" and count > 1:
        raise PveError("please give only one disk for single disk mode\n")
    if count < _MINIMUM[level]:
        raise PveError(f"{level} needs at least {_MINIMUM[level]} disks\n")
    if level.startswith("draid"):
        config = dict(part.split("=") for part in split_list(p.get("draid-config") or ""))
        least = _MINIMUM[level] - 2 + sum(int(one) for one in config.values())
        if count < least:
            raise PveError(f"At least {least} disks needed for current dRAID config\n")


def _check_sizes(level: str, disks: list[Disk]) -> None:
    """Refuse devices of different sizes in one group."""
    width = 2 if level == "raid10" else len(disks)
    for at in range(0, len(disks), width):
        sizes = [disk["size"] for disk in disks[at : at + width]]
        if max(sizes) - min(sizes) > _FUZZ:
            raise PveError("command '/sbin/zpool create' failed: exit code 1\n")


@api(f"DELETE {BASE}/zfs/{{name}}")
def destroy_pool(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that destroys a pool."""
    node, name = _here(ctx, p), p["name"]

    def change() -> list[Disk]:
        entry = node.on_disks["zfs"].pop(name, None)
        if entry is None:
            raise PveError(f"command 'zpool destroy {name}' failed: exit code 1\n")
        return [found(node, path) for path in entry["devices"]]

    return _remove(ctx, p, ("zfsremove", name), ("zfspool", {"pool": name}), change)


# -- LVM -----------------------------------------------------------------------------------------


def _volume_device(node: NodeInfo, path: str) -> dict[str, Any]:
    for disk in node.disks.values():
        for part in (disk, *disk["partitions"]):
            if part["devpath"] == path:
                return part
    raise PveError("not a valid block device\n")


def _disk_with(node: NodeInfo, path: str) -> Disk:
    return next(
        disk
        for disk in node.disks.values()
        if path in [part["devpath"] for part in (disk, *disk["partitions"])]
    )


@api(f"GET {BASE}/lvm")
def groups(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The volume groups with their physical volumes."""
    node = _here(ctx, p)
    rows = []
    for name, group in sorted(node.on_disks["lvm"].items()):
        volumes = []
        for path in group["pvs"]:
            size = _volume_device(node, path)["size"] // _EXTENT * _EXTENT - _EXTENT
            free = 0 if group["lvcount"] else size
            volumes.append({"name": path, "size": size, "free": free, "leaf": 1})
        total = {key: sum(one[key] for one in volumes) for key in ("size", "free")}
        row = {"name": name, **total, "lvcount": group["lvcount"], "leaf": 0}
        rows.append({**row, "children": volumes})
    return {"leaf": 0, "children": rows}


def _make_group(node: NodeInfo, p: dict[str, Any]) -> Disk:
    disk = _unused(node, p["device"])
    if p["name"] in node.on_disks["lvm"]:
        raise PveError(
            f"volume group with name '{p['name']}' already exists on node '{p['node']}'\n"
        )
    node.on_disks["lvm"][p["name"]] = {"pvs": [disk["devpath"]], "lvcount": 0}
    disk["used"] = "LVM"
    return disk


@api(f"POST {BASE}/lvm")
def create_group(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that creates a volume group."""
    node = _here(ctx, p)
    _unused(node, p["device"])
    config = {"vgname": p["name"], "content": "rootdir,images", "shared": "0"}

    def change() -> None:
        _make_group(node, p)

    return _create(ctx, p, "lvmcreate", ("lvm", config, "vgname"), change)


@api(f"DELETE {BASE}/lvm/{{name}}")
def remove_group(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that removes a volume group, with its logical volumes."""
    node, name = _here(ctx, p), p["name"]

    def change() -> list[Disk]:
        if name not in node.on_disks["lvm"]:
            raise PveError(f"no such volume group '{name}'\n")
        disks = [_disk_with(node, path) for path in node.on_disks["lvm"].pop(name)["pvs"]]
        for key, thin in list(node.on_disks["lvmthin"].items()):
            if thin["vg"] == name:
                del node.on_disks["lvmthin"][key]
        for disk in disks:
            disk["used"] = None
        return disks

    return _remove(ctx, p, ("lvmremove", name), ("lvm", {"vgname": name}), change)


@api(f"GET {BASE}/lvmthin")
def thin_pools(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The thin pools of all volume groups."""
    return [
        {**thin, "lv_type": "t", "used": 0, "metadata_size": 1 << 30, "metadata_used": 1 << 20}
        for thin in _here(ctx, p).on_disks["lvmthin"].values()
    ]


@api(f"POST {BASE}/lvmthin")
def create_thin(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that creates a volume group and a thin pool of the same name in it."""
    node, name = _here(ctx, p), p["name"]
    _unused(node, p["device"])

    def change() -> None:
        disk = _make_group(node, p)
        size = disk["size"] - (128 << 20)
        metadata = min(max(size // 100, 1 << 30), 16 << 30)
        if size <= 2 * metadata:
            raise PveError("command '/sbin/lvcreate' failed: exit code 3\n")
        node.on_disks["lvm"][name]["lvcount"] = 1
        row = {"lv": name, "vg": name, "lv_size": size - 2 * metadata}
        node.on_disks["lvmthin"][f"{name}/{name}"] = row
        ctx.cluster.thin_pools.add(f"{name}/{name}")

    config = {"vgname": name, "thinpool": name, "content": "rootdir,images"}
    return _create(ctx, p, "lvmthincreate", ("lvmthin", config, "vgname", "thinpool"), change)


@api(f"DELETE {BASE}/lvmthin/{{name}}")
def remove_thin(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that removes a thin pool; its volume group stays, unless disks are wiped."""
    node, name, group = _here(ctx, p), p["name"], p["volume-group"]

    def change() -> list[Disk]:
        if node.on_disks["lvmthin"].pop(f"{group}/{name}", None) is None:
            raise PveError(f"no such thin pool {group}/{name}\n")
        entry = node.on_disks["lvm"][group]
        entry["lvcount"] -= 1
        if not p.get("cleanup-disks"):
            return []
        if entry["lvcount"] > 0:
            raise PveError(f"volume group '{group}' still in use\n")
        del node.on_disks["lvm"][group]
        return [_disk_with(node, path) for path in entry["pvs"]]

    storage = ("lvmthin", {"vgname": group, "thinpool": name})
    return _remove(ctx, p, ("lvmthinremove", f"{group}-{name}"), storage, change)


# -- directories ---------------------------------------------------------------------------------


@api(f"GET {BASE}/directory")
def directories(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The mount units of the node."""
    return [
        {
            "unitfile": f"/etc/systemd/system/mnt-pve-{name}.mount",
            "path": f"/mnt/pve/{name}",
            "device": f"/dev/disk/by-uuid/{entry['uuid']}",
            "type": entry["type"],
            "options": "defaults",
        }
        for name, entry in _here(ctx, p).on_disks["directory"].items()
    ]


@api(f"POST {BASE}/directory")
def create_directory(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that makes a file system and mounts it."""
    node, name, kind = _here(ctx, p), p["name"], p.get("filesystem") or "ext4"
    _unused(node, p["device"])
    unit = f"/etc/systemd/system/mnt-pve-{name}.mount"
    if name in node.on_disks["directory"]:
        raise PveError(f"a systemd mount unit already exists: {unit}\n")

    def change() -> None:
        disk = _unused(node, p["device"])
        part = {"devpath": _first(disk), "size": disk["size"], "used": kind, "mounted": True}
        disk.update(gpt=1, partitions=[part])
        entry = {"type": kind, "uuid": ctx.cluster.uuid(), "disk": disk["devpath"]}
        node.on_disks["directory"][name] = entry

    content = "rootdir,images,iso,backup,vztmpl,snippets"
    config = {"path": f"/mnt/pve/{name}", "content": content, "is_mountpoint": "1"}
    return _create(ctx, p, "dircreate", ("dir", config, "path"), change)


@api(f"DELETE {BASE}/directory/{{name}}")
def remove_directory(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that unmounts a directory and removes its unit."""
    node, name = _here(ctx, p), p["name"]

    def change() -> list[Disk]:
        entry = node.on_disks["directory"].pop(name, None)
        if entry is None:
            unit = f"mnt-pve-{name}.mount"
            raise PveError(f"command 'systemctl stop {unit}' failed: exit code 5\n")
        disk = node.disks[entry["disk"]]
        for part in disk["partitions"]:
            part["mounted"] = False
        return [disk]

    storage = ("dir", {"path": f"/mnt/pve/{name}"})
    return _remove(ctx, p, ("dirremove", name), storage, change)
