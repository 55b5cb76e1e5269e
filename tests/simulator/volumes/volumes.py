"""Volumes on storages: names, formats, abilities of each kind of storage, allocating, cloning,
freeing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.state import PATH_KINDS, Cluster, Storage, Vm, Volume
from ..errors import ApiError, PveError
from .drives import drives_of, is_cdrom, split_volid
from .space import Say, check_room, has_chains, metadata

if TYPE_CHECKING:
    from ..schema.definition import Schema

DIR_FORMATS = ("raw", "qcow2", "vmdk")
CONTENT_DIRS = {
    "iso": "template/iso",
    "vztmpl": "template/cache",
    "backup": "dump",
    "snippets": "snippets",
    "import": "import",
}
_OWNED = re.compile(r"(vm|base|subvol|basevol)-(\d+)-\S+\Z")
_PBS = re.compile(r"backup/([^\s_/]+)/(\d+)/\d+-\d+-\d+T\d+:\d+:\d+Z\Z")
_DISK_NUMBER = re.compile(r"(?:vm|base|subvol|basevol)-(\d+)-disk-(\d+)")
LINKED_BY_NAME = frozenset({"rbd", "zfspool"})  # a linked clone's volume ID names its base


# Subvolumes have no size of their own; containers use them.
_ALL_FORMATS = (*DIR_FORMATS, "subvol")
_BTRFS: dict[str, dict[str, tuple[str, ...]]] = {
    "snapshot": dict.fromkeys(("current", "snap"), ("qcow2", "raw", "subvol")),
    "clone": {"base": _ALL_FORMATS, "current": ("raw",), "snap": ("raw",)},
    "template": {"current": _ALL_FORMATS},
    "copy": {"base": _ALL_FORMATS, "current": _ALL_FORMATS, "snap": ("qcow2", "raw", "subvol")},
    "rename": {"current": DIR_FORMATS},
}


@dataclass(slots=True)
class Parsed:
    """The parts of a volume name."""

    content: str
    name: str
    vmid: int | None = None
    base: str | None = None
    fmt: str = "raw"
    is_base: bool = False


def is_path_based(storage: Storage) -> bool:
    """Whether volumes are files under a directory."""
    return storage.kind in PATH_KINDS


def default_format(storage: Storage) -> str:
    """The format of a new disk when none is asked for."""
    if is_path_based(storage):
        return storage.config.get("format", "raw")
    return "qcow2" if has_chains(storage) else "raw"


def formats(storage: Storage) -> tuple[str, ...]:
    """The formats a disk can have there."""
    if is_path_based(storage):
        return DIR_FORMATS
    return ("raw", "qcow2") if has_chains(storage) else ("raw",)


def has_subvolumes(storage: Storage) -> bool:
    """Whether a container can have a directory or a file system without a size there."""
    return is_path_based(storage) or storage.kind == "zfspool"


def _parse_owned(name: str) -> tuple[int, bool] | None:
    found = _OWNED.match(name)
    return (int(found[2]), found[1].startswith("base")) if found else None


def parse_volname(storage: Storage, name: str) -> Parsed:
    """The parts of the name of a volume on that storage; raises PveError when it is none."""
    kind, slash, rest = name.partition("/")
    if slash and kind in CONTENT_DIRS and is_path_based(storage):
        return _parse_file(kind, rest, name)
    if is_path_based(storage):
        return _parse_image(name)
    if storage.kind == "pbs":
        return _parse_pbs(name)
    base: str | None = None
    own = name
    if slash and storage.kind in LINKED_BY_NAME:
        base, own = kind, rest
    owner = _parse_owned(own)
    if owner is None:
        label = {"lvmthin": "lvm", "lvm": "lvm", "zfspool": "zfs", "rbd": "rbd"}.get(
            storage.kind, storage.kind
        )
        raise PveError(f"unable to parse {label} volume name '{name}'")
    fmt = "qcow2" if storage.kind == "lvm" and own.endswith(".qcow2") else "raw"
    if own.startswith(("subvol-", "basevol-")):
        fmt = "subvol"
    return Parsed("images", own, owner[0], base, fmt, owner[1])


def _parse_pbs(name: str) -> Parsed:
    """A snapshot of a Proxmox Backup Server (pve-storage, PBSPlugin.pm, parse_volname)."""
    found = _PBS.match(name)
    if not found:
        raise PveError(f"unable to parse PBS volume name '{name}'")
    return Parsed("backup", name, int(found[2]), fmt=f"pbs-{found[1]}")


def _parse_file(kind: str, rest: str, name: str) -> Parsed:
    extension = rest.rpartition(".")[2].lower()
    if kind == "iso":
        return Parsed(kind, rest, fmt="iso")
    if kind == "vztmpl":
        return Parsed(
            kind,
            rest,
            fmt={"gz": "tgz", "xz": "txz", "zst": "tzst", "bz2": "tbz2"}.get(extension, extension),
        )
    if kind == "snippets":
        return Parsed(kind, rest, fmt="snippet")
    if kind == "backup":
        owner = re.match(r"vzdump-(?:qemu|lxc|openvz)-(\d+)-", rest)
        fmt = re.search(r"\.((?:vma|tar|tgz)(?:\.(?:gz|lzo|zst|bz2))?)\Z", rest)
        return Parsed(kind, rest, int(owner[1]) if owner else None, fmt=fmt[1] if fmt else "raw")
    if extension in ("qcow2", "raw", "vmdk", "ova", "ovf"):
        return Parsed(kind, rest, fmt=extension)
    raise PveError(f"unable to parse directory volume name '{name}'")


def _parse_image(name: str) -> Parsed:
    parts = name.split("/")
    if len(parts) not in (2, 4) or not parts[-2].isdigit():
        raise PveError(f"unable to parse directory volume name '{name}'")
    file = parts[-1]
    stem, dot, extension = file.rpartition(".")
    if not dot or extension not in (*DIR_FORMATS, "subvol"):
        raise PveError(f"unable to parse volume filename '{file}'")
    base = f"{parts[0]}/{parts[1]}" if len(parts) == 4 else None
    return Parsed(
        "images", f"{parts[-2]}/{file}", int(parts[-2]), base, extension, stem.startswith("base-")
    )


def storage_path(storage: Storage, name: str) -> str:
    """The path of the volume in the node's filesystem."""
    if not is_path_based(storage):
        pool = storage.config.get("vgname") or storage.config.get("pool") or storage.name
        own = name.rpartition("/")[2]
        return f"rbd:{pool}/{own}" if storage.kind == "rbd" else f"/dev/{pool}/{own}"
    root = storage.config.get("path") or f"/mnt/pve/{storage.name}"
    kind, slash, rest = name.partition("/")
    if slash and kind in CONTENT_DIRS:
        return f"{root}/{CONTENT_DIRS[kind]}/{rest}"
    parts = name.split("/")
    return f"{root}/images/{'/'.join(parts[-2:])}"


