# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disks, CD drives, NICs and the cloud-init of a VM as options of module vms (pure).

A VM without a cloud-init drive has its settings under PVE's own names: the option C(cloud_init)
would add the drive. Passwords are left out, because PVE does not return them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....._foundation.core import validate
from ....._foundation.core.quantities import MIB, read_size, render_size
from ....._foundation.schema.formats import rule_of
from ....._foundation.spec.generated.vm_rules import SCALARS
from ....kinds.vm.config.actual import DRIVE, decode_keys, is_cd, is_cloud_init, storage_of
from ...export.settings import (
    Config,
    InexpressibleSetting,
    SettingAlternative,
    SettingGroup,
    is_valid,
    item_of,
    parsed,
    piece,
    typed,
)
from .hardware import differing, is_default

_NIC = re.compile(r"^net\d+\Z")


_UNUSED = re.compile(r"^unused\d+\Z")


_ADDRESSES = re.compile(r"^ipconfig\d+\Z")


_FILE = re.compile(r"\.(raw|qcow2|vmdk)\Z")


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
            omitted = (InexpressibleSetting(slot, config[slot]),)
            name_alone = SettingAlternative({"disks": [{"name": slot}]}, omitted)
            if is_cd(drive):
                best = _cd(slot, drive)
            else:
                best = _disk(slot, drive)
            yield SettingGroup((best, name_alone), omitted)
    if config.get("bios") == "ovmf" and "efidisk0" not in config:
        yield piece("efidisk0", "", {"disks": [_NO_EFI_DISK]})
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
    # PVE decides the size of a firmware disk
    size = 0 if slot in _OLD_FIRMWARE else read_size(drive.get("size")) or 0
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
    values = differing(key, parsed(key, config[key]))
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
    nic = {"name": key, **item}
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


_PASSWORD = "cipassword"


_DEFAULT_DRIVE = "ide2"


_NAMED_SLOTS = ("ide", "sata", "scsi")


_NO_DRIVE = "without a cloud-init drive there is no option for it"


def secrets_of(config: Config) -> tuple[str, ...]:
    """Return the options whose values PVE does not return."""
    return ("cloud_init.password",) if _PASSWORD in config else ()


def cloud_init_pieces(config: Config) -> Iterator[SettingGroup]:
    """Yield the pieces of a VM with this configuration."""
    slots: list[str] = []
    for slot in sorted(filter(DRIVE.match, config)):
        if is_cloud_init(parsed(slot, config[slot])):
            slots.append(slot)
    for slot in slots[:1]:
        text = config[slot]
        storage = storage_of(parsed(slot, text))
        options: dict[str, Any] = {"storage": storage}
        is_named = slot.startswith(_NAMED_SLOTS)
        if slot != _DEFAULT_DRIVE and is_named:
            options["drive"] = slot
        yield piece(slot, text, {"cloud_init": options})
    for slot in slots[1:]:
        yield piece(slot, config[slot], reason="a second cloud-init drive")
    has_drive = bool(slots)
    yield from _settings(config, has_drive=has_drive)
    yield from _keys(config, has_drive=has_drive)
    yield from _snippets(config, has_drive=has_drive)


def _settings(config: Config, *, has_drive: bool) -> Iterator[SettingGroup]:
    """Yield the options of cloud-init that are scalars in PVE."""
    for option, key in SCALARS["cloud_init"].items():
        if key not in config or is_default(key, config[key]):
            continue
        text = config[key]
        value = typed(text, rule_of(key) or {})
        raw = {"options": {key: value}}
        if option == "nameservers":
            value = text.replace(",", " ").split()
        yield _either(key, text, {option: value}, raw, has_drive=has_drive)


def _either(
    key: str, text: str, own: Mapping[str, Any], raw: Mapping[str, Any], *, has_drive: bool
) -> SettingGroup:
    """Return a setting as an option of cloud-init; without a drive only under PVE's own name."""
    if has_drive:
        return piece(key, text, {"cloud_init": own}, raw)
    return piece(key, text, raw)


def _keys(config: Config, *, has_drive: bool) -> Iterator[SettingGroup]:
    """Yield the SSH keys, without comments between them."""
    if "sshkeys" not in config:
        return
    keys: list[str] = []
    all_lost: list[InexpressibleSetting] = []
    comments: list[InexpressibleSetting] = []
    for line in decode_keys(config["sshkeys"]):
        all_lost.append(InexpressibleSetting("sshkeys", line, _NO_DRIVE))
        if line.startswith("#"):
            comments.append(InexpressibleSetting("sshkeys", line, "a comment"))
        else:
            keys.append(line)
    if not has_drive:
        yield SettingGroup((), tuple(all_lost))
        return
    options = {"cloud_init": {"ssh_keys": keys}}
    with_keys = SettingAlternative(options, tuple(comments))
    without = InexpressibleSetting("sshkeys", config["sshkeys"], "not each line is a public key")
    yield SettingGroup((with_keys,), (without,))


def _snippets(config: Config, *, has_drive: bool) -> Iterator[SettingGroup]:
    if "cicustom" not in config:
        return
    text = config["cicustom"]
    volumes = parsed("cicustom", text)
    yield _either(
        "cicustom",
        text,
        {"snippets": volumes},
        {"options": {"cicustom": text}},
        has_drive=has_drive,
    )
