# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PVE property strings such as C(virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=100): parse, render,
compare by key.

A format has the shape of the official API schema: a dictionary of sub-keys with C(type), C(enum),
C(default), C(default_key), C(alias) and C(keyAlias) (pve-common,
PVE::JSONSchema::parse_property_string).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import ValidationFailed

Format = Mapping[str, Mapping[str, Any]]

# Lists in any order, hexadecimal digits in any case, and addresses.
_UNORDERED = frozenset(
    ("affinity", "cpus", "flags", "hostnodes", "mount", "mountoptions", "trunks")
)
_ANY_CASE = frozenset(
    ("device-id", "hwaddr", "macaddr", "sub-device-id", "sub-vendor-id", "uuid", "vendor-id")
    + ("searchdomain", "vmgenid")
)
_ADDRESSES = frozenset(("gw", "gw6", "ip", "ip6"))
# PVE stores a larger weight as this one (pve-common: CGroup.pm, clamp_cpu_shares).
_MOST_CPU_UNITS = 10000
_SEPARATORS = re.compile(r"[,;\s]+")
_TRUE, _FALSE = frozenset(("1", "on", "yes", "true")), frozenset(("0", "off", "no", "false"))


def default_key(fmt: Format) -> str | None:
    """Return the sub-key whose name may be left out, or None."""
    for key, rule in fmt.items():
        if rule.get("default_key"):
            return key
    return None


class MalformedPropertyString(ValueError):
    """A text that PVE cannot parse as a property string; `reason` is PVE's message."""

    def __init__(self, reason: str, answer: str) -> None:
        super().__init__(answer)
        self.reason = reason


def parse(text: str, fmt: Format, *, what: str = "value") -> dict[str, str]:
    """Return the sub-keys and values of a property string; aliases are resolved and surrounding
    blanks removed.

    A key alias such as the C(virtio=MAC) of a NIC becomes its two sub-keys (C(model), C(macaddr)).
    Raises ValidationFailed if the text has a part without a key and the format has no default key,
    or if a key occurs twice.
    """
    trimmed: list[tuple[str, str, str]] = []
    for part in str(text).split(","):
        key, equals, value = part.partition("=")
        trimmed.append((key.strip(), equals, value.strip()))
    try:
        return _read(trimmed, fmt)
    except MalformedPropertyString as error:
        raise ValidationFailed(
            f"{what} was refused: {error}", "Write it as PVE does: key=value,key=value", what
        ) from None


def sub_keys(text: str, default: str = "") -> dict[str, str]:
    """Return the keys and values of a text of any format; a part without a key belongs to `default`."""
    found: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        found[key if equals else default] = value if equals else key
    return found


def parse_exactly(text: str, fmt: Format) -> dict[str, str]:
    """Return the sub-keys and values of a property string as PVE reads it, blanks included.

    Raises MalformedPropertyString if PVE would refuse it (JSONSchema.pm, parse_property_string).
    """
    parts = [part.partition("=") for part in text.split(",")]
    for key, equals, value in parts:
        if equals and not (key and value):
            reason = "missing key in comma-separated list property"
            raise MalformedPropertyString(reason, f"{key}={value} has no key or no value")
    return _read(parts, fmt)


def _read(parts: Iterable[tuple[str, str, str]], fmt: Format) -> dict[str, str]:
    """Return the sub-keys and values; `parts` are tuples of key, equals sign and value."""
    bare = default_key(fmt)
    values: dict[str, str] = {}
    for key, equals, value in parts:
        if not equals and not key.strip():
            continue
        if equals:
            pairs = _resolve(key, value, fmt)
        elif bare is not None:
            pairs = _resolve(bare, key, fmt)
        else:
            raise MalformedPropertyString(
                "value without key, but schema does not define a default key",
                f"{key!r} has no key, and there is no default key",
            )
        for name, content in pairs:
            if name in values:
                reason = f"duplicate key in comma-separated list property: {name}"
                raise MalformedPropertyString(reason, f"the key {name!r} is given twice")
            values[name] = content
    return values