def has_feature(
    storage: Storage,
    feature: str,
    parsed: Parsed,
    snapshot: str | None = None,
    *,
    container: bool = False,
) -> bool:
    """Whether the storage can do that with the volume (or with a snapshot of it).

    A linked clone on a directory is a qcow2 image, which a container cannot have (pve-storage:
    Plugin.pm and BTRFSPlugin.pm, volume_has_feature).
    """
    kind = "snap"
    if not snapshot:
        kind = "base" if parsed.is_base else "current"
    if storage.kind == "btrfs":
        return parsed.fmt in _BTRFS.get(feature, {}).get(kind, ())
    if is_path_based(storage):
        if container and feature == "clone":
            return False
        table: dict[str, dict[str, tuple[str, ...]]] = {
            "snapshot": {"current": ("qcow2",), "snap": ("qcow2",)},
            "clone": {"base": DIR_FORMATS},
            "template": {"current": (*DIR_FORMATS, "subvol")},
            "copy": {"base": DIR_FORMATS, "current": DIR_FORMATS, "snap": ("qcow2",)},
            "rename": {"current": DIR_FORMATS},
        }
        return parsed.fmt in table.get(feature, {}).get(kind, ())
    if parsed.fmt == "qcow2":  # on a logical volume
        chained = {
            "copy": ("base", "current", "snap"),
            "rename": ("current",),
            "snapshot": ("current", "snap"),
        }
        return kind in chained.get(feature, ())
    block = {
        "lvmthin": {
            "snapshot": {"current"},
            "clone": {"base", "snap"},
            "template": {"current"},
            "copy": {"base", "current", "snap"},
            "rename": {"current"},
        },
        "rbd": {
            "snapshot": {"current", "snap"},
            "clone": {"base", "snap"},
            "template": {"current"},
            "copy": {"base", "current", "snap"},
            "rename": {"current"},
        },
        "zfspool": {
            "snapshot": {"current", "snap"},
            "clone": {"base"},
            "template": {"current"},
            "copy": {"base", "current"},
            "rename": {"current"},
        },
        "lvm": {"copy": {"base", "current"}, "rename": {"current"}},
    }
    return kind in block.get(storage.kind, {}).get(feature, set())


