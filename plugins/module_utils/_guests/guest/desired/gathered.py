# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a guest in PVE's keys, gathered and brought into the form in which PVE writes them,
inside the ranges and enumerations of its schema; sub-keys of devices and addresses of NICs (pure).

Names that the schema does not have are judged by the server's version, see `require_names`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.core import validate
from ...._foundation.schema.check import Refusal, find_part_refusal, find_refusal, refusal_error
from ...._foundation.schema.formats import (
    QEMU,
    Schema,
    canonical_option,
    canonical_sub_key,
    format_of,
    parse_option,
    rule_of,
    sub_keys_of,
)
from ...kinds.hardware import MOVED, Disk
from .values import WORDS_FOR_IPV4, WORDS_FOR_IPV6, OptionTables, is_blank


@dataclass
class GatheredOptions:
    """Options in PVE's keys: scalars, property strings by sub-key, and options to remove."""

    scalars: dict[str, Any] = field(default_factory=dict)
    property_strings: dict[str, Any] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)

    def __contains__(self, key: str) -> bool:
        return key in {*self.scalars, *self.property_strings, *self.unset}


def add_declared(
    tables: OptionTables, place: str, options: Mapping[str, Any], hardware: GatheredOptions
) -> None:
    """Add the options whose declarations are enough: scalars, property strings, empty texts."""
    for name, key in tables.empty_removes.get(place, {}).items():
        if key and is_blank(options.get(name)):
            hardware.unset.add(key)
    scalars = tables.scalars.get(place, {})
    property_strings = tables.property_strings.get(place, {})
    for name, key in {**scalars, **property_strings}.items():
        value = options.get(name)
        if value is None:
            continue
        if is_blank(value):
            hardware.unset.add(key)
            continue
        words = tables.words.get(place, {}).get(name, {})
        value = words.get(value, value) if isinstance(value, Hashable) else value
        if name in scalars:
            hardware.scalars[key] = value
        else:
            hardware.property_strings[key] = value


@dataclass(frozen=True)
class ReservedOptions:
    """The options of PVE that the open-ended dictionary must not contain, and why."""

    devices: re.Pattern[str]  # the slots of devices
    device_step: str  # the next step for a device
    set_by_pve: frozenset[str]
    pve_step: str  # the next step for an option that PVE sets
    own: Mapping[str, str]  # options of the module itself, by PVE's names

    def require_open(self, key: str, hardware: GatheredOptions) -> None:
        """Raise ValidationFailed for a key that must be set by an option of the module."""
        why = "cannot be set there"
        if self.devices.match(key):
            raise validate.refused("options", key, why, self.device_step)
        if key in self.set_by_pve:
            raise validate.refused("options", key, why, self.pve_step)
        if key in self.own:
            raise validate.refused("options", key, why, f"Use {self.own[key]}")
        if key in hardware:
            why = "is also set by an option of its own"
            raise validate.refused("options", key, why, "Set it once")


def add_open_options(
    options: Mapping[str, Any], hardware: GatheredOptions, closed: ReservedOptions, schema: Schema
) -> None:
    """Add the open-ended dictionary: any PVE option by its own name; null removes one.

    Raises ValidationFailed for an option that is `closed`.
    """
    for raw_key, value in options.items():
        key = str(raw_key)
        closed.require_open(key, hardware)
        if value is None or is_blank(value):
            hardware.unset.add(key)
            continue
        _require_text(key, value, schema)
        if isinstance(value, Mapping):
            hardware.property_strings[key] = value
        elif format_of(key, schema=schema) is None:
            hardware.scalars[key] = value
        else:
            hardware.property_strings[key] = str(value)


def _require_text(key: str, value: Any, schema: Schema) -> None:
    """Raise ValidationFailed for a dictionary or list if the option has no sub-keys in PVE."""
    if not isinstance(value, (Mapping, list)):
        return
    is_unknown = rule_of(key, schema=schema) is None
    has_sub_keys = is_unknown or format_of(key, schema=schema) is not None
    if has_sub_keys and isinstance(value, Mapping):
        return
    raise validate.refused(
        f"options.{key}", value, "is not text", "Write it as PVE does, as one text"
    )


def in_canonical_form(gathered: GatheredOptions, schema: Schema) -> GatheredOptions:
    """Return the hardware with each value as PVE writes it. Raises ValidationFailed."""
    hardware = GatheredOptions(unset=gathered.unset)
    for key, value in gathered.scalars.items():
        hardware.scalars[key] = canonical_scalar(key, value, schema)
    for key, given in gathered.property_strings.items():
        if isinstance(given, Mapping):
            hardware.property_strings[key] = canonical_sub_keys(key, given, schema)
        else:
            hardware.property_strings[key] = canonical_property_string(key, given, schema)
    return hardware


def canonical_scalar(key: str, value: Any, schema: Schema = QEMU) -> str:
    """Return a plain option's canonical text. Raises ValidationFailed."""
    is_number = (rule_of(key, schema=schema) or {}).get("type") in ("integer", "number")
    if isinstance(value, (Mapping, list)) or (is_number and isinstance(value, bool)):
        word = "number" if is_number else "text"
        raise validate.refused(key, value, f"is not a {word}", f"Write {key} as a {word}")
    text = canonical_option(key, value, schema)
    _require_taken(key, text, find_refusal(key, text, schema=schema))
    return text


def canonical_property_string(key: str, text: str, schema: Schema = QEMU) -> dict[str, str | None]:
    """Return the sub-keys of a property string as PVE writes it. Raises ValidationFailed."""
    values = parse_option(key, text, schema)
    require_valid_sub_keys(key, values, schema)
    rule = rule_of(key, schema=schema)
    if rule is None:
        return dict(values)
    fmt = rule.get("format")
    if isinstance(fmt, str):
        # such a format has no required sub-key
        refusal = find_refusal(key, text, schema=schema)
        _require_taken(key, text, refusal)
    return dict(values)


