# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values as PVE writes them, inside the ranges and enumerations of its schema (pure).

Names that the schema does not have are judged by the server's version, see `require_names`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._foundation.core import validate
from ...._foundation.schema.check import Refusal, find_part_refusal, find_refusal, refusal_error
from ...._foundation.schema.formats import (
    QEMU,
    Schema,
    canonical_option,
    canonical_sub_key,
    parse_option,
    rule_of,
    sub_keys_of,
)
from .values import is_blank


def scalar(key: str, value: Any, schema: Schema = QEMU) -> str:
    """Return a plain option's canonical text. Raises ValidationFailed."""
    text = canonical_option(key, value, schema)
    _require(key, text, find_refusal(key, text, schema=schema))
    return text


def property_string(key: str, text: str, schema: Schema = QEMU) -> dict[str, str | None]:
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
        _require(key, text, refusal)
    return dict(values)


def sub_keys(key: str, given: Mapping[str, Any], schema: Schema = QEMU) -> dict[str, str | None]:
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
        _require(f"{key}.{name}", value, refusal)


def _require(what: str, text: str, refusal: Refusal | None) -> None:
    if refusal:
        raise refusal_error(what, text, refusal)