def check_enabled(cluster: Cluster, name: str, node: str) -> Storage:
    """The storage, if it is switched on and there on the node."""
    storage = cluster.storage(name)
    if storage.disabled:
        raise PveError(f"storage '{name}' is disabled")
    if not storage.available_on(node):
        raise PveError(f"storage '{name}' is not available on node '{node}'")
    return storage


def find_volume(cluster: Cluster, node: str, volid: str) -> Volume | None:
    """The volume that the node sees under that ID."""
    parts = split_volid(volid)
    if parts is None or parts[0] not in cluster.storages:
        return None
    return cluster.storages[parts[0]].on(node).get(own_key(cluster.storages[parts[0]], parts[1]))


def own_key(storage: Storage, name: str) -> str:
    """The name under which the volume is kept: without its base."""
    parts = name.split("/")
    if is_path_based(storage):
        return "/".join(parts[-2:]) if len(parts) == 4 else name
    return name if storage.kind == "pbs" else parts[-1]


def lock_storage(cluster: Cluster, storage: Storage) -> None:
    """Raise PveError without a quorum, which the lock of a shared storage needs (pve-storage:
    Storage.pm, vdisk_alloc, vdisk_create_base and rename_volume; Plugin.pm, cluster_lock_storage).
    """
    if storage.shared and not cluster.quorate:
        raise PveError(f"cfs-lock 'storage-{storage.name}' error: no quorum!")


def rename_volume(cluster: Cluster, node: str, volid: str, vmid: int) -> str:
    """Give a volume to another guest: its new ID (pve-storage: Storage.pm, rename_volume)."""
    store, name = volid.split(":", 1)
    storage = cluster.storage(store)
    lock_storage(cluster, storage)
    key = own_key(storage, name)
    held = storage.on(node).pop(key, None)
    if held is None:
        raise PveError(f"volume '{volid}' does not exist")
    wanted = Wanted(vmid, held.fmt, held.size, linked=True)
    new = allocate(cluster, node, storage, wanted)
    made = storage.on(node)[new.partition(":")[2]]
    made.virtual_size, made.used, made.parent, made.ctime, made.content = (
        held.virtual_size,
        held.used,
        held.parent,
        held.ctime,
        held.content,
    )
    return f"{store}:{name[: len(name) - len(key)]}{made.name}"


