"""The local volumes of a machine that moves: finding them, the obstacles to a move, and moving
them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ..core.api import Ctx
from ..core.state import Vm
from ..core.tasks import Task
from ..errors import PveError
from ..schema.units import parse_size
from ..volumes.drives import (
    drives_of,
    is_cdrom,
    is_cloudinit,
    parse_drive,
    print_drive,
    split_volid,
)
from ..volumes.space import check_room
from ..volumes.volumes import (
    base_in_use,
    check_enabled,
    default_format,
    find_volume,
    formats,
    is_path_based,
    next_disk_name,
    own_key,
    parse_volname,
    storage_path,
)

_MIGRATABLE = ("dir", "btrfs", "zfspool", "lvmthin", "lvm")
_FOUND = {
    "attached": "found local disk '{}' (attached)",
    "unused": "found local disk '{}' (unused)",
    "snapshot": "found local disk '{}' (referenced by snapshot(s))",
    "pending": "found local disk '{}' (pending change)",
    "generated": "found generated disk '{}' (in current VM config)",
}


@dataclass(slots=True)
class Local:
    """A volume on a storage that the other nodes do not see, and the places of its name."""

    volid: str
    drive: str = ""
    size: int | None = None
    cdrom: bool = False
    cloudinit: bool = False
    memory: bool = False
    attached: bool = False
    unused: bool = False
    pending: bool = False
    snapshots: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def ref(self) -> str:
        """How the log calls it."""
        if self.cloudinit:
            return "generated"
        if self.attached:
            return "attached"
        if self.unused:
            return "unused"
        return "snapshot" if self.snapshots else "pending"


def stamp(ctx: Ctx, line: str) -> str:
    """A line of a migration's log begins with the time."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(ctx.cluster.now()))} {line}"


def _moves(ctx: Ctx, volid: str, remote: bool) -> bool:
    """Whether the other node cannot see the volume; another cluster sees none of them."""
    parts = split_volid(volid)
    if parts is None or parts[0] not in ctx.cluster.storages:
        return False
    return remote or not ctx.cluster.storages[parts[0]].shared


def local_volumes(ctx: Ctx, vm: Vm, *, remote: bool = False) -> dict[str, Local]:
    """The volumes to copy by name, including volumes of snapshots and pending changes; with
    `remote`, volumes of shared storages too.
    """
    found: dict[str, Local] = {}
    schema = ctx.sim.schema
    for place, conf in (("", vm.conf), ("pending", vm.pending), *vm.snapshots.items()):
        for name, drive in drives_of(schema, conf, unused=True):
            volid = drive.get("file", "")
            if not _moves(ctx, volid, remote):
                continue
            local = found.setdefault(volid, Local(volid))
            if not name.startswith("unused"):
                local.drive = name
            local.size = local.size or parse_size(drive.get("size", ""))
            local.cdrom = local.cdrom or is_cdrom(drive, no_cloudinit=True)
            local.cloudinit = local.cloudinit or is_cloudinit(drive)
            if place == "pending":
                local.pending = True
            elif place:
                local.snapshots.append(place)
            elif name.startswith("unused"):
                local.unused = True
            else:
                local.attached = True
        state = conf.get("vmstate", "")
        if place and _moves(ctx, state, remote):
            local = found.setdefault(state, Local(state))
            local.memory = True
            local.snapshots.append(place)
    return found


def _fault(ctx: Ctx, vm: Vm, local: Local, remote: bool) -> str:
    """The reason why the volume cannot move (QemuMigrate.pm, scan_local_volumes)."""
    store, name = local.volid.split(":", 1)
    storage = ctx.cluster.storages[store]
    if local.cdrom:
        return "local cdrom image"
    if local.cloudinit:
        return ""
    volume = find_volume(ctx.cluster, vm.node, local.volid)
    if volume is None:
        return f"volume '{local.volid}' does not exist"
    if volume.vmid is not None and volume.vmid != vm.vmid:
        return f"owned by other VM (owner = VM {volume.vmid})"
    if local.memory:
        return ""
    if local.snapshots and vm.run is not None:
        return "online storage migration not possible if non-replicated snapshot exists"
    if local.snapshots and remote:
        return "remote migration with snapshots not supported yet"
    if local.snapshots and not (storage.kind == "zfspool" or volume.fmt == "qcow2"):
        return "non-migratable snapshot exists"
    if base_in_use(ctx.cluster, storage, vm.node, own_key(storage, name)):
        return "referenced by linked clone(s)"
    return ""


