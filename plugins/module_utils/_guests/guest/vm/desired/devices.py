# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Converts the lists of disks and NICs of a task into PVE's device keys and sub-keys (pure).

Each item has its name, and its values are already checked one by one; this module checks their
combinations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ....._foundation.core import validate
from ....._foundation.schema.formats import rule_of
from ....kinds.hardware import MOVED, Disk
from ...desired import canonical
from ...desired.devices import SubKeys, add_open, addresses_of, declared, require_receiver
from ...desired.layers import disk_slots
from .values import TABLES

_SLOT = re.compile(r"^(ide|sata|scsi|virtio|unused)\d+$|^efidisk0$|^tpmstate0$")
_NIC = re.compile(r"^net\d+$")
_OF_FIXED_SIZE = ("efidisk0", "tpmstate0")
_VOLUME_KEYS = frozenset(("file", "volume", "size", "format", "import-from"))


def read_disks(items: Sequence[Mapping[str, Any]]) -> tuple[Disk, ...]:
    """Return the disks of a VM. Raises ValidationFailed."""
    disks: dict[str, Disk] = {}
    for item in items:
        slot = str(item["name"])
        if slot in disks:
            raise validate.refused("disks", slot, "is listed twice", "List each drive once")
        disks[slot] = _disk(slot, item)
    return tuple(disks.values())


def require_disks(items: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValidationFailed for an invalid drive name, and for options that exclude each other.

    The values are not checked yet: a size that a drive cannot have needs no other number.
    """
    for slot, item in zip(disk_slots(items), items, strict=True):
        _require_disk(slot, item)


def _require_disk(slot: str, item: Mapping[str, Any]) -> None:
    is_drive = _SLOT.match(slot) is not None
    if not is_drive or not rule_of(slot):
        raise validate.refused(
            "disks", slot, "is not a drive of a VM", "Use a name such as scsi0, virtio1 or sata0"
        )
    bus = item.get("bus") or ""
    if not slot.startswith(bus):
        raise validate.refused("disks", slot, f"is not on bus {bus}", "Give the name or the bus")
    if slot.startswith("unused") and item.get("state") not in ("absent", MOVED):
        raise validate.refused(
            "disks",
            slot,
            "is not a drive, but a disk that no drive uses",
            "It can only be absent or moved",
        )
    require_receiver(f"disks.{slot}", slot, item, _SLOT)
    _require_content(slot, item)


def _require_content(slot: str, item: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for a size or an ISO with an option that excludes it."""
    has_size = item.get("size") is not None
    if has_size and slot in _OF_FIXED_SIZE:
        raise validate.refused(
            f"disks.{slot}.size",
            item["size"],
            "cannot be chosen: PVE decides how large it is",
            "Leave size out",
        )
    if item.get("volume"):
        _require_volume_alone(slot, item)
    has_content = has_size or item.get("import_from")
    if has_content and item.get("iso"):
        raise validate.refused(
            f"disks.{slot}",
            item["iso"],
            "is an ISO and has no size or import",
            "Give the ISO alone",
        )


def _require_volume_alone(slot: str, item: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for an option of a new disk beside an existing volume."""
    for name in ("size", "storage", "format", "import_from", "iso"):
        if item.get(name) is not None:
            raise validate.refused(
                f"disks.{slot}.{name}",
                item[name],
                "is given beside an existing volume",
                "Leave it out, or leave volume out for a new disk",
            )


def _disk(slot: str, item: Mapping[str, Any]) -> Disk:
    """Return the disk that an item of the list describes."""
    options = _disk_options(slot, item)
    return Disk(
        slot=slot,
        state=item.get("state") or "present",
        size=item.get("size"),
        storage=item.get("storage") or None,
        format=item.get("format"),
        import_from=item.get("import_from") or None,
        volume=item.get("iso") or item.get("volume"),
        bwlimit=item.get("bwlimit"),
        target_vmid=item.get("target_vmid"),
        target_slot=item.get("target_slot") or slot,
        allocation=item.get("type"),
        options=canonical.sub_keys(slot, options),
    )


def _disk_options(slot: str, item: Mapping[str, Any]) -> SubKeys:
    """Return PVE's sub-keys for the options of a disk."""
    values = declared(TABLES, "disks", item)
    if item.get("iso"):
        values["media"] = "cdrom"
    add_open(f"disks.{slot}", item, values, _VOLUME_KEYS)
    return values


def read_nics(items: Sequence[Mapping[str, Any]]) -> dict[str, SubKeys | None]:
    """Return sub-keys of C(netN) and C(ipconfigN), None to remove one. Raises ValidationFailed."""
    result: dict[str, SubKeys | None] = {}
    for item in items:
        key = str(item["name"])
        is_nic = _NIC.match(key) is not None
        if not is_nic or not rule_of(key):
            raise validate.refused("nics", key, "is not a NIC of a VM", "Use a name such as net0")
        if key in result:
            raise validate.refused("nics", key, "is listed twice", "List each NIC once")
        ipconfig = f"ipconfig{key.removeprefix('net')}"
        if item.get("state") == "absent":
            result[key] = None
            result[ipconfig] = None
            continue
        result[key] = _nic(key, item)
        addresses = addresses_of(key, item)
        if addresses:
            result[ipconfig] = addresses
    return result


def _nic(key: str, item: Mapping[str, Any]) -> SubKeys:
    """Return PVE's sub-keys for the options of a NIC; None removes one."""
    values = declared(TABLES, "nics", item)
    add_open(f"nics.{key}", item, values)
    return values