def next_disk_name(storage: Storage, node: str, vmid: int, fmt: str) -> str:
    """The first free `vm-VMID-disk-N`."""
    taken = set()
    for volume in storage.on(node).values():
        if volume.vmid == vmid:
            found = _DISK_NUMBER.search(volume.name)
            if found and int(found[1]) == vmid:
                taken.add(int(found[2]))
    number = next(n for n in range(len(taken) + 1) if n not in taken)
    prefix = "subvol" if fmt == "subvol" else "vm"
    name = f"{prefix}-{vmid}-disk-{number}"
    return f"{name}.{fmt}" if is_path_based(storage) or fmt == "qcow2" else name


@dataclass(frozen=True)
class Wanted:
    """A new volume of a machine; `size` is in bytes. Without a name it gets the next one. A linked
    volume takes no room of its own.
    """

    vmid: int
    fmt: str
    size: int
    name: str | None = None
    linked: bool = False


def allocate(
    cluster: Cluster, node: str, storage: Storage, wanted: Wanted, *, say: Say | None = None
) -> str:
    """Create a volume and return its ID.

    Raises PveError if it does not fit; `say` writes the cause to the log.
    """
    check_enabled(cluster, storage.name, node)  # Storage.pm, vdisk_alloc: activate_storage
    lock_storage(cluster, storage)
    vmid, fmt, size, name = wanted.vmid, wanted.fmt, wanted.size, wanted.name
    if fmt not in formats(storage) and not (fmt == "subvol" and has_subvolumes(storage)):
        raise PveError(f"unsupported format '{fmt}'")
    if name is None:
        name = next_disk_name(storage, node, vmid, fmt)
    key = f"{vmid}/{name}" if is_path_based(storage) else name
    volumes = storage.on(node)
    if key in volumes:
        if is_path_based(storage):
            raise PveError(f"disk image '{storage_path(storage, key)}' already exists")
        raise PveError(f"volume '{storage.name}:{key}' already exists")
    if not wanted.linked:
        check_room(storage, node, storage_path(storage, key), fmt, size, say)
    volumes[key] = Volume(
        key, "images", fmt, size, int(cluster.now()), vmid, used=metadata(fmt, size)
    )
    volumes[key].active = node
    return f"{storage.name}:{key}"


def set_active(cluster: Cluster, schema: Schema, vm: Vm, node: str | None) -> None:
    """Activate the machine's logical volumes on a node, or deactivate them, if this is visible from
    outside.
    """
    if not any(has_chains(storage) for storage in cluster.storages.values()):
        return
    for _dummy, drive in drives_of(schema, vm.conf):
        volume = find_volume(cluster, vm.node, drive.get("file", ""))
        if volume is not None:
            volume.active = node


def format_line(
    storage: Storage, volid: str, fmt: str, size: int, backing: str | None = None
) -> list[str]:
    """The lines of the log when a disk image is created."""
    if not is_path_based(storage):
        name = volid.partition(":")[2].rpartition("/")[2]
        return [f'  Logical volume "{name}" created.'] if storage.kind.startswith("lvm") else []
    path = storage_path(storage, volid.partition(":")[2])
    if fmt != "qcow2":
        return [f"Formatting '{path}', fmt={fmt} size={size} preallocation=off"]
    extra = f" backing_file={backing} backing_fmt=qcow2" if backing else ""
    return [f"Formatting '{path}', fmt=qcow2 cluster_size=65536 size={size}{extra}"]


# Storages that remove a missing volume without a word (free_image of LvmThinPlugin.pm;
# zfs_delete_zvol of ZFSPoolPlugin.pm, which ZFS over iSCSI shares).
_REMOVES_NOTHING = ("lvmthin", "zfspool", "zfs")


