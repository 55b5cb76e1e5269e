# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares values of options by their meaning, and converts them to plain data (pure).

A missing value counts as PVE's default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.propstring import canonical, plain_address, same
from ..core.quantities import whole_number
from .formats import QEMU, Schema, parse_option, rule_of, sub_keys_of

# A secret in results and in diffs: after a change, and as read.
SECRET_CHANGES, SECRET_IS_SET = "(changed)", "(set)"
_BOOLEANS = {"0": False, "1": True}


def is_same_option(key: str, wanted: str, found: str | None, schema: Schema = QEMU) -> bool:
    """Return whether a plain option has the wanted value.

    `found` is None if the option is not set, which counts as an empty text.
    """
    if wanted == (found or ""):
        return True
    if key == "hotplug":
        return hotplug_features(wanted) == hotplug_features(found)
    if key == "nameserver" and found is not None:
        return _addresses(wanted) == _addresses(found)
    rule = rule_of(key, schema=schema) or {}
    return same(key, wanted, found, {key: rule})


def _addresses(text: str) -> list[str]:
    """Return the addresses of a list that commas or blanks separate, in their shortest notation."""
    return [plain_address(item) for item in text.replace(",", " ").split()]


def hotplug_features(text: str | None) -> frozenset[str]:
    """Return the features of a C(hotplug) value; 1 or None is PVE's default, 0 means none."""
    if text == "0":
        return frozenset()
    if text is None or text == "1":
        text = "network,disk,usb"
    words = re.split(r"[,; ]+", text)
    return frozenset(words)


def differing_sub_keys(
    key: str, wanted: Mapping[str, str | None], found: Mapping[str, str], schema: Schema = QEMU
) -> set[str]:
    """Return the names of the sub-keys without the wanted value; None means not set."""
    fmt = sub_keys_of(key, schema)
    differing: set[str] = set()
    for name, value in wanted.items():
        if value is None:
            is_same = name not in found
        else:
            is_same = same(name, value, found.get(name), fmt)
        if not is_same:
            differing.add(name)
    return differing


def changed_sub_keys(key: str, old: str, new: str, schema: Schema = QEMU) -> set[str]:
    """Return the names of the sub-keys in which two texts of a property string differ."""
    before = parse_option(key, old, schema)
    after = parse_option(key, new, schema)
    differing = before.items() ^ after.items()
    return {name for name, _value in differing}


def typed_option(key: str, text: str, schema: Schema = QEMU) -> Any:
    """Return an option with its type in the schema, and a property string as a dictionary."""
    if sub_keys_of(key, schema):
        return typed_sub_keys(key, parse_option(key, text, schema), schema)
    return _typed(text, rule_of(key, schema=schema) or {})


def typed_sub_keys(key: str, values: Mapping[str, str], schema: Schema = QEMU) -> dict[str, Any]:
    """Return the sub-keys of an option with their types in the schema."""
    fmt = sub_keys_of(key, schema)
    typed: dict[str, Any] = {}
    for name, value in values.items():
        typed[name] = _typed(value, fmt.get(name, {}))
    return typed


def _typed(text: str, rule: Mapping[str, Any]) -> Any:
    """Return a boolean or an integer if the rule and the text allow it, else the text."""
    text = canonical(text, rule)
    kind = rule.get("type")
    if kind == "boolean":
        return _BOOLEANS.get(text, text)
    digits = text.removeprefix("-")
    if kind == "integer" and whole_number(digits) is not None:
        return int(text)
    return text
