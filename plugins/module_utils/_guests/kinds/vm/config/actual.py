# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration of a VM: its drives, CPUs and memory, its figures for a quota, the volume for
its memory, and the form of its options in results and diffs (pure).

Keys in results are PVE's own. Property strings become dictionaries, tags and keys become lists, a
volume becomes its storage and size. Secrets, and values that PVE generates (volume names, uuids),
are not shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from ....._foundation.cluster.quota import QuotaFigures
from ....._foundation.cluster.state import ClusterState
from ....._foundation.cluster.tenant import parse_tags
from ....._foundation.core.quantities import MIB, read_size, render_size
from ....._foundation.schema.formats import parse_option
from ....._foundation.schema.values import SECRET_IS_SET, typed_option, typed_sub_keys
from ...marker import split_notes

DRIVE = re.compile(r"^(?:(?:ide|sata|scsi|virtio)\d+|efidisk0|tpmstate0)\Z")


# A drive, or a disk that no drive uses.
VOLUME = re.compile(rf"{DRIVE.pattern}|^unused\d+\Z")


# Disks that hold the state of the firmware: a VM cannot boot from them, and PVE decides their size.
FIRMWARE = ("efidisk0", "tpmstate0")


# The kinds of drives.
DISK = "a disk"


CD = "a CD drive"


CLOUD_INIT = "the cloud-init drive"


_CLOUD_INIT = re.compile(r":(?:.*[/-])?cloudinit(?:\.[a-z0-9]+)?\Z")


def volumes_in(config: Mapping[str, str]) -> dict[str, str]:
    """Return the volumes of the disks of a configuration by slot, unused disks included."""
    volumes: dict[str, str] = {}
    for slot in filter(VOLUME.match, config):
        volume = volume_of(slot, config[slot])
        if volume:
            volumes[slot] = volume
    return volumes