def _resolve(key: str, value: str, fmt: Format) -> list[tuple[str, str]]:
    rule = fmt.get(key, {})
    alias = rule.get("alias")
    if not alias:
        return [(key, value)]
    pairs = [(alias, value)]
    if rule.get("keyAlias"):
        pairs.insert(0, (rule["keyAlias"], key))
    return pairs


def render(values: Mapping[str, str | None], fmt: Format) -> str:
    """Return the property string of `values`: the default key first, then the other keys sorted, as
    PVE writes it.
    """
    remaining = {key: value for key, value in values.items() if value is not None}
    parts: list[str] = []
    bare = default_key(fmt)
    if bare is not None and bare in remaining:
        first = remaining.pop(bare)
        joined = next((r["alias"] for r in fmt.values() if r.get("keyAlias") == bare), None)
        if joined and joined in remaining:  # a NIC: model and MAC are one part, virtio=MAC
            parts.append(f"{first}={remaining.pop(joined)}")
        else:
            parts.append(first)
    parts.extend(f"{key}={remaining[key]}" for key in sorted(remaining))
    return ",".join(parts)


def canonical(value: object, rule: Mapping[str, Any]) -> str:
    """Return the canonical text of a sub-key's value.

    Booleans are 0 or 1, numbers have no padding, and MAC addresses are in upper case.
    """
    if isinstance(value, bool):
        return "1" if value else "0"
    text = str(value).strip()
    kind = rule.get("type")
    if kind == "boolean":
        lowered = text.lower()
        if lowered in _TRUE:
            return "1"
        if lowered in _FALSE:
            return "0"
        return text
    if kind in ("integer", "number"):
        return plain_number(text)
    if rule.get("format") == "mac-addr":
        return text.upper()
    return text


def plain_number(text: str) -> str:
    """Return a decimal number without leading and trailing zeros (C(1.50) -> C(1.5)).

    Other text is returned unchanged.
    """
    if text.isdecimal():
        return str(int(text))
    try:
        number = float(text)
    except ValueError:
        return text
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return repr(number)


def in_order(text: str, fmt: Format, what: str) -> str:
    """Return a property string with its keys, and the items of its values, in order.

    Raises ValidationFailed if it is malformed.
    """
    values = parse(text, fmt, what=what)
    texts: list[str] = []
    for key in sorted(values):
        items = canonical(values[key], fmt.get(key, {})).split(";")
        texts.append(f"{key}={';'.join(sorted(items))}")
    return ",".join(texts)


def same(key: str, wanted: object, found: str | None, fmt: Format) -> bool:
    """Return whether a sub-key already has the wanted value; a missing one has PVE's default."""
    rule = fmt.get(key, {})
    if found is None:
        if "default" not in rule:
            return rule.get("type") == "boolean" and canonical(wanted, rule) == "0"
        found = str(rule["default"])
    return comparable(key, wanted, rule) == comparable(key, found, rule)


def comparable(key: str, value: object, rule: Mapping[str, Any]) -> str:
    """Return a text that is equal for all notations of a value of an option or of a sub-key."""
    text = canonical(value, rule)
    if key in _UNORDERED:
        return ";".join(sorted(filter(None, _SEPARATORS.split(text))))
    if key in _ANY_CASE:
        return text.lower()
    if key in _ADDRESSES:
        return plain_address(text)
    if key == "cpuunits" and text.isdecimal():
        return str(min(int(text), _MOST_CPU_UNITS))
    return text


def plain_address(text: str) -> str:
    """Return an address, with or without a prefix, in its shortest notation, or another text."""
    try:
        interface = ipaddress.ip_interface(text)
    except ValueError:
        return text
    return str(interface) if "/" in text else str(interface.ip)
