# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks and NICs as a task lists them become PVE's device keys and sub-keys (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._core import validate
from ..._core.errors import ValidationFailed
from ..._core.quantities import parse_disk_size
from ..._schema.check import Refusal, check_option, check_part
from ..._schema.formats import canonical_sub_key, format_of, rule_of
from ..._spec.vm_rules import SCALARS
from ..model import Disk
from .blanks import is_blank
from .layers import free_slot

_SLOT = re.compile(r"^(ide|sata|scsi|virtio|unused)\d+$|^efidisk0$|^tpmstate0$")
_NIC = re.compile(r"^net\d+$")
_DISCARD = {True: "on", False: "ignore"}
_NIC_CHECKS = {"mac": validate.mac, "bridge": validate.bridge}
_VOLUME_KEYS = frozenset(("file", "volume", "size", "format", "import-from"))


def read_disks(items: Sequence[Mapping[str, Any]]) -> tuple[Disk, ...]:
    """Return the disks of a VM; one without a name gets the first free slot of its bus."""
    named = {str(item["name"]) for item in items if item.get("name")}
    disks: dict[str, Disk] = {}
    for item in items:
        slot = item.get("name")
        if not slot:
            slot = free_slot(item.get("bus") or "scsi", named)
        _check_slot(slot, item)
        if slot in disks:
            raise validate.refused("disks", slot, "is listed twice", "List each drive once")
        named.add(slot)
        disks[slot] = _disk(slot, item)
    return tuple(disks.values())


def _check_slot(slot: str, item: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for a name that is not a drive, or not on the bus of the item."""
    if not _SLOT.match(slot) or not rule_of(slot):
        raise validate.refused(
            "disks",
            slot,
            "is not a drive of a VM",
            "Use a name such as scsi0, virtio1 or sata0",
        )
    bus = item.get("bus")
    is_named = bool(item.get("name"))
    if bus and is_named and not slot.startswith(bus):
        raise validate.refused("disks", slot, f"is not on bus {bus}", "Give the name or the bus")
    is_removed = item.get("state") == "absent"
    if slot.startswith("unused") and not is_removed:
        raise validate.refused(
            "disks",
            slot,
            "is not a drive, but a disk that no drive uses",
            "It can only be absent",
        )


def _disk(slot: str, item: Mapping[str, Any]) -> Disk:
    """Return the disk that an item of the list describes."""
    where = f"disks.{slot}"
    options = _disk_options(slot, item)
    _check_iso(where, item)
    size = _disk_size(slot, item.get("size"))
    iso = item.get("iso")
    if iso and iso != "none":
        iso = validate.volume(iso, f"{where}.iso")
    storage = item.get("storage") or None
    if storage:
        storage = validate.storage(storage, f"{where}.storage")
    image = item.get("import_from") or None
    if image:
        image = validate.volume(image, f"{where}.import_from")
    return Disk(
        slot=slot,
        state=item.get("state") or "present",
        size=size,
        storage=storage,
        format=item.get("format"),
        import_from=image,
        volume=iso,
        allocation=item.get("type"),
        options=options,
    )


def _check_iso(where: str, item: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for an ISO that has options of a disk."""
    iso = item.get("iso")
    if not iso:
        return
    if item.get("size") is None and not item.get("import_from"):
        return
    raise validate.refused(where, iso, "is an ISO and has no size or import", "Give the ISO alone")


def _disk_size(slot: str, size: Any) -> int | None:
    """Return the size of a disk in bytes, None where it is left out."""
    if size is None:
        return None
    what = f"disks.{slot}.size"
    if slot in ("efidisk0", "tpmstate0"):
        why = "cannot be chosen: PVE decides how large it is"
        raise validate.refused(what, size, why, "Leave size out")
    return parse_disk_size(size, what=what)


def _disk_options(slot: str, item: Mapping[str, Any]) -> dict[str, str | None]:
    """Return PVE's sub-keys for the options of a disk; None removes one."""
    options: dict[str, str | None] = {}
    for ours, theirs in SCALARS["disks"].items():
        value = item.get(ours)
        if value is not None:
            options[theirs] = _text_or_none(slot, theirs, value)
    discard = item.get("discard")
    if discard is not None:
        options["discard"] = _DISCARD[bool(discard)]
    if item.get("iso"):
        options["media"] = "cdrom"
    _add_open(f"disks.{slot}", slot, item.get("options") or {}, options, _VOLUME_KEYS)
    check_given_parts(slot, options)
    return options


def read_nics(items: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str | None] | None]:
    """Return C(netN) and C(ipconfigN) with their sub-keys; None for one to remove."""
    result: dict[str, dict[str, str | None] | None] = {}
    for position, item in enumerate(items):
        key = item.get("name") or f"net{position}"
        if not _NIC.match(key) or not rule_of(key):
            raise validate.refused("nics", key, "is not a NIC of a VM", "Use a name such as net0")
        if key in result:
            raise validate.refused("nics", key, "is listed twice", "List each NIC once")
        number = key.removeprefix("net")
        ipconfig = f"ipconfig{number}"
        if item.get("state") == "absent":
            result[key] = None
            result[ipconfig] = None
            continue
        result[key] = _nic(key, item)
        addresses = _addresses(key, item)
        if addresses:
            result[ipconfig] = addresses
    return result


