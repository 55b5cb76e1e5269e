# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks and NICs as people list them become PVE's device keys and sub-keys (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._core import validate
from .._core.propstring import canonical
from .._core.quantities import parse_disk_size
from .._schema.check import check_options, check_part
from .._schema.formats import format_of, rule_of
from .model import Disk

_SLOT = re.compile(r"^(ide|sata|scsi|virtio|unused)\d+$|^efidisk0$|^tpmstate0$")
_NIC = re.compile(r"^net(\d+)$")
# PVE's own sub-key for each option of a NIC or a disk.
_NIC_KEYS = {
    "model": "model", "bridge": "bridge", "vlan": "tag", "mac": "macaddr", "firewall": "firewall",
    "link_down": "link_down", "mtu": "mtu", "rate": "rate", "queues": "queues",
}  # fmt: skip
_DISK_KEYS = {
    "cache": "cache", "ssd": "ssd", "iothread": "iothread", "backup": "backup", "replicate": "replicate",
    "readonly": "ro", "serial": "serial",
}  # fmt: skip
_VOLUME_KEYS = frozenset(("file", "volume", "size", "format", "import-from"))


def read_disks(items: Sequence[Mapping[str, Any]]) -> tuple[Disk, ...]:
    """Return the disks of a VM; one without a name gets the first slot of its bus that no other item names."""
    named = {str(item["name"]) for item in items if item.get("name")}
    disks: list[Disk] = []
    for item in items:
        slot = item.get("name") or _free_slot(item.get("bus") or "scsi", named)
        if not _SLOT.match(slot) or not rule_of(slot):
            raise validate.refused("disks", slot, "is no drive of a VM", "Use a name such as scsi0, virtio1 or sata0")
        if item.get("bus") and item.get("name") and not slot.startswith(item["bus"]):
            raise validate.refused("disks", slot, f"is not on bus {item['bus']}", "Give the name or the bus")
        if slot.startswith("unused") and item.get("state") != "absent":
            raise validate.refused("disks", slot, "is no drive, but a disk that none uses", "It can only be absent")
        if slot in (disk.slot for disk in disks):
            raise validate.refused("disks", slot, "is listed twice", "List each drive once")
        named.add(slot)
        disks.append(_disk(slot, item))
    return tuple(disks)


def _free_slot(bus: str, taken: Iterable[str]) -> str:
    return next(f"{bus}{index}" for index in range(256) if f"{bus}{index}" not in set(taken))


def _disk(slot: str, item: Mapping[str, Any]) -> Disk:
    where = f"disks.{slot}"
    options: dict[str, str | None] = {}
    for ours, theirs in _DISK_KEYS.items():
        if item.get(ours) not in (None, ""):
            options[theirs] = _text(slot, theirs, item[ours])
    if item.get("discard") is not None:
        options["discard"] = "on" if item["discard"] else "ignore"
    if item.get("iso"):
        options["media"] = "cdrom"
    _add_open(where, slot, item.get("options") or {}, options, _VOLUME_KEYS)
    check_parts(slot, {key: value for key, value in options.items() if value is not None})
    size = item.get("size")
    iso = item.get("iso")
    if iso and (size is not None or item.get("import_from")):
        raise validate.refused(where, iso, "is an ISO and has no size or import", "Give the ISO alone")
    if size is not None and slot in ("efidisk0", "tpmstate0"):
        raise validate.refused(f"{where}.size", size, "cannot be chosen: PVE decides how large it is", "Leave size out")
    return Disk(
        slot=slot,
        state=item.get("state") or "present",
        size=None if size is None else parse_disk_size(size, what=f"{where}.size"),
        storage=validate.storage(item["storage"], f"{where}.storage") if item.get("storage") else None,
        format=item.get("format"),
        import_from=validate.volume(item["import_from"], f"{where}.import_from") if item.get("import_from") else None,
        volume=iso if iso in (None, "none") else validate.volume(iso, f"{where}.iso"),
        options=options,
    )


def read_nics(items: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str | None] | None]:
    """Return C(netN) and C(ipconfigN) with their sub-keys; None for one that shall be removed."""
    result: dict[str, dict[str, str | None] | None] = {}
    for position, item in enumerate(items):
        key = item.get("name") or f"net{position}"
        found = _NIC.match(key)
        if not found or not rule_of(key):
            raise validate.refused("nics", key, "is no NIC of a VM", "Use a name such as net0")
        if key in result:
            raise validate.refused("nics", key, "is listed twice", "List each NIC once")
        ipconfig = f"ipconfig{found.group(1)}"
        if item.get("state") == "absent":
            result[key] = result[ipconfig] = None
            continue
        result[key] = _nic(key, item)
        addresses = _addresses(key, item)
        if addresses:
            result[ipconfig] = addresses
    return result


