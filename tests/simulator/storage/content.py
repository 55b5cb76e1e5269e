"""The volumes on a storage: listing, allocating, describing, deleting."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from ..config.checks import check_volume_access
from ..core.api import Ctx, api
from ..core.state import Storage, Volume
from ..core.tasks import Task
from ..errors import ApiError, ParamError, PveError
from ..volumes.space import has_chains, whole_size
from ..volumes.volumes import (
    Wanted,
    allocate,
    base_in_use,
    check_enabled,
    default_format,
    is_path_based,
    own_key,
    parse_volname,
    storage_path,
)

CONTENT = "/nodes/{node}/storage/{storage}/content"


def _listed_lv(storage: Storage, volume: Volume, node: str) -> dict[str, Any]:
    """A logical volume.

    The size of a qcow2 image in it is known on the node on which it is active (LVMPlugin.pm,
    list_images).
    """
    size = volume.virtual_size or volume.size
    entry: dict[str, Any] = {
        "volid": f"{storage.name}:{volume.name}",
        "content": volume.content,
        "format": volume.fmt,
        "ctime": volume.ctime,
        "vmid": volume.vmid,
    }
    if volume.fmt == "qcow2" and volume.active != node:
        entry["approximate-size"] = whole_size(storage, volume.fmt, size)
    else:
        entry["size"] = size
    return entry


def _listed(storage: Storage, volume: Volume, node: str) -> dict[str, Any]:
    if storage.kind == "lvm":
        return _listed_lv(storage, volume, node)
    name = (
        f"{volume.parent}/{volume.name}"
        if volume.parent and storage.kind != "lvmthin"
        else volume.name
    )
    entry: dict[str, Any] = {
        "volid": f"{storage.name}:{name}",
        "content": volume.content,
        "format": volume.fmt,
        "size": volume.size,
        "ctime": volume.ctime,
    }
    if volume.content in ("images", "rootdir"):
        entry["vmid"] = volume.vmid
        entry["parent"] = (
            f"../{volume.parent}" if volume.parent and is_path_based(storage) else volume.parent
        )
        if volume.used is not None:
            entry["used"] = volume.used
    elif volume.content == "backup":
        entry["subtype"] = guest_kind(volume)
        if volume.vmid is not None:
            entry["vmid"] = volume.vmid
        if volume.notes:
            entry["notes"] = volume.notes
        if volume.protected:
            entry["protected"] = 1
        if volume.encrypted:  # PBSPlugin.pm, list_volumes
            entry["encrypted"] = volume.encrypted
        if volume.verification:
            entry["verification"] = volume.verification
    return entry


def guest_kind(volume: Volume) -> str:
    """The kind of guest in a backup, by its name."""
    return "lxc" if volume.name.startswith(("backup/vzdump-lxc-", "backup/ct/")) else "qemu"


@api(f"GET {CONTENT}")
def index(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The volumes that the caller may see."""
    storage = check_enabled(ctx.cluster, p["storage"], p["node"])
    result = []
    for volume in storage.on(p["node"]).values():
        if p.get("content") not in (None, volume.content) or volume.content not in storage.content:
            continue
        # Files that belong to no machine are listed together with the files of the requested
        # machine, except for two kinds.
        if p.get("vmid") not in (None, volume.vmid) and volume.content not in (
            "snippets",
            "import",
        ):
            continue
        try:
            check_volume_access(ctx, None, f"{storage.name}:{volume.name}")
        except ApiError:
            continue
        result.append(_listed(storage, volume, p["node"]))
    result.sort(key=lambda entry: entry["volid"].lower())
    return result


_SIZE = re.compile(r"(\d+)([MG])?\Z")


@api(f"POST {CONTENT}")
def create(ctx: Ctx, p: dict[str, Any]) -> str:
    """Allocate a disk image."""
    node, name, vmid = p["node"], p["filename"], p["vmid"]
    found = _SIZE.match(str(p["size"]))
    kib = int(found[1]) * {None: 1, "M": 1024, "G": 1024 * 1024}[found[2]] if found else 0
    fmt = p.get("format")
    extension = re.search(r"\.(raw|qcow2|vmdk)\Z", name)
    if extension:
        if fmt and fmt != extension[1]:
            raise ParamError({"format": f"different storage formats ({fmt} != {extension[1]})"})
        fmt = extension[1]
    storage = check_enabled(ctx.cluster, p["storage"], node)
    if name and is_path_based(storage) and re.fullmatch(r"snap-.*\.qcow2", name):
        raise PveError(f"'{name}' is a snapshot filename, not a volume!")
    fmt = fmt or default_format(storage)
    if is_path_based(storage):
        _check_file_name(name, fmt, kib)
    else:
        _check_disk_name(storage, vmid, fmt, name)
    return allocate(ctx.cluster, node, storage, Wanted(vmid, fmt, kib * 1024, name or None))


def _check_file_name(name: str, fmt: str, kib: int) -> None:
    """Refuse a name that is not one of a disk in a directory (Plugin.pm, alloc_image)."""
    found = re.fullmatch(r"[^/\s]+\.(raw|qcow2|vmdk|subvol)", name) if name else None
    if name and found is None:
        raise PveError(f"unable to parse volume filename '{name}'")
    if found and found[1] != fmt:
        raise PveError(
            f"illegal name '{name}' - wrong extension for format ('{found[1]} != '{fmt}')"
        )
    if fmt == "subvol" and kib:
        raise PveError("storage does not support subvol quotas")