def scan(ctx: Ctx, vm: Vm, with_local: bool, task: Task, *, remote: bool = False) -> list[Local]:
    """Find the volumes to move; a volume that cannot move is logged, and ends the migration."""
    volumes = local_volumes(ctx, vm, remote=remote)
    for local in volumes.values():
        local.error = _fault(ctx, vm, local, remote)
    for volid in sorted(volumes):
        local = volumes[volid]
        if local.ref == "attached" and vm.run is not None and not with_local:
            local.error = "can't live migrate attached local disks without with-local-disks option"
        task.say(stamp(ctx, _FOUND[local.ref].format(volid)))
    faulty = [local for local in volumes.values() if local.error]
    for local in faulty:
        task.say(stamp(ctx, f"WARNING: can't migrate local disk '{local.volid}': {local.error}"))
    reason = "can't migrate VM - check log" if faulty else ""
    for volid in [] if faulty else sorted(volumes):
        store, _dummy, name = volid.partition(":")
        storage = ctx.cluster.storages[store]
        base = parse_volname(storage, name).base
        if storage.kind not in _MIGRATABLE and not remote:
            reason = f"can't migrate '{volid}' - storage type '{storage.kind}' not supported"
        elif base:
            reason = f"can't migrate '{volid}' as it's a clone of '{base}'"
    if reason:
        raise PveError(f"Problem found while scanning volumes - {reason}")
    return [volumes[volid] for volid in sorted(volumes)]


async def carry(
    ctx: Ctx, vm: Vm, target: str, targets: dict[str, str], locals_: list[Local], task: Task
) -> None:
    """Copy the volumes to the target node and write their new names into the configuration."""
    if not locals_:
        await task.work()
        return
    if vm.run is None:
        task.say(stamp(ctx, "copying local disk images"))
    renamed: dict[str, str] = {}
    for local in locals_:
        volume = find_volume(ctx.cluster, vm.node, local.volid)
        await task.copy(volume.size if volume else 0, 1 / len(locals_))
        renamed[local.volid] = new = _put_over(ctx, vm, target, targets, local, task)
        task.say(stamp(ctx, f"successfully imported '{new}'"))
        task.say(stamp(ctx, f"volume '{local.volid}' is '{new}' on the target"))
    for conf in (vm.conf, vm.pending, *vm.snapshots.values()):
        for name, drive in list(drives_of(ctx.sim.schema, conf, unused=True)):
            new = renamed.get(drive.get("file", ""), "")
            if not new or new == drive["file"]:
                continue
            if name.startswith("unused"):
                conf[name] = new
            else:
                fresh = parse_drive(ctx.sim.schema, name, conf[name])
                fresh["file"] = new
                if "format" in fresh:
                    del fresh["format"]
                conf[name] = print_drive(ctx.sim.schema, name, fresh)
        if conf.get("vmstate") in renamed:
            conf["vmstate"] = renamed[conf["vmstate"]]


def _put_over(
    ctx: Ctx, vm: Vm, target: str, targets: dict[str, str], local: Local, task: Task
) -> str:
    """Move one volume.

    A name that is taken over there, or of another kind of storage, is exchanged for a free one.
    """
    cluster = ctx.cluster
    store, name = local.volid.split(":", 1)
    goal = targets.get(store, targets.get("", store))
    source, other = (
        cluster.storage(store),
        check_enabled(cluster, store if goal == "1" else goal, target),
    )
    key = own_key(source, name)
    volume = source.on(vm.node).get(key)
    if volume is None:
        raise PveError(f"volume '{local.volid}' does not exist")
    fmt = volume.fmt if volume.fmt in formats(other) else default_format(other)
    same_form = is_path_based(source) == is_path_based(other) and fmt == volume.fmt
    new = key
    if not same_form or key in other.on(target):
        special = local.cloudinit or local.memory
        plain = key.rpartition("/")[2].rpartition(".")[0] or key if is_path_based(source) else key
        suffix = f".{fmt}" if is_path_based(other) else ""
        fresh = f"{plain}{suffix}" if special else next_disk_name(other, target, vm.vmid, fmt)
        new = f"{vm.vmid}/{fresh}" if is_path_based(other) else fresh
    try:
        check_room(
            other,
            target,
            storage_path(other, new),
            fmt,
            volume.virtual_size or volume.size,
            task.say,
        )
    except PveError as error:
        what = f"storage migration for '{local.volid}' to storage '{other.name}'"
        raise PveError(f"{what} failed - {error.text}") from None
    source.on(vm.node).pop(key, None)
    volume.name, volume.fmt = new, fmt
    other.on(target)[new] = volume
    return f"{other.name}:{new}"