def drives(config: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the drives of a configuration with their sub-keys, by slot."""
    return {slot: parse_option(slot, config[slot]) for slot in filter(DRIVE.match, config)}


def volume_of(slot: str, text: str) -> str | None:
    """Return the volume of a drive or an unused disk, or None for a CD drive."""
    drive = parse_option(slot, text)
    return drive.get("file") if is_disk(drive) else None


def storage_of(drive: Mapping[str, str]) -> str | None:
    """Return the storage a drive's volume is on; None for an empty CD drive or a path."""
    storage, colon, _name = drive.get("file", "").partition(":")
    return storage if colon else None


def kind_of(drive: Mapping[str, str]) -> str:
    """Return which of the three kinds of drives it is, as messages name it."""
    volume = drive.get("file", "")
    if _CLOUD_INIT.search(volume):
        return CLOUD_INIT
    if drive.get("media") == "cdrom":
        return CD
    return DISK


def is_cloud_init(drive: Mapping[str, str]) -> bool:
    """Return whether a drive is the cloud-init drive."""
    return kind_of(drive) == CLOUD_INIT


def is_disk(drive: Mapping[str, str]) -> bool:
    """Return whether a drive is a disk, neither a CD drive nor the cloud-init drive."""
    return kind_of(drive) == DISK


def is_cd(drive: Mapping[str, str]) -> bool:
    """Return whether a drive is a CD drive, but not the cloud-init drive."""
    return kind_of(drive) == CD


# PVE's default for a configuration without the option.
_MEMORY = 512


# Bytes for the state of the devices (qemu-server: QemuConfig.pm, __snapshot_save_vmstate).
_DEVICES = 500 * MIB


# Kinds of storages with a path.
_FILES = frozenset("dir nfs cifs cephfs btrfs glusterfs".split())


_FALLBACK = "local"


def memory_of(config: Mapping[str, str]) -> int:
    """Return the bytes of memory that a configuration gives a VM."""
    values = parse_option("memory", config.get("memory", ""))
    size = int(values.get("current", _MEMORY))
    return size * MIB


def cpus_of(config: Mapping[str, str]) -> int:
    """Return the maximum number of CPUs of a VM, including CPUs that can be plugged in later."""
    return int(config.get("cores") or 1) * int(config.get("sockets") or 1)


def cores_of(config: Mapping[str, str]) -> int:
    """Return the cores that a configuration gives a VM, over all sockets."""
    return int(config["vcpus"]) if config.get("vcpus") else cpus_of(config)


def state_volume(config: Mapping[str, str], cluster: ClusterState, node: str) -> tuple[str, int]:
    """Return the storage and the bytes of the volume for the memory of a VM.

    PVE creates it for a snapshot with memory and for hibernation, twice as large as the memory
    (qemu-server: QemuConfig.pm, __snapshot_save_vmstate and find_vmstate_storage).
    """
    size = 2 * memory_of(config) + _DEVICES
    storage = config.get("vmstatestorage")
    if not storage:
        chosen: dict[bool, str] = {}
        disks = filter(is_disk, drives(config).values())
        names = set(map(storage_of, disks))
        for name in sorted(filter(None, names)):
            row = cluster.storage_on(name, node)
            is_shared = row is not None and row.shared
            is_of_files = row is not None and row.kind in _FILES
            is_first = is_shared not in chosen
            if is_first or is_of_files:
                chosen[is_shared] = name
        local = chosen.get(False, _FALLBACK)
        storage = chosen.get(True, local)
    return storage, size


def figures_of(
    config: Mapping[str, str], images: Mapping[str, int] | None = None, *, template: bool = False
) -> QuotaFigures:
    """Return the figures that a quota counts of a VM with that configuration.

    `images` are the bytes of imported images by slot.
    """
    disk = 0
    for slot, drive in drives(config).items():
        if not is_disk(drive):
            continue
        size = read_size(drive.get("size"))
        if not size and images:
            size = images.get(slot)
        disk += size or 0
    if template:
        return QuotaFigures(disk=disk)
    return QuotaFigures(vms=1, cores=cores_of(config), memory=memory_of(config), disk=disk)


# Not part of a user's configuration: PVE generates them, or they are state.
HIDDEN = frozenset(
    "digest meta smbios1 vmgenid lock snapstate parent runningmachine runningcpu".split()
)
# Sub-keys of a disk that results show in another form, or not at all.
_OF_VOLUME = frozenset(("file", "size", "format", "import-from"))


def format_value(key: str, config: Mapping[str, str]) -> Any:
    """Return the value of an option of a configuration as plain data."""
    text = config[key]
    if key in _FORMATTERS:
        return _FORMATTERS[key](text)
    if VOLUME.match(key):
        values = parse_option(key, text)
        if is_cloud_init(values):
            return {"cloudinit": True, "storage": storage_of(values)}
        formatted: dict[str, Any] = {}
        if values.get("media") == "cdrom":
            formatted["volume"] = values.get("file")
        else:
            formatted.update(_volume(key, values))
        typed = typed_sub_keys(key, values)
        for name in sorted(typed.keys() - _OF_VOLUME):
            formatted[name] = typed[name]
        return formatted
    return typed_option(key, text)


def _volume(key: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the storage and the size of a disk."""
    formatted: dict[str, str] = {}
    storage = storage_of(values)
    if storage:
        formatted["storage"] = storage
    size = read_size(values.get("size"))
    is_firmware = key in FIRMWARE
    if size and not is_firmware:
        formatted["size"] = render_size(size)
    return formatted


def decode_keys(text: str) -> list[str]:
    """Return the lines of PVE's percent-encoded C(sshkeys)."""
    lines = map(str.strip, unquote(text).splitlines())
    return list(filter(None, lines))


def _format_boot(text: str) -> Any:
    """Return the devices of the boot order, or the old form of an order unchanged."""
    values = parse_option("boot", text)
    return values["order"].split(";") if "order" in values else values.get("legacy")


# The form of options that are more than a text, a number or a property string.
_FORMATTERS: Mapping[str, Callable[[str], Any]] = {
    "boot": _format_boot,
    "memory": lambda text: typed_sub_keys("memory", parse_option("memory", text)).get("current"),
    "tags": lambda text: sorted(parse_tags(text)),
    "sshkeys": decode_keys,
    "cipassword": lambda _text: SECRET_IS_SET,
    "description": lambda text: split_notes(text)[0],
    "nameserver": lambda text: text.replace(",", " ").split(),
}