def _check_disk_name(storage: Storage, vmid: int, fmt: str, name: str) -> None:
    """Refuse a name that the plugin of the storage does not give to a disk (alloc_image)."""
    kind = storage.kind
    if kind in ("iscsi", "iscsidirect", "pbs"):
        raise PveError(f"can't allocate space in {'pbs' if kind == 'pbs' else 'iscsi'} storage")
    if kind == "esxi":
        raise PveError("creating images is not supported for PVE::Storage::ESXiPlugin")
    if not name:
        return
    if kind == "lvm":
        _check_lvm_name(storage, fmt, name)
        return
    prefix = f"subvol-{vmid}-" if kind == "zfspool" and fmt == "subvol" else f"vm-{vmid}-"
    if not name.startswith(prefix):
        raise PveError(f"illegal name '{name}' - should be '{prefix}*'")


def _check_lvm_name(storage: Storage, fmt: str, name: str) -> None:
    """Source: LVMPlugin.pm, verify_volname_format and alloc_lvm_image."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*[a-z0-9]", name, re.IGNORECASE):
        raise PveError(f"lvm name '{name}' contains illegal characters")
    parsed = parse_volname(storage, name).fmt
    if fmt in ("raw", "qcow2") and fmt != parsed:
        base = re.sub(r"\.[^.]+$", "", name)
        wanted = f"{base}.qcow2" if fmt == "qcow2" else base
        raise PveError(
            f"volume name '{name}' does not match requested format '{fmt}' (did you mean"
            f" '{wanted}'?)"
        )
    if fmt == "qcow2" and default_format(storage) != "qcow2":
        raise PveError("snapshot-as-volume-chain option need to be enabled to use qcow2 format")


def volume_id(p: dict[str, Any], volume: str) -> tuple[str, str]:
    """(storage, name) of a volume, whose ID may or may not begin with the storage of the path.

    Source: pve-storage, API2/Storage/Content.pm, real_volume_id.
    """
    store = p.get("storage")
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9\-_.]*[A-Za-z0-9]):(.+)", volume)
    if found:
        if store and store != found[1]:
            raise ParamError({"volume": f"storage ID mismatch ({found[1]} != {store})\n"})
        return found[1], found[2]
    if not store:
        raise ParamError({"volume": "no storage specified - incomplete volume ID"})
    return store, volume


def _held(ctx: Ctx, node: str, store: str, name: str) -> tuple[Storage, Volume | None]:
    storage = ctx.cluster.storage(store)
    return storage, storage.on(node).get(own_key(storage, name))


@api(f"GET {CONTENT}/{{volume}}")
def info(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The properties of a volume."""
    store, name = volume_id(p, p["volume"])
    storage, volume = _held(ctx, p["node"], store, name)
    parse_volname(storage, name)
    check_volume_access(ctx, None, f"{store}:{name}")
    asleep = (
        volume is not None
        and has_chains(storage)
        and volume.fmt == "qcow2"
        and volume.active != p["node"]
    )
    if volume is None or asleep:
        raise PveError(f"volume_size_info on '{store}:{name}' failed - no format")
    result: dict[str, Any] = {
        "path": storage_path(storage, name),
        "size": volume.virtual_size or volume.size,
        "used": volume.used if volume.used is not None else volume.size,
        "format": "raw" if volume.content in ("backup", "iso") else volume.fmt,
    }
    if volume.parent:
        result["parent"] = volume.parent
    if volume.content == "backup":
        result["protected"] = int(volume.protected)
        if volume.notes is not None:
            result["notes"] = volume.notes
    return result


@api(f"PUT {CONTENT}/{{volume}}")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the notes or the protection of a backup."""
    store, name = volume_id(p, p["volume"])
    storage, volume = _held(ctx, p["node"], store, name)
    parsed = parse_volname(storage, name)
    check_volume_access(ctx, None, f"{store}:{name}")
    if p.get("notes") is not None and parsed.content != "backup":
        raise PveError("only backups can have notes")
    if p.get("protected") is not None and parsed.content != "backup":
        raise PveError("only backups support attribute 'protected'")
    if volume is None:  # the notes are a file of their own, which need no backup
        return
    if p.get("notes") is not None:
        volume.notes = p["notes"]
    if p.get("protected") is not None:
        volume.protected = bool(p["protected"])


@api(f"DELETE {CONTENT}/{{volume}}")
async def delete(ctx: Ctx, p: dict[str, Any]) -> str | None:
    """Delete a volume; with a delay the answer may wait for the end of the task."""
    node = p["node"]
    store, name = volume_id(p, p["volume"])
    storage, _dummy = _held(ctx, node, store, name)
    parsed = parse_volname(storage, name)
    if parsed.content == "backup" and parsed.vmid is not None:
        ctx.need(f"/storage/{store}", "Datastore.AllocateSpace")
        ctx.need(f"/vms/{parsed.vmid}", "VM.Backup")
    else:
        ctx.need(f"/storage/{store}", "Datastore.Allocate")
    ident = f"{parsed.vmid}@{store}" if parsed.vmid is not None else store

    async def work(task: Task) -> None:
        await task.work()
        key = own_key(storage, name)
        volume = storage.on(node).get(key)
        if volume is not None and volume.protected:
            raise PveError(f"cannot remove protected volume '{name}' on '{store}'")
        if volume is not None and base_in_use(ctx.cluster, storage, node, key):
            raise PveError(f"base volume '{name}' is still in use by linked clones")
        if storage.on(node).pop(key, None) is None and is_path_based(storage):
            task.say(f"disk image '{storage_path(storage, name)}' does not exist")
        task.say(f"Removed volume '{store}:{name}'")

    upid = ctx.task(node, "imgdel", ident, work)
    if not p.get("delay"):
        return upid
    task = ctx.cluster.tasks.by_upid[upid]
    if task.handle is not None:
        await asyncio.wait([task.handle], timeout=p["delay"])
    if task.running:
        return upid
    if task.status != "OK":
        raise PveError(str(task.status))
    return None