def _nic(key: str, item: Mapping[str, Any]) -> dict[str, str | None]:
    where = f"nics.{key}"
    values: dict[str, str | None] = {}
    for ours, theirs in _NIC_KEYS.items():
        value = item.get(ours)
        if value is None or value == "":
            continue
        if ours == "mac":
            value = validate.mac(value, f"{where}.mac")
        elif ours == "bridge":
            value = validate.bridge(value, f"{where}.bridge")
        elif ours == "vlan" and value == 0:  # 0 stands for no VLAN
            values["tag"] = None
            continue
        values[theirs] = _text(key, theirs, value)
    if item.get("trunks") is not None:
        values["trunks"] = ";".join(item["trunks"]) or None
    _add_open(where, key, item.get("options") or {}, values, frozenset())
    check_parts(key, {name: value for name, value in values.items() if value is not None})
    return values


def _addresses(key: str, item: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the sub-keys of C(ipconfigN); a gateway needs its address (pve-qm-ipconfig)."""
    where = f"nics.{key}"
    values: dict[str, str | None] = {}
    for ours, theirs, version, words in (("ip", "ip", 4, ("dhcp",)), ("ip6", "ip6", 6, ("dhcp", "auto"))):
        value = item.get(ours)
        if value in words:
            values[theirs], values["gw" if version == 4 else "gw6"] = value, None  # the gateway comes with the address
        elif value:
            values[theirs] = validate.cidr(value, version, f"{where}.{ours}")
    for ours, theirs, version, beside in (("gateway", "gw", 4, "ip"), ("gateway6", "gw6", 6, "ip6")):
        value = item.get(ours)
        if not value:
            continue
        if values.get(beside) in (None, "dhcp", "auto"):
            raise validate.refused(f"{where}.{ours}", value, f"needs a static {beside}", f"Give {beside} with a prefix")
        values[theirs] = validate.address(value, version, f"{where}.{ours}")
    return values


def _add_open(
    where: str, key: str, given: Mapping[str, Any], values: dict[str, str | None], closed: frozenset[str]
) -> None:
    """Add sub-keys under PVE's own names; null takes one out."""
    for name, value in given.items():
        if name in closed or name in values:
            raise validate.refused(f"{where}.options", name, "has an option of its own", "Set it there")
        values[str(name)] = None if value is None else _text(key, str(name), value)


def _text(key: str, part: str, value: Any) -> str:
    return canonical(value, (format_of(key) or {}).get(part, {}))


def check_parts(key: str, values: Mapping[str, str]) -> None:
    """Raise ValidationFailed for a sub-key that PVE's schema does not know or a value outside its rule."""
    fmt = format_of(key)
    if fmt is None:
        return
    for name, value in values.items():
        if name not in fmt:
            raise validate.refused(f"{key}.{name}", value, "is no sub-key PVE knows", f"Use {', '.join(sorted(fmt))}")
        reason = check_part(key, name, value)
        if reason:
            check_rule(f"{key}.{name}", value, fmt[name])
            raise validate.refused(f"{key}.{name}", value[:40], f"was refused ({reason})", "Write it as PVE does")


def check_plain(key: str, text: str) -> None:
    """Raise ValidationFailed for a plain option that no known version of PVE takes with that value."""
    reason = check_options({key: text}).get(key)
    if reason:
        check_rule(key, text, rule_of(key) or {})
        raise validate.refused(key, text[:40], f"was refused ({reason})", "Write it as PVE does")


def check_rule(what: str, text: str, rule: Mapping[str, Any]) -> None:
    """Raise ValidationFailed, in words for people, where a value breaks a type, range, enumeration or pattern."""
    kind = rule.get("type")
    if kind == "boolean" and text not in ("0", "1"):
        raise validate.refused(what, text, "is no boolean", "Use true or false")
    if kind in ("integer", "number"):
        try:
            value = int(text) if kind == "integer" else float(text)
        except ValueError:
            raise validate.refused(what, text, f"is no {kind}", "Write a number") from None
        low, high = rule.get("minimum"), rule.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            bounds = f"at least {low}" if high is None else f"{low if low is not None else '...'} to {high}"
            raise validate.refused(what, text, "is out of range", f"PVE takes {bounds}")
    if "enum" in rule and text not in rule["enum"]:
        raise validate.refused(what, text, "is not one of PVE's values", f"Use {', '.join(rule['enum'])}")
    if "pattern" in rule and not re.fullmatch(rule["pattern"], text):
        raise validate.refused(what, text, "does not have the form PVE wants", f"It must match {rule['pattern']}")
    if "maxLength" in rule and len(text) > rule["maxLength"]:
        raise validate.refused(what, text[:40], "is too long", f"At most {rule['maxLength']} characters")
