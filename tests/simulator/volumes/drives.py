"""Disks and network cards in a machine's configuration: reading, writing, boot order, addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..schema.formats import DRIVE_NAME, split_list
from ..schema.named_hashes import BOOT
from ..schema.units import parse_props, parse_size, print_props

if TYPE_CHECKING:
    from ..core.state import Cluster
    from ..schema.definition import Schema

Drive = dict[str, str]
NEW_DISK = re.compile(r"(?:([^/:\s]+):)?(\d+(?:\.\d+)?)\Z")
_CLOUDINIT = re.compile(r"[:/](?:vm-\d+-)?cloudinit(?:\.(?:raw|qcow2?|qed|vmdk|cloop))?\Z")
_INDEXED = re.compile(r"([a-z]+)(\d+)\Z")

# In the order in which PVE looks for the first bootable disk.
BOOT_ORDER_NAMES = tuple(
    [f"ide{i}" for i in range(4)]
    + [f"scsi{i}" for i in range(31)]
    + [f"virtio{i}" for i in range(16)]
    + [f"sata{i}" for i in range(6)]
)


def is_drive(name: str) -> bool:
    """Whether the option is a disk or CD drive (unused ones are none)."""
    return DRIVE_NAME.fullmatch(name) is not None


def is_net(name: str) -> bool:
    """Whether the option is a network card."""
    return name.startswith("net") and name[3:].isdigit()


def is_unused(name: str) -> bool:
    """Whether the option is a detached disk."""
    return name.startswith("unused") and name[6:].isdigit()


def drive_keys(schema: Schema, name: str) -> dict[str, Any]:
    """The property-string format of the option."""
    found = schema.vm_options[name]["format"]
    return found if isinstance(found, dict) else {"file": {"default_key": 1}}


def parse_drive(schema: Schema, name: str, text: str) -> Drive:
    """The parts of a drive, its volume under `file`."""
    return parse_props(drive_keys(schema, name), text)


def print_drive(schema: Schema, name: str, drive: Drive) -> str:
    """The drive as it stands in the configuration."""
    return print_props(drive_keys(schema, name), drive)


def is_cloudinit(drive: Drive) -> bool:
    """Whether the volume is a cloud-init drive."""
    return _CLOUDINIT.search(drive.get("file", "")) is not None


def is_cdrom(drive: Drive, *, no_cloudinit: bool = False) -> bool:
    """Whether it is a CD drive, cloud-init drives counted or not."""
    if no_cloudinit and is_cloudinit(drive):
        return False
    return drive.get("media") == "cdrom"


def split_volid(volid: str) -> tuple[str, str] | None:
    """(storage, volume name), or None for a path or a drive without medium."""
    if volid.startswith("/"):
        return None
    storage, colon, name = volid.partition(":")
    return (storage, name) if colon and name else None


def drives_of(
    schema: Schema, conf: Mapping[str, str], *, unused: bool = False
) -> Iterator[tuple[str, Drive]]:
    """The drives of a configuration by name, detached ones on request."""
    for name in sorted(conf):
        if is_drive(name) or (unused and is_unused(name)):
            yield name, parse_drive(schema, name, conf[name])


def parse_net(schema: Schema, text: str) -> dict[str, str]:
    """The parts of a network card."""
    return parse_props(schema.vm_options["net0"]["format"], text)


def print_net(cluster: Cluster, net: dict[str, str]) -> str:
    """The card as it stands in the configuration; it gets an address if it has none."""
    model = net["model"]
    mac = net.get("macaddr") or cluster.mac()
    rest = {key: value for key, value in net.items() if key not in ("model", "macaddr")}
    parts = [f"{model}={mac}"]
    for key in sorted(rest):
        value = rest[key]
        parts.append(f"{key}={value}")
    return ",".join(parts)


def with_mac(cluster: Cluster, text: str) -> str:
    """The card's property string with an address, a new one if it has none."""
    return print_net(cluster, parse_net(cluster.schema, text))


def boot_devices(conf: Mapping[str, str]) -> list[str] | None:
    """The devices of `boot: order=...`, or None for the legacy form or no setting."""
    text = conf.get("boot")
    if text is None:
        return None
    parsed = parse_props(BOOT, text)
    return None if parsed.get("legacy") else split_list(parsed.get("order", ""))


def print_boot(devices: list[str]) -> str:
    """The value of `boot`."""
    return f"order={';'.join(devices)}" if devices else ""


def first_disk(schema: Schema, conf: Mapping[str, str], cdrom: bool) -> str | None:
    """The first disk, or the first CD drive."""
    for name in BOOT_ORDER_NAMES:
        if name in conf and is_cdrom(parse_drive(schema, name, conf[name])) is cdrom:
            return name
    return None


def default_boot(schema: Schema, conf: Mapping[str, str]) -> list[str]:
    """The boot order of a new machine: first disk, first CD drive, first network card."""
    found = [first_disk(schema, conf, False), first_disk(schema, conf, True)]
    nets = sorted((name for name in conf if is_net(name)), key=lambda name: int(name[3:]))
    return [name for name in found if name] + nets[:1]


def boot_disk_size(schema: Schema, conf: Mapping[str, str]) -> int:
    """The size of the disk that the machine boots from, 0 without one."""
    devices = boot_devices(conf)
    if devices is None:
        devices = [conf["bootdisk"]] if "bootdisk" in conf else []
    for name in devices:
        if is_drive(name) and name in conf:
            drive = parse_drive(schema, name, conf[name])
            if not is_cdrom(drive):
                return parse_size(drive.get("size", "")) or 0
    return 0


def memory_mib(conf: Mapping[str, str]) -> int:
    """The memory in MiB; 512 when none is given."""
    text = conf.get("memory", "512")
    for part in text.split(","):
        value = part.removeprefix("current=")
        if value.isdigit():
            return int(value)
    return 512


def agent_enabled(conf: Mapping[str, str]) -> bool:
    """Whether the guest agent is switched on in the configuration."""
    for part in conf.get("agent", "0").split(","):
        value = part.removeprefix("enabled=")
        if value.lower() in ("1", "on", "yes", "true"):
            return True
    return False


def option_key(name: str) -> tuple[str, int]:
    """A key that sorts options naturally."""
    found = _INDEXED.match(name)
    return (found[1], int(found[2])) if found else (name, -1)