def free(cluster: Cluster, node: str, volid: str) -> str | None:
    """Remove the volume; a text when it was not there to begin with."""
    parts = split_volid(volid)
    if parts is None:
        raise PveError(f"unable to parse volume ID '{volid}'")
    storage = cluster.storage(parts[0])
    key = own_key(storage, parts[1])
    volumes = storage.on(node)
    if key in volumes and base_in_use(cluster, storage, node, key):
        raise PveError(f"base volume '{parts[1]}' is still in use by linked clones")
    if volumes.pop(key, None) is None:
        if is_path_based(storage):
            return f"disk image '{storage_path(storage, parts[1])}' does not exist"
        if storage.kind in _REMOVES_NOTHING:
            return None
        raise PveError(f"volume '{volid}' does not exist")
    return None


def base_in_use(cluster: Cluster, storage: Storage, node: str, key: str) -> bool:
    """Whether linked clones stand on the volume, as far as the storage can tell."""
    if storage.kind == "lvmthin":
        return False
    return any(volume.parent == key for volume in storage.on(node).values())


def make_base(cluster: Cluster, node: str, volid: str) -> str:
    """Turn a disk into the base volume of a template; its new ID."""
    parts = split_volid(volid)
    if parts is None:
        raise PveError(f"unable to parse volume ID '{volid}'")
    storage = cluster.storage(parts[0])
    lock_storage(cluster, storage)
    volumes = storage.on(node)
    key = own_key(storage, parts[1])
    volume = volumes.pop(key, None)
    if volume is None:
        raise PveError(f"volume '{volid}' does not exist")
    head, slash, tail = key.rpartition("/")
    new_key = f"{head}{slash}{tail.replace('vm-', 'base-', 1)}"
    new_key = new_key.replace("subvol-", "basevol-")
    volume.name = new_key
    volumes[new_key] = volume
    prefix = parts[1][: len(parts[1]) - len(key)]
    return f"{storage.name}:{prefix}{new_key}"


def linked_clone(cluster: Cluster, node: str, volid: str, vmid: int, size: int) -> str:
    """A volume that stands on a base volume."""
    parts = split_volid(volid)
    if parts is None:
        raise PveError(f"unable to parse volume ID '{volid}'")
    storage = cluster.storage(parts[0])
    base_key = own_key(storage, parts[1])
    fmt = "qcow2" if is_path_based(storage) else "raw"
    name = next_disk_name(storage, node, vmid, fmt)
    new = allocate(cluster, node, storage, Wanted(vmid, fmt, size, name, linked=True))
    key = new.partition(":")[2]
    volume = storage.on(node)[key]
    volume.parent = base_key
    if is_path_based(storage) or storage.kind in LINKED_BY_NAME:
        return f"{storage.name}:{base_key}/{key}"
    return new


def volume_owner(cluster: Cluster, volid: str) -> int | None:
    """The machine that the name of the volume belongs to."""
    parts = split_volid(volid)
    if parts is None or parts[0] not in cluster.storages:
        return None
    try:
        return parse_volname(cluster.storages[parts[0]], parts[1]).vmid
    except ApiError:
        return None


def volume_size(cluster: Cluster, node: str, volid: str) -> int:
    """The size of an existing volume; refused when it is not there."""
    parts = split_volid(volid)
    if parts is None:
        return 0
    storage = check_enabled(cluster, parts[0], node)
    volume = find_volume(cluster, node, volid)
    if volume is None:
        parse_volname(storage, parts[1])
        raise PveError(f"volume '{volid}' does not exist")
    return volume.virtual_size or volume.size


def in_use(schema: Schema, vm: Vm, skip: str, volid: str) -> bool:
    """Whether another drive or a snapshot of the machine uses the volume."""
    for name, drive in drives_of(schema, vm.conf):
        if name != skip and not is_cdrom(drive) and drive.get("file") == volid:
            return True
    return in_snapshots(schema, vm, volid)


def in_snapshots(schema: Schema, vm: Vm, volid: str) -> bool:
    """Whether a snapshot of the machine uses the volume."""
    return any(
        drive.get("file") == volid and not is_cdrom(drive)
        for snapshot in vm.snapshots.values()
        for _dummy, drive in drives_of(schema, snapshot)
    )
