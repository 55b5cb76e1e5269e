# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disks, CD drives and NICs of a VM as options of module vms (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....._foundation.core import validate
from ....._foundation.core.quantities import MIB, read_size, render_size
from ....._foundation.spec.generated.vm_rules import SCALARS
from ....kinds.vm.config.actual import DRIVE, is_cd, is_cloud_init, storage_of
from ...export.settings import (
    Config,
    InexpressibleSetting,
    SettingAlternative,
    SettingGroup,
    is_valid,
    item_of,
    parsed,
    piece,
)
from .hardware import differing

_NIC = re.compile(r"^net\d+$")
_UNUSED = re.compile(r"^unused\d+$")
_ADDRESSES = re.compile(r"^ipconfig\d+$")
_FILE = re.compile(r"\.(raw|qcow2|vmdk)$")
# Sub-keys that follow from the volume.
_OF_VOLUME = frozenset(("file", "volume", "size", "format", "import-from", "media"))
# Defaults of a new firmware disk, and the defaults of missing sub-keys (QemuServer.pm, OVMF.pm).
_NEW_FIRMWARE = {"efitype": "4m", "pre-enrolled-keys": "1", "version": "v2.0"}
_OLD_FIRMWARE: Mapping[str, Mapping[str, str]] = {
    "efidisk0": {"efitype": "2m", "pre-enrolled-keys": "0"},
    "tpmstate0": {"version": "v1.2"},
}
_NO_EFI_DISK = {"name": "efidisk0", "state": "absent"}
_IP = {"ip": "ip", "gw": "gateway", "ip6": "ip6", "gw6": "gateway6"}
_OUTSIDE = "it is not a volume of a storage"


def device_pieces(config: Config) -> Iterator[SettingGroup]:
    """Yield the pieces for the drives and NICs of a VM, in the order of their numbers."""
    for slot in _sorted(DRIVE, config):
        drive = parsed(slot, config[slot])
        if not is_cloud_init(drive):
            yield _drive(slot, config[slot], drive)
    yield from _firmware(config)
    for key in _sorted(_NIC, config):
        yield _nic(key, config)
    for key in _sorted(_UNUSED, config):
        yield piece(key, config[key], reason="a disk that no drive uses")
    for key in _sorted(_ADDRESSES, config):
        if key.replace("ipconfig", "net") not in config:
            yield piece(key, config[key], reason="an address without a NIC")


def _sorted(pattern: re.Pattern[str], config: Config) -> list[str]:
    """Return the devices of a kind, by their number."""
    return sorted(filter(pattern.match, config), key=_by_number)


def _by_number(key: str) -> tuple[str, int]:
    kind = key.rstrip("0123456789")
    number = key.removeprefix(kind)
    return kind, int(number)


def _firmware(config: Config) -> Iterator[SettingGroup]:
    """Yield a setting for a VM with UEFI but without an EFI disk: otherwise a run would add one."""
    if config.get("bios") != "ovmf" or "efidisk0" in config:
        return
    yield piece("efidisk0", "", {"disks": [_NO_EFI_DISK]})


def _drive(slot: str, text: str, drive: Mapping[str, str]) -> SettingGroup:
    """Return a drive; only its name if its options cannot be expressed."""
    omitted = (InexpressibleSetting(slot, text),)
    name_alone = SettingAlternative({"disks": [{"name": slot}]}, omitted)
    if is_cd(drive):
        best = _cd(slot, drive)
    else:
        best = _disk(slot, drive)
    return SettingGroup((best, name_alone), omitted)


def _cd(slot: str, drive: Mapping[str, str]) -> SettingAlternative:
    """Return a CD drive. No option exists for a drive of the host or a file outside a storage."""
    volume = drive.get("file", "none")
    item = {"name": slot, **_options(slot, drive)}
    if volume == "none" or is_valid(validate.volume, volume):
        item["iso"] = volume
        return SettingAlternative({"disks": [item]})
    others = item.get("options", {})
    item["options"] = {"media": "cdrom", **others}
    omitted = InexpressibleSetting(slot, volume, _OUTSIDE)
    return SettingAlternative({"disks": [item]}, (omitted,))


def _disk(slot: str, drive: Mapping[str, str]) -> SettingAlternative:
    item: dict[str, Any] = {"name": slot}
    omitted: list[InexpressibleSetting] = []
    volume = drive.get("file", "")
    storage = storage_of(drive)
    if storage is None:
        omitted.append(InexpressibleSetting(slot, volume, _OUTSIDE))
    else:
        item["storage"] = storage
    size = _size(slot, drive)
    if size >= MIB:
        item["size"] = render_size(size)
    elif size:
        text = f"size={drive['size']}"
        omitted.append(InexpressibleSetting(slot, text, "it is smaller than 1M"))
    named = _FILE.search(volume)
    if named:
        item["format"] = named.group(1)
    if drive.get("format"):
        item["format"] = drive["format"]
    item.update(_options(slot, drive))
    return SettingAlternative({"disks": [item]}, tuple(omitted))


def _size(slot: str, drive: Mapping[str, str]) -> int:
    """Return the size of a disk in bytes, 0 if it is unknown or PVE decides it."""
    if slot in _OLD_FIRMWARE:
        return 0
    return read_size(drive.get("size")) or 0


def _options(slot: str, drive: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a drive that differ from PVE's default."""
    settings = differing(slot, drive)
    for name in _OF_VOLUME & settings.keys():
        del settings[name]
    for name, old in _OLD_FIRMWARE.get(slot, {}).items():
        value = drive.get(name, old)
        settings.pop(name, None)
        if value != _NEW_FIRMWARE[name]:
            settings[name] = value
    item = item_of(SCALARS["disks"], slot, settings)
    if "discard" in item:
        item["discard"] = settings["discard"] == "on"
    return item


def _nic(key: str, config: Config) -> SettingGroup:
    """Return a NIC with its addresses, or without them if they cannot be expressed."""
    nic = {"name": key, **_nic_options(key, config[key])}
    omitted = InexpressibleSetting(key, config[key])
    alone = SettingAlternative({"nics": [nic]})
    address_key = key.replace("net", "ipconfig")
    if address_key not in config:
        return SettingGroup((alone,), (omitted,))
    text = config[address_key]
    addresses = InexpressibleSetting(address_key, text)
    odd: list[InexpressibleSetting] = []
    whole = dict(nic)
    for name, value in parsed(address_key, text).items():
        if name in _IP:
            whole[_IP[name]] = value
        else:
            odd.append(InexpressibleSetting(address_key, f"{name}={value}"))
    best = SettingAlternative({"nics": [whole]}, tuple(odd))
    second = SettingAlternative(alone.options, (addresses,))
    return SettingGroup((best, second), (omitted, addresses))


def _nic_options(key: str, text: str) -> dict[str, Any]:
    """Return the options of a NIC that differ from those of a new NIC."""
    values = differing(key, parsed(key, text))
    if values.get("model") == "virtio":
        del values["model"]
    trunks = values.pop("trunks", "")
    item = item_of(SCALARS["nics"], key, values)
    if trunks:
        item["trunks"] = trunks.split(";")
    if "bridge" not in item:
        # otherwise a new NIC gets a bridge
        others = item.get("options", {})
        item["options"] = {"bridge": "", **others}
    return item
