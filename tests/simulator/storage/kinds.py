"""The options of each kind of storage, and its possible content."""

from __future__ import annotations

from ..errors import PveError
from ..schema.formats import split_list

_COMMON = "nodes disable content"
_FILES = (
    f"{_COMMON} content-dirs prune-backups max-protected-backups format mkdir create-base-path"
    " create-subdirs bwlimit"
)

# Per kind: the options that are required and cannot be changed afterwards, and all others.
REQUIRED: dict[str, tuple[str, ...]] = {
    "dir": ("path",),
    "nfs": ("server", "export"),
    "cifs": ("server", "share"),
    "lvm": ("vgname",),
    "lvmthin": ("thinpool", "vgname"),
    "zfspool": ("pool",),
    "rbd": (),
    "cephfs": (),
    "btrfs": ("path",),
    "pbs": ("server", "datastore"),
    "iscsi": ("portal", "target"),
    "zfs": ("pool", "portal", "target", "iscsiprovider", "blocksize"),
    "iscsidirect": ("portal", "target"),
    "esxi": ("server", "username"),
}
_OTHER = {
    "dir": f"{_FILES} shared is_mountpoint preallocation",
    "nfs": f"{_FILES} options preallocation",
    "cifs": f"{_FILES} subdir username password domain smbversion preallocation options",
    "lvm": (
        f"{_COMMON} shared saferemove saferemove-stepsize saferemove_throughput tagged_only bwlimit"
        " snapshot-as-volume-chain"
    ),
    "lvmthin": f"{_COMMON} bwlimit",
    "zfspool": f"{_COMMON} blocksize sparse bwlimit mountpoint",
    "rbd": f"{_COMMON} monhost pool data-pool namespace username krbd keyring bwlimit",
    "cephfs": f"{_FILES} monhost subdir options username fuse keyring fs-name",
    "btrfs": (
        f"{_COMMON} prune-backups max-protected-backups format mkdir create-base-path"
        " create-subdirs shared is_mountpoint nocow preallocation"
    ),
    "pbs": (
        f"{_COMMON} namespace port username password encryption-key master-pubkey prune-backups"
        " max-protected-backups fingerprint"
    ),
    "iscsi": f"{_COMMON} bwlimit",
    "zfs": f"{_COMMON} nowritecache sparse comstar_hg comstar_tg lio_tpg bwlimit zfs-base-path",
    "iscsidirect": f"{_COMMON} bwlimit",
    "esxi": f"{_COMMON} shared password skip-cert-verification port",
}
# Options that are optional, but cannot be changed afterwards; and fixed options that can be changed
# nevertheless.
_FIXED = {
    "dir": ("snapshot-as-volume-chain",),
    "nfs": ("path", "snapshot-as-volume-chain"),
    "cifs": ("path", "snapshot-as-volume-chain"),
    "cephfs": ("path",),
    "lvm": ("base",),
}
_CHANGEABLE = {"esxi": ("server", "username")}

DEFAULT_CONTENT = {
    "dir": "images,rootdir",
    "nfs": "images",
    "cifs": "images",
    "lvm": "images",
    "lvmthin": "images,rootdir",
    "zfspool": "images,rootdir",
    "rbd": "images",
    "cephfs": "backup",
    "btrfs": "images,rootdir",
    "pbs": "backup",
    "iscsi": "images",
    "zfs": "images",
    "iscsidirect": "images",
    "esxi": "import",
}
_EVERYTHING = frozenset({"images", "rootdir", "vztmpl", "iso", "backup", "snippets", "import"})
_DISKS = frozenset({"images", "rootdir"})
CONTENT = {
    "dir": _EVERYTHING | {"none"},
    "btrfs": _EVERYTHING | {"none"},
    "nfs": _EVERYTHING,
    "cifs": _EVERYTHING,
    "cephfs": _EVERYTHING - _DISKS,
    "lvm": _DISKS,
    "lvmthin": _DISKS,
    "zfspool": _DISKS,
    "rbd": _DISKS,
    "pbs": frozenset({"backup", "none"}),
    "iscsi": frozenset({"images", "none"}),
    "iscsidirect": frozenset({"images", "none"}),
    "zfs": frozenset({"images"}),
    "esxi": frozenset({"import"}),
}


def fixed(kind: str) -> tuple[str, ...]:
    """The options that cannot be changed."""
    every = (*REQUIRED.get(kind, ()), *_FIXED.get(kind, ()))
    return tuple(key for key in every if key not in _CHANGEABLE.get(kind, ()))


def known(kind: str) -> frozenset[str]:
    """Every option of that kind."""
    return frozenset(
        (*REQUIRED.get(kind, ()), *_FIXED.get(kind, ()), *_OTHER.get(kind, "").split())
    )


def check_known(kind: str, key: str) -> None:
    """Refuse an option that this kind does not have."""
    if key not in known(kind):
        raise PveError(f"unexpected property '{key}'")


def checked_content(kind: str, text: str) -> str:
    """The content types that this kind can hold; the others are left out."""
    possible = CONTENT.get(kind, _EVERYTHING)
    kept = list(dict.fromkeys(item for item in split_list(text) if item in possible))
    if "none" in kept and len(kept) > 1:
        raise PveError("unable to combine 'none' with other content types")
    if not kept and "none" not in possible:
        raise PveError("storage does not support content type 'none'")
    return ",".join(kept)
