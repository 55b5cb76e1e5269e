"""Mount points, network devices and features of a container: reading, writing, their volumes.

Source: pve-container, LXC/Config.pm (parse_volume, print_ct_mountpoint, print_lxc_network) and
LXC.pm (alloc_disk, create_disks).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..core.state import Cluster, Container
from ..errors import ApiError, ParamError, PveError
from ..schema.units import format_size, parse_props, print_props
from ..schema.validate import parse_property_string
from .drives import split_volid
from .space import Say
from .volumes import (
    Wanted,
    allocate,
    find_volume,
    format_line,
    free,
    is_path_based,
    parse_volname,
    volume_size,
)

if TYPE_CHECKING:
    from ..core.api import Ctx
    from ..core.state import Storage
    from ..schema.definition import Schema

Mount = dict[str, str]
NEW_VOLUME = re.compile(r"([^/:\s]+):(\d+(?:\.\d+)?)\Z")
_MOUNT = re.compile(r"(?:rootfs|mp\d+)\Z")
_UNUSED = re.compile(r"unused(\d+)\Z")
_FORMATS: dict[str, Any] = {"volume": {"default_key": 1}}


def is_mount(name: str) -> bool:
    """Whether the option is the root file system or a mount point."""
    return _MOUNT.match(name) is not None


def is_unused(name: str) -> bool:
    """Whether the option is a detached volume."""
    return _UNUSED.match(name) is not None


def is_net(name: str) -> bool:
    """Whether the option is a network device."""
    return re.fullmatch(r"net\d+", name) is not None


def keys_of(schema: Schema, name: str) -> dict[str, Any]:
    """The property-string format of an option."""
    found = schema.container_options[name].get("format")
    return found if isinstance(found, dict) else _FORMATS


def parse_mount(schema: Schema, name: str, text: str | None) -> Mount:
    """The parts of a mount point; refused with PVE's text if it is not set."""
    if text is None:
        missing = "property is missing and it is not optional"
        required = {key: missing for key in ("mp", "volume") if name != "rootfs" or key != "mp"}
        raise ApiError(500, "format error\n", errors=required)
    return parse_props(keys_of(schema, name), text)


def print_mount(schema: Schema, name: str, mount: Mount) -> str:
    """The mount point as it stands in the configuration."""
    return print_props(keys_of(schema, name), mount)


def source_of(volume: str) -> str:
    """Whether a mount point shows a volume, a device or a directory of the node."""
    if volume.startswith("/dev/"):
        return "device"
    return "bind" if volume.startswith("/") else "volume"


def mounts_of(
    schema: Schema, conf: Mapping[str, str], *, unused: bool = False
) -> Iterator[tuple[str, Mount]]:
    """The root file system, then the mount points by number, then detached volumes on request."""
    for name in sorted(filter(is_mount, conf), key=_number):
        yield name, parse_mount(schema, name, conf[name])
    for name in sorted(conf) if unused else ():
        if is_unused(name):
            yield name, {"volume": conf[name]}


def _number(name: str) -> int:
    return -1 if name == "rootfs" else int(name[2:])


def volumes_of(schema: Schema, conf: Mapping[str, str], *, unused: bool = False) -> list[str]:
    """The IDs of the volumes."""
    found = [mount.get("volume", "") for _name, mount in mounts_of(schema, conf, unused=unused)]
    return [volume for volume in found if source_of(volume) == "volume"]


def in_use(schema: Schema, container: Container, volid: str) -> bool:
    """Whether the configuration, a pending change or a snapshot has the volume."""
    places = (container.conf, container.pending, *container.snapshots.values())
    return any(volid in volumes_of(schema, place) for place in places)


def add_unused(container: Container, volid: str) -> str | None:
    """Note a detached volume under the first free number."""
    if volid in (value for name, value in container.conf.items() if is_unused(name)):
        return None
    number = next(n for n in range(256) if f"unused{n}" not in container.conf)
    name = f"unused{number}"
    container.conf[name] = volid
    return name


