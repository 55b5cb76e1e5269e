# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PVE property strings such as C(virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=100): parse, render, compare by key.

The shape of a format is that of the official API schema: a dictionary of sub-keys with C(type), C(enum), C(default),
C(default_key), C(alias) and C(keyAlias) (pve-common, PVE::JSONSchema::parse_property_string).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import ValidationFailed

Format = Mapping[str, Mapping[str, Any]]

_TRUE, _FALSE = frozenset(("1", "on", "yes", "true")), frozenset(("0", "off", "no", "false"))


def default_key(fmt: Format) -> str | None:
    """Return the sub-key whose name may be left out, or None."""
    for key, rule in fmt.items():
        if rule.get("default_key"):
            return key
    return None


def parse(text: str, fmt: Format, *, what: str = "value") -> dict[str, str]:
    """Return the sub-keys and values of a property string, aliases resolved.

    A key alias such as the C(virtio=MAC) of a NIC becomes its two sub-keys (C(model), C(macaddr)).
    Raises ValidationFailed where the text has a part without a key and the format no default key, or a key twice.
    """
    bare = default_key(fmt)
    values: dict[str, str] = {}
    for part in str(text).split(","):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        key, value = key.strip(), value.strip()
        if not equals:
            if bare is None:
                raise _refused(what, f"{part!r} has no key, and there is no default key")
            key, value = bare, part.strip()
        for name, content in _resolve(key, value, fmt):
            if name in values:
                raise _refused(what, f"the key {name!r} is given twice")
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
    """Return the property string of `values`: the default key first, then the other keys sorted, as PVE writes it."""
    left = {key: value for key, value in values.items() if value is not None}
    parts: list[str] = []
    bare = default_key(fmt)
    if bare is not None and bare in left:
        first = left.pop(bare)
        joined = next((r["alias"] for r in fmt.values() if r.get("keyAlias") == bare), None)
        if joined and joined in left:  # a NIC: model and MAC are one part, virtio=MAC
            parts.append(f"{first}={left.pop(joined)}")
        else:
            parts.append(first)
    parts.extend(f"{key}={left[key]}" for key in sorted(left))
    return ",".join(parts)


def canonical(value: object, rule: Mapping[str, Any]) -> str:
    """Return the one spelling of a sub-key's value: booleans 0 or 1, numbers without padding, MACs in upper case."""
    if isinstance(value, bool):
        return "1" if value else "0"
    text = str(value).strip()
    kind = rule.get("type")
    if kind == "boolean":
        lowered = text.lower()
        return "1" if lowered in _TRUE else "0" if lowered in _FALSE else text
    if kind in ("integer", "number"):
        return plain_number(text)
    if rule.get("format") == "mac-addr":
        return text.upper()
    return text


def plain_number(text: str) -> str:
    """Return a decimal number without leading and trailing zeros (C(1.50) -> C(1.5)); other text as it is."""
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def same(key: str, wanted: object, found: str | None, fmt: Format) -> bool:
    """Tell whether a wanted sub-key already holds, PVE's own default standing in for a missing one."""
    rule = fmt.get(key, {})
    if found is None:
        if "default" not in rule:
            return rule.get("type") == "boolean" and canonical(wanted, rule) == "0"
        found = str(rule["default"])
    return canonical(wanted, rule) == canonical(found, rule)


def _refused(what: str, answer: str) -> ValidationFailed:
    return ValidationFailed(
        attempted=f"{what} was refused",
        answer=answer,
        next_step="Write it as PVE does: key=value,key=value",
        reason=what,
    )
