# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks and NICs as a task lists them become PVE's device keys and sub-keys (pure).

Each item has its name, and its values are checked one by one already; here is what they must be
together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._core import validate
from ..._schema.formats import rule_of
from ..._spec.vm_rules import SCALARS, WORDS
from ..model import Disk
from . import canonical
from .values import WORDS_FOR_IPV4, WORDS_FOR_IPV6

_SLOT = re.compile(r"^(ide|sata|scsi|virtio|unused)\d+$|^efidisk0$|^tpmstate0$")
_NIC = re.compile(r"^net\d+$")
_OF_FIXED_SIZE = ("efidisk0", "tpmstate0")
_VOLUME_KEYS = frozenset(("file", "volume", "size", "format", "import-from"))

SubKeys = dict[str, Any]


def read_disks(items: Sequence[Mapping[str, Any]]) -> tuple[Disk, ...]:
    """Return the disks of a VM. Raises ValidationFailed."""
    disks: dict[str, Disk] = {}
    for item in items:
        slot = str(item["name"])
        _require_disk(slot, item)
        if slot in disks:
            raise validate.refused("disks", slot, "is listed twice", "List each drive once")
        disks[slot] = _disk(slot, item)
    return tuple(disks.values())


def _require_disk(slot: str, item: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for a name that is not a drive, and for options that do not go
    together.
    """
    is_drive = _SLOT.match(slot) is not None
    if not is_drive or not rule_of(slot):
        raise validate.refused(
            "disks",
            slot,
            "is not a drive of a VM",
            "Use a name such as scsi0, virtio1 or sata0",
        )
    bus = item.get("bus") or ""
    if not slot.startswith(bus):
        raise validate.refused(
            "disks",
            slot,
            f"is not on bus {bus}",
            "Give the name or the bus",
        )
    is_kept = item.get("state") != "absent"
    if is_kept and slot.startswith("unused"):
        raise validate.refused(
            "disks",
            slot,
            "is not a drive, but a disk that no drive uses",
            "It can only be absent",
        )
    _require_content(slot, item)


def _require_content(slot: str, item: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for a size or an ISO beside what excludes it."""
    has_size = item.get("size") is not None
    if has_size and slot in _OF_FIXED_SIZE:
        raise validate.refused(
            f"disks.{slot}.size",
            item["size"],
            "cannot be chosen: PVE decides how large it is",
            "Leave size out",
        )
    has_content = has_size or item.get("import_from")
    if has_content and item.get("iso"):
        raise validate.refused(
            f"disks.{slot}",
            item["iso"],
            "is an ISO and has no size or import",
            "Give the ISO alone",
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
        volume=item.get("iso"),
        allocation=item.get("type"),
        options=canonical.sub_keys(slot, options),
    )


def _disk_options(slot: str, item: Mapping[str, Any]) -> SubKeys:
    """Return PVE's sub-keys for the options of a disk."""
    values = _declared("disks", item)
    if item.get("iso"):
        values["media"] = "cdrom"
    _add_open(f"disks.{slot}", item, values, _VOLUME_KEYS)
    return values


def _declared(place: str, item: Mapping[str, Any]) -> SubKeys:
    """Return the options that are plain sub-keys of PVE; an empty text removes one."""
    words = WORDS.get(place, {})
    values: SubKeys = {}
    for name, key in SCALARS[place].items():
        value = item.get(name)
        if value is not None:
            values[key] = words.get(name, {}).get(value, value)
    return values


def _add_open(
    where: str, item: Mapping[str, Any], values: SubKeys, closed: frozenset[str] = frozenset()
) -> None:
    """Add the sub-keys that an item gives under PVE's own names."""
    given = item.get("options") or {}
    for name, value in given.items():
        if name in closed.union(values):
            raise validate.refused(
                f"{where}.options",
                name,
                "has an option of its own",
                "Set it there",
            )
        values[str(name)] = value


def read_nics(items: Sequence[Mapping[str, Any]]) -> dict[str, SubKeys | None]:
    """Return C(netN) and C(ipconfigN) with their sub-keys; None for one to remove.

    Raises ValidationFailed.
    """
    result: dict[str, SubKeys | None] = {}
    for item in items:
        key = str(item["name"])
        is_nic = _NIC.match(key) is not None
        if not is_nic or not rule_of(key):
            raise validate.refused(
                "nics",
                key,
                "is not a NIC of a VM",
                "Use a name such as net0",
            )
        if key in result:
            raise validate.refused(
                "nics",
                key,
                "is listed twice",
                "List each NIC once",
            )
        ipconfig = f"ipconfig{key.removeprefix('net')}"
        if item.get("state") == "absent":
            result[key] = None
            result[ipconfig] = None
            continue
        result[key] = _nic(key, item)
        addresses = _addresses(key, item)
        if addresses:
            result[ipconfig] = addresses
    return result


def _nic(key: str, item: Mapping[str, Any]) -> SubKeys:
    """Return PVE's sub-keys for the options of a NIC; None removes one."""
    values = _declared("nics", item)
    _add_open(f"nics.{key}", item, values)
    return values


@dataclass(frozen=True)
class _Family:
    """A version of IP: its options of a NIC, PVE's sub-key of the gateway, words for an address."""

    address: str
    gateway: str
    gateway_key: str
    words: tuple[str, ...]


_FAMILIES = (
    _Family("ip", "gateway", "gw", WORDS_FOR_IPV4),
    _Family("ip6", "gateway6", "gw6", WORDS_FOR_IPV6),
)


def _addresses(key: str, item: Mapping[str, Any]) -> SubKeys:
    """Return the sub-keys of C(ipconfigN), None for one to remove (pve-qm-ipconfig)."""
    values: SubKeys = {}
    for family in _FAMILIES:
        values.update(_addresses_of(family, item))
        router = values.get(family.gateway_key)
        if router and values.get(family.address) in (None, *family.words):
            option = f"nics.{key}.{family.gateway}"
            why = f"needs a static {family.address}"
            raise validate.refused(option, router, why, f"Give {family.address} with a prefix")
    return values


def _addresses_of(family: _Family, item: Mapping[str, Any]) -> SubKeys:
    """Return the sub-keys of one version of IP."""
    values: SubKeys = {}
    if item.get(family.address) is not None:
        values[family.address] = item[family.address].strip() or None
        if values[family.address] in (None, *family.words):
            values[family.gateway_key] = None  # a gateway needs a static address
    if item.get(family.gateway) is not None:
        values[family.gateway_key] = item[family.gateway].strip() or None
    return values