def canonical_sub_keys(
    key: str, given: Mapping[str, Any], schema: Schema = QEMU
) -> dict[str, str | None]:
    """Return sub-keys that are given one by one; null or an empty text becomes None, which removes
    the sub-key.

    Raises ValidationFailed.
    """
    fmt = sub_keys_of(key, schema)
    values: dict[str, str | None] = {}
    texts: dict[str, str] = {}
    for raw_name, item in given.items():
        name = str(raw_name)
        rule = fmt.get(name, {})
        name = rule.get("alias", name)
        text = _text_or_none(key, name, item, schema)
        values[name] = text
        if text is not None:
            texts[name] = text
    require_valid_sub_keys(key, texts, schema)
    return values


def _text_or_none(key: str, name: str, item: Any, schema: Schema) -> str | None:
    """Return the canonical text of a sub-key, None for an empty value, which removes it."""
    if isinstance(item, (Mapping, list)):
        raise validate.refused(
            f"{key}.{name}", item, "is not a single value", "Give a text, a number, true or false"
        )
    if item is None or is_blank(item):
        return None
    return canonical_sub_key(key, name, item, schema)


def require_valid_sub_keys(key: str, values: Mapping[str, str], schema: Schema = QEMU) -> None:
    """Raise ValidationFailed for a sub-key with a value that no version of PVE accepts."""
    fmt = sub_keys_of(key, schema)
    for name, value in values.items():
        if name not in fmt:
            continue
        refusal = find_part_refusal(key, name, value, schema=schema)
        _require_taken(f"{key}.{name}", value, refusal)


def _require_taken(what: str, text: str, refusal: Refusal | None) -> None:
    if refusal:
        raise refusal_error(what, text, refusal)


SubKeys = dict[str, Any]


def declared(tables: OptionTables, place: str, item: Mapping[str, Any]) -> SubKeys:
    """Return the options that are plain sub-keys of PVE; an empty text removes one."""
    words = tables.words.get(place, {})
    values: SubKeys = {}
    for name, key in tables.scalars[place].items():
        value = item.get(name)
        if value is not None:
            values[key] = words.get(name, {}).get(value, value)
    return values


def add_open(
    where: str, item: Mapping[str, Any], values: SubKeys, closed: frozenset[str] = frozenset()
) -> None:
    """Add the sub-keys that an item gives under PVE's own names."""
    given = item.get("options") or {}
    for name, value in given.items():
        if name in closed.union(values):
            raise validate.refused(
                f"{where}.options", name, "has an option of its own", "Set it there"
            )
        values[str(name)] = value


def disk_of(slot: str, item: Mapping[str, Any], options: Mapping[str, str | None]) -> Disk:
    """Return the disk that an item describes; `options` are its sub-keys as PVE writes them."""
    return Disk(
        slot=slot,
        state=item.get("state") or "present",
        size=item.get("size"),
        storage=item.get("storage") or None,
        format=item.get("format"),
        import_from=item.get("import_from") or None,
        volume=item.get("iso") or item.get("volume") or None,
        bwlimit=item.get("bwlimit"),
        target_vmid=item.get("target_vmid"),
        target_slot=item.get("target_slot") or slot,
        allocation=item.get("type"),
        options=options,
    )


def require_receiver(
    where: str, slot: str, item: Mapping[str, Any], allowed: re.Pattern[str]
) -> None:
    """Raise ValidationFailed unless an item names the guest that gets its disk exactly if it moves,
    and a slot that this guest can have.
    """
    is_moved = item.get("state") == MOVED
    vmid, target = item.get("target_vmid"), item.get("target_slot") or slot
    if is_moved and vmid is None:
        raise validate.refused(where, MOVED, "names no other guest", "Give target_vmid")
    if not is_moved and (vmid is not None or item.get("target_slot")):
        raise validate.refused(where, vmid or target, "is for state=moved", "Leave it out")
    if is_moved and not allowed.match(str(target)):
        raise validate.refused(f"{where}.target_slot", target, "is not such a slot", "Name another")


@dataclass(frozen=True)
class _Family:
    """A version of IP: its options of a NIC, PVE's sub-key of the gateway, words for an address."""

    address: str
    gateway: str
    gateway_key: str
    words: tuple[str, ...]


_FAMILIES = (
    _Family("ip", "gateway", "gw", (*WORDS_FOR_IPV4, "manual")),
    _Family("ip6", "gateway6", "gw6", (*WORDS_FOR_IPV6, "manual")),
)


def addresses_of(key: str, item: Mapping[str, Any]) -> SubKeys:
    """Return C(ipconfigN) of a VM, or addresses in C(netN) of a container; None removes one."""
    values: SubKeys = {}
    for family in _FAMILIES:
        values.update(_of_family(family, item))
        router = values.get(family.gateway_key)
        if router and values.get(family.address) in (None, *family.words):
            option = f"nics.{key}.{family.gateway}"
            why = f"needs a static {family.address}"
            raise validate.refused(option, router, why, f"Give {family.address} with a prefix")
    return values


def _of_family(family: _Family, item: Mapping[str, Any]) -> SubKeys:
    """Return the sub-keys of one version of IP."""
    values: SubKeys = {}
    if item.get(family.address) is not None:
        values[family.address] = item[family.address].strip() or None
        if values[family.address] in (None, *family.words):
            values[family.gateway_key] = None  # a gateway needs a static address
    if item.get(family.gateway) is not None:
        values[family.gateway_key] = item[family.gateway].strip() or None
    return values
