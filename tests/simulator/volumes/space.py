"""How much room a storage has, and how each kind refuses a volume that goes beyond it.

Sources: pve-storage, LVMPlugin.pm, LvmThinPlugin.pm, ZFSPoolPlugin.pm, Plugin.pm and Common.pm; the
answer of a full directory was seen on PVE 9.2.11. The texts of LVM and ZFS come from their own
commands.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.state import PATH_KINDS, SHARED, Storage, Volume
from ..errors import PveError

EXTENT = 4 << 20  # the unit of allocation of LVM
_CLUSTER = 1 << 16  # of a qcow2 image

Say = Callable[[str], None]


def is_thick(storage: Storage) -> bool:
    """Whether a new volume takes its whole size at once."""
    if storage.kind == "lvm":
        return True
    if storage.kind in ("zfspool", "zfs"):
        return storage.config.get("sparse") != "1"
    return storage.kind in PATH_KINDS and storage.config.get("preallocation") in ("full", "falloc")


def has_chains(storage: Storage) -> bool:
    """Whether it is an LVM storage that keeps snapshots as a chain of qcow2 volumes."""
    return storage.kind == "lvm" and storage.config.get("snapshot-as-volume-chain") == "1"


def metadata(fmt: str, size: int) -> int:
    """The size of an image file before anything is written to it."""
    return 262144 + size // 16384 if fmt == "qcow2" else 4096


def whole_size(storage: Storage, fmt: str, size: int) -> int:
    """The size of the logical volume or zvol.

    A volume with a qcow2 image has room for its tables as well.
    """
    if storage.kind != "lvm":
        return size
    if fmt == "qcow2":
        clusters = -(-size // _CLUSTER)
        tables = -(-clusters * 8 // _CLUSTER) + 3
        tables += -(-(clusters + tables) * 2 // _CLUSTER)
        size = (clusters + tables) * _CLUSTER
    return -(-size // EXTENT) * EXTENT


def occupied(storage: Storage, volume: Volume) -> int:
    """The room that the volume takes on the storage."""
    if volume.content in ("images", "rootdir") and is_thick(storage) and not volume.parent:
        return whole_size(storage, volume.fmt, volume.virtual_size or volume.size)
    return volume.used or volume.size


def used_bytes(storage: Storage, node: str) -> int:
    """The room that the volumes and everything else take."""
    key = SHARED if storage.shared else node
    volumes = storage.volumes.get(key, {}).values()
    return min(
        storage.total, storage.base_used + sum(occupied(storage, volume) for volume in volumes)
    )


def free_bytes(storage: Storage, node: str) -> int:
    """The free room."""
    return storage.total - used_bytes(storage, node)


def _lvm_name(storage: Storage, name: str) -> str:
    return f"{storage.config.get('vgname', storage.name)}/{name}"


def _zfs_name(storage: Storage, name: str) -> str:
    return f"{storage.config.get('pool', storage.name)}/{name}"


def _preallocation(storage: Storage, fmt: str) -> str:
    """The option of qemu-img, as the log quotes it."""
    mode = storage.config.get("preallocation", "metadata" if fmt == "qcow2" else "off")
    return f"preallocation={'off' if fmt == 'raw' and mode == 'metadata' else mode}"


def check_room(
    storage: Storage, node: str, path: str, fmt: str, size: int, say: Say | None
) -> None:
    """Refuse to create a volume that does not fit.

    `path` is its path; the log has the cause.
    """
    free, name = free_bytes(storage, node), path.rpartition("/")[2]
    if storage.kind == "lvm":
        _check_volume_group(storage, free, name, fmt, size)
    elif storage.kind == "lvmthin":
        if free <= 0:
            pool = _lvm_name(storage, storage.config.get("thinpool", "data"))
            raise PveError(
                f"lvcreate '{_lvm_name(storage, name)}' error:   Cannot create new thin volume,"
                f" free space in thin pool {pool} reached threshold."
            )
    elif storage.kind in ("zfspool", "zfs"):
        if free < (size if is_thick(storage) else 1):
            raise PveError(f"zfs error: cannot create '{_zfs_name(storage, name)}': out of space")
    elif storage.kind in PATH_KINDS:
        need = size if is_thick(storage) else metadata(fmt, size)
        if free < need:
            _say(say, f"qemu-img: {path}: Could not resize file: No space left on device")
            option = _preallocation(storage, fmt)
            command = f"/usr/bin/qemu-img create -o '{option}' -f {fmt} {path} {size // 1024}K"
            raise PveError(f"unable to create image: command '{command}' failed: exit code 1")


def _check_volume_group(storage: Storage, free: int, name: str, fmt: str, size: int) -> None:
    # PVE compares the free bytes with the wanted KiB, so that LVM is usually the first to refuse.
    if free < size // 1024:
        raise PveError(f"not enough free space ({free} < {size // 1024})")
    extents, wanted = free // EXTENT, whole_size(storage, fmt, size) // EXTENT
    if extents < wanted:
        group = storage.config.get("vgname", storage.name)
        raise PveError(
            f"lvcreate '{_lvm_name(storage, name)}' error:   Volume group \"{group}\" has"
            f" insufficient free space ({extents} extents): {wanted} required."
        )


def check_growth(
    storage: Storage, place: tuple[str, str], volume: Volume, size: int, *, running: bool, say: Say
) -> None:
    """Refuse to grow a volume beyond the room; `place` is its node and its path there.

    QEMU grows the image file of a running machine without filling it.
    """
    node, path = place
    if not is_thick(storage) or volume.parent:
        return
    name = path.rpartition("/")[2]
    free = free_bytes(storage, node)
    more = whole_size(storage, volume.fmt, size) - occupied(storage, volume)
    if more <= free:
        return
    if storage.kind == "lvm":
        raise PveError(
            f"error resizing volume '{path}':   Insufficient free space: {more // EXTENT} extents"
            f" needed, but only {free // EXTENT} available"
        )
    if storage.kind in ("zfspool", "zfs"):
        dataset = _zfs_name(storage, name)
        raise PveError(
            f"zfs error: cannot set property for '{dataset}': size is greater than available space"
        )
    if running:
        return
    say(f"qemu-img: {path}: Could not resize file: No space left on device")
    option = _preallocation(storage, volume.fmt)
    command = f"/usr/bin/qemu-img resize '--{option}' -f {volume.fmt} {path} {size}"
    raise PveError(f"command '{command}' failed: exit code 1")


def _say(say: Say | None, line: str) -> None:
    if say is not None:
        say(line)