def new_volume(
    cluster: Cluster, node: str, vmid: int, storage: Storage, size: int, say: Say | None
) -> str:
    """Make a volume for a container and return its ID: an image with a file system, or a
    subvolume if it has no size or the storage is a ZFS pool.
    """
    if "rootdir" not in storage.content:
        raise PveError(
            f"content type 'rootdir' is not available or configured on storage '{storage.name}'"
        )
    fmt = "raw"
    if storage.kind == "zfspool" or (is_path_based(storage) and not size):
        fmt = "subvol"
    volid = allocate(cluster, node, storage, Wanted(vmid, fmt, size), say=say)
    volume = find_volume(cluster, node, volid)
    if volume is not None:
        volume.content = "rootdir"
    if say is not None and fmt == "raw":
        for line in format_line(storage, volid, fmt, size):
            say(line)
        blocks = size // 4096
        say(f"Creating filesystem with {blocks} 4k blocks and {max(16, blocks // 4)} inodes")
        say(f"Filesystem UUID: {cluster.uuid()}")
        say("Superblock backups stored on blocks: ")
        say("\t32768, 98304, 163840, 229376")
    return volid


def make_volumes(
    ctx: Ctx, container: Container, settings: Mapping[str, str], say: Say | None
) -> tuple[dict[str, str], list[str]]:
    """The mount points with a volume for each new one, and the IDs of the new volumes.

    If one fails, the others are freed.
    """
    schema, cluster = ctx.sim.schema, ctx.cluster
    result: dict[str, str] = {}
    made: list[str] = []
    try:
        for name, mount in mounts_of(schema, settings):
            new = NEW_VOLUME.match(mount["volume"])
            if new is not None:
                size = int(float(new[2]) * 1024) * 1024 * 1024
                storage = cluster.storage(new[1])
                volid = new_volume(cluster, container.node, container.vmid, storage, size, say)
                made.append(volid)
                mount.update(volume=volid, size=format_size(size))
            elif source_of(mount["volume"]) == "volume":
                volume_size(cluster, container.node, mount["volume"])  # LXC.pm, mount_all
            result[name] = print_mount(schema, name, mount)
    except ApiError:
        for volid in made:
            free(cluster, container.node, volid)
        raise
    return result, made


def remove_volume(ctx: Ctx, container: Container, volid: str, say: Say | None = None) -> None:
    """Free a volume of the container; one of another container is left (LXC.pm,
    delete_mountpoint_volume).
    """
    if source_of(volid) != "volume":
        return
    parts = split_volid(volid)
    if parts is None:
        raise PveError(f"unable to parse volume ID '{volid}'")
    parsed = parse_volname(ctx.cluster.storage(parts[0]), parts[1])
    if parsed.vmid == container.vmid:
        free(ctx.cluster, container.node, volid)
    elif say is not None:
        say(f"ignore deletion of '{volid}', CT {container.vmid} isn't the owner!")


def parse_net(schema: Schema, text: str) -> dict[str, str]:
    """The parts of a network device."""
    return parse_props(keys_of(schema, "net0"), text)


def with_host_managed(schema: Schema, text: str) -> str:
    """The network device as the image of an application gets it: the host configures it, unless
    the device says otherwise.
    """
    net = parse_net(schema, text)
    net.setdefault("host-managed", "1")
    return print_props(keys_of(schema, "net0"), net)


def with_address(ctx: Ctx, text: str, *, new: bool = False) -> str:
    """The network device with its type and an address, a `new` one on request."""
    net = parse_net(ctx.sim.schema, text)
    net["type"] = "veth"
    if new or not net.get("hwaddr"):
        net["hwaddr"] = ctx.cluster.mac()
    return print_props(keys_of(ctx.sim.schema, "net0"), net)


def features_of(schema: Schema, text: str | None) -> dict[str, str]:
    """The features that are set."""
    if not text:
        return {}
    return parse_property_string(keys_of(schema, "features"), text, "features")


def check_rootdir(ctx: Ctx, name: str) -> None:
    """Refuse a storage without container directories."""
    if "rootdir" not in ctx.cluster.storage(name).content:
        text = f"storage '{name}' does not support container directories"
        raise ParamError({"storage": text})
