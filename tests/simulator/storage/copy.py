"""Copies of volumes to another name or node.

Proxmox VE exports the volume on the source node and imports it by SSH on the target node. Sources:
pve-storage, API2/Storage/Content.pm (copy), Storage.pm (storage_migrate,
volume_transfer_formats), Storage/Plugin.pm, LVMPlugin.pm, ZFSPoolPlugin.pm (volume_export_formats,
volume_import); pve-cluster, SSHInfo.pm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..core.api import Ctx, api, unknown_host
from ..core.contents import Described
from ..core.state import Storage, Volume
from ..core.tasks import Task
from ..errors import ApiError, PveError
from ..volumes.space import check_room
from ..volumes.volumes import (
    Parsed,
    check_enabled,
    is_path_based,
    own_key,
    parse_volname,
    storage_path,
)
from .content import CONTENT, volume_id

_STREAMS = {"lvm": "raw+size", "lvmthin": "raw+size", "rbd": "raw+size", "zfspool": "zfs"}
_FILES = ("images", "iso", "snippets", "vztmpl", "import")


def _stream(storage: Storage, parsed: Parsed) -> str:
    """The format of the stream, empty if the plugin exports and imports no such volume."""
    if not is_path_based(storage):
        return _STREAMS.get(storage.kind, "")
    if parsed.fmt == "subvol":
        return "tar+size"
    return "raw+size" if parsed.content in _FILES else ""


@api(f"POST {CONTENT}/{{volume}}")
def copy(ctx: Ctx, p: dict[str, Any]) -> str:
    """Copy a volume with a task. Only root@pam may: the method has no permissions."""
    store, name = volume_id(p, p["volume"])
    _same, target = volume_id(p, p["target"])
    node, other = p["node"], p.get("target_node") or p["node"]
    storage = ctx.cluster.storage(store)

    async def work(task: Task) -> None:
        if ctx.cluster.nodes.get(other) is None:
            raise unknown_host(other)
        if storage.shared:  # every node has it: PVE ends without a copy
            return
        source, parsed = parse_volname(storage, name), parse_volname(storage, target)
        stream = _stream(storage, source)
        if not stream or stream != _stream(storage, parsed):
            raise PveError(f"cannot migrate from storage type '{storage.kind}' to '{storage.kind}'")
        held = storage.on(node).get(own_key(storage, name))
        await task.copy(held.size if held else 0)
        try:
            _require_online(ctx, other)
            volume = _imported(ctx, storage, (source, parsed), held, other, task)
        except ApiError as error:
            task.say(error.text)
            command = _command(ctx, f"{store}:{name}", f"{store}:{target}", stream, other)
            raise PveError(f"command '{command}' failed: exit code 255") from None
        storage.on(other)[volume.name] = volume
        task.say(f"successfully imported '{store}:{target}'")

    return ctx.task(node, "imgcopy", "", work)


def _require_online(ctx: Ctx, node: str) -> None:
    found = ctx.cluster.nodes[node]
    if not found.online:
        raise PveError(f"ssh: connect to host {found.ip} port 22: No route to host")


def _imported(
    ctx: Ctx,
    storage: Storage,
    parsed: tuple[Parsed, Parsed],
    held: Volume | None,
    node: str,
    task: Task,
) -> Volume:
    """The volume that `pvesm import` writes. Raises PveError."""
    source, target = parsed
    if held is None:
        raise PveError(f"volume '{storage.name}:{source.name}' does not exist")
    check_enabled(ctx.cluster, storage.name, node)
    is_disk = target.content == "images"
    if is_disk and target.fmt not in ("raw", "subvol"):
        raise PveError(f"cannot import format raw+size into a file of format {target.fmt}")
    key = target.name if is_disk else f"{target.content}/{target.name}"
    path = storage_path(storage, key)
    if key in storage.on(node):
        noun = f"file '{path}'" if is_path_based(storage) else f"volume '{path}'"
        raise PveError(f"{noun} already exists")
    contents, size = held.contents, held.size
    if not is_disk and source.fmt in ("qcow2", "vmdk"):  # qemu-img convert -O raw
        size = held.virtual_size or held.size
        contents = Described(size)
    check_room(storage, node, path, "raw", size, task.say)
    return replace(
        held,
        name=key,
        content=target.content,
        fmt=target.fmt,
        size=size,
        ctime=int(ctx.cluster.now()),
        vmid=target.vmid,
        parent=None,
        snapshots={},
        active=None,
        contents=contents,
    )


def _command(ctx: Ctx, source: str, target: str, stream: str, node: str) -> str:
    """The pipe of the task, as the error of a failed one shows it."""
    ssh = (
        f"/usr/bin/ssh -e none -o 'BatchMode=yes' -o 'HostKeyAlias={node}'"
        f" -o 'UserKnownHostsFile=/etc/pve/nodes/{node}/ssh_known_hosts'"
        f" -o 'GlobalKnownHostsFile=none' root@{ctx.cluster.nodes[node].ip}"
    )
    return (
        f"set -o pipefail && pvesm export {source} {stream} - -with-snapshots 0 | {ssh} --"
        f" pvesm import {target} {stream} - -with-snapshots 0 -allow-rename 0"
    )