def _nic(key: str, item: Mapping[str, Any]) -> dict[str, str | None]:
    """Return PVE's sub-keys for the options of a NIC; None removes one."""
    where = f"nics.{key}"
    values: dict[str, str | None] = {}
    for ours, theirs in SCALARS["nics"].items():
        value = item.get(ours)
        if value is None:
            continue
        if ours in _NIC_CHECKS:
            value = _NIC_CHECKS[ours](value, f"{where}.{ours}")
        values[theirs] = canonical_sub_key(key, theirs, value)
    if item.get("vlan") == 0:  # 0 stands for no VLAN
        values["tag"] = None
    trunks = item.get("trunks")
    if trunks is not None:
        values["trunks"] = ";".join(trunks) or None
    _add_open(where, key, item.get("options") or {}, values, frozenset())
    check_given_parts(key, values)
    return values


@dataclass(frozen=True)
class _Family:
    """A version of IP: its options of a NIC, PVE's sub-key of the gateway, words for an address."""

    version: int
    address: str
    gateway: str
    gateway_key: str
    words: tuple[str, ...]


_FAMILIES = (
    _Family(4, "ip", "gateway", "gw", ("dhcp",)),
    _Family(6, "ip6", "gateway6", "gw6", ("dhcp", "auto")),
)


def _addresses(key: str, item: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the sub-keys of C(ipconfigN), None for one to remove (pve-qm-ipconfig)."""
    values: dict[str, str | None] = {}
    for family in _FAMILIES:
        values.update(_addresses_of(family, f"nics.{key}", item))
    return values


def _addresses_of(family: _Family, where: str, item: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the sub-keys of one version of IP."""
    values: dict[str, str | None] = {}
    address = item.get(family.address)
    if address is not None:
        is_static = address not in family.words and not is_blank(address)
        if is_static:
            option = f"{where}.{family.address}"
            values[family.address] = validate.cidr(address, family.version, option)
        else:
            values[family.address] = address.strip() or None
            values[family.gateway_key] = None  # a gateway needs a static address
    router = item.get(family.gateway)
    if router is None:
        return values
    values[family.gateway_key] = None
    if is_blank(router):
        return values
    option = f"{where}.{family.gateway}"
    if values.get(family.address) in (None, *family.words):
        why = f"needs a static {family.address}"
        raise validate.refused(option, router, why, f"Give {family.address} with a prefix")
    values[family.gateway_key] = validate.address(router, family.version, option)
    return values


def _add_open(
    where: str,
    key: str,
    given: Mapping[str, Any],
    values: dict[str, str | None],
    closed: frozenset[str],
) -> None:
    """Add sub-keys under PVE's own names; null takes one out."""
    for name, value in given.items():
        if name in closed or name in values:
            raise validate.refused(
                f"{where}.options", name, "has an option of its own", "Set it there"
            )
        values[str(name)] = _text_or_none(key, str(name), value)


def _text_or_none(key: str, name: str, value: Any) -> str | None:
    """Return the canonical text of a sub-key, None for an empty value, which removes it."""
    if value is None or is_blank(value):
        return None
    return canonical_sub_key(key, name, value)


def check_given_parts(key: str, values: Mapping[str, str | None]) -> None:
    """Raise ValidationFailed as check_parts does, for those that are not removed."""
    given = {name: value for name, value in values.items() if value is not None}
    check_parts(key, given)


def check_parts(key: str, values: Mapping[str, str]) -> None:
    """Raise ValidationFailed for a value that no version of PVE takes in a sub-key.

    Names that the schema does not have are judged by the server's version, see `check_names`.
    """
    fmt = format_of(key)
    if fmt is None:
        return
    for name, value in values.items():
        refusal = check_part(key, name, value)
        if refusal and name in fmt:
            raise refusal_error(f"{key}.{name}", value, refusal)


def check_scalar(key: str, text: str) -> None:
    """Raise ValidationFailed for a plain option that no known version of PVE takes with that
    value.
    """
    refusal = check_option(key, text)
    if refusal:
        raise refusal_error(key, text, refusal)


def refusal_error(what: str, text: str, refusal: Refusal) -> ValidationFailed:
    """Return the error of a value that PVE refuses, in words for people where the schema has the
    cause.
    """
    answer = refusal.answer or f"was refused ({refusal.reason})"
    return validate.refused(what, text[:40], answer, refusal.next_step or "Write it as PVE does")
