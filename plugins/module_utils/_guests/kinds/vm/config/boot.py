# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The boot order: the words disk, cdrom and network, and how PVE itself changes an order (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from ....._foundation.schema.formats import parse_option
from ..model import VmHardware
from .actual import FIRMWARE, drives, is_cd, is_disk

_NIC = re.compile(r"^net\d+$")


def first_boot_order(config: Mapping[str, str], hardware: VmHardware) -> str:
    """Return the order of a new VM: its first disk, its first CD, its first NIC.

    An empty text if it has none of them. It is set explicitly so that check mode can predict it.
    """
    first: list[str] = []
    for names in _devices(config, hardware).values():
        first += names[:1]
    return _order(first)


def boot_order(text: str, config: Mapping[str, str], hardware: VmHardware) -> str:
    """Return the order with the words disk, network and cdrom replaced by the VM's devices."""
    devices = _devices(config, hardware)
    order: list[str] = []
    for item in filter(None, text.split(";")):
        order += devices.get(item, [item])
    unique = dict.fromkeys(order)
    return ";".join(unique)


def order_after(
    target: Mapping[str, str], sets: Mapping[str, str], gone: Collection[str]
) -> str | None:
    """Return the boot order as PVE itself changes it with an update, or None if it stays.

    PVE takes out a removed device, and appends a CD drive that is written (update_vm_api).
    """
    text = parse_option("boot", target.get("boot", "")).get("order")
    if not text:
        return None
    before = text.split(";")
    written_cds: list[str] = []
    for slot, drive in drives(sets).items():
        is_listed = slot in before
        if is_cd(drive) and not is_listed:
            written_cds.append(slot)
    after = [device for device in before if device not in gone]
    after += sorted(written_cds)
    return None if after == before else _order(after)


def _order(devices: Sequence[str]) -> str:
    """Return the option that boots from these devices; without devices an empty text."""
    if not devices:
        return ""
    joined = ";".join(devices)
    return f"order={joined}"


def _devices(config: Mapping[str, str], hardware: VmHardware) -> dict[str, list[str]]:
    """Return the bootable devices of a VM, by the words for them, in the order of a first boot."""
    disks: list[str] = []
    cds: list[str] = []
    for slot, drive in drives(config).items():
        is_firmware = slot.startswith(FIRMWARE)
        if is_cd(drive):
            cds.append(slot)
        elif is_disk(drive) and not is_firmware:
            disks.append(slot)
    keys = {*config, *hardware.property_strings} - hardware.unset
    nics = filter(_NIC.match, keys)
    return {
        "disk": sorted(disks, key=_by_index),
        "cdrom": sorted(cds, key=_by_index),
        "network": sorted(nics, key=_by_index),
    }


def _by_index(key: str) -> tuple[str, int]:
    """Return the family of a device and its number."""
    family = key.rstrip("0123456789")
    number = key.removeprefix(family)
    return family, int(number)
