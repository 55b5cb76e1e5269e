# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values in messages: as the user writes them in YAML, not as Python does (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

_UNPRINTABLE = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\ud800-\\udfff]|\\r(?!\\n)")
# JSON does not escape these, and a terminal can take them for the beginning of a sequence.
_UNESCAPED = re.compile("[\\x7f-\\x9f\\ud800-\\udfff]")


def formatted(value: Any) -> str:
    """Return a value for a message: a text in quotation marks, others as YAML on one line."""
    if isinstance(value, str):
        return f"'{_one_line(value)}'"
    return _plain(value)


def first_of(items: Sequence[object], maximum: int = 5) -> str:
    """Return the first items of a list for a message, and the number of the other items."""
    text = ", ".join(str(item) for item in items[:maximum])
    more = len(items) - maximum
    if more > 0:
        text += f" and {more} more"
    return text


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: C(1 template), C(2 templates)."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}s"


def by_reason(reasons: Mapping[str, str]) -> str:
    """Return reasons for a message, each once, after the names to which it applies."""
    names: dict[str, list[str]] = {}
    for name in sorted(reasons):
        names.setdefault(reasons[name], []).append(name)
    return "; ".join(f"{', '.join(same)}: {reason}" for reason, same in names.items())


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        pairs = [f"{_plain(key)}: {_plain(item)}" for key, item in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [_plain(item) for item in value]
        return "[" + ", ".join(items) + "]"
    return _one_line(str(value))


def _one_line(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")


def printable(text: str) -> str:
    """Return a text that can be written and shown: control characters other than tab and line end,
    and halves of characters, become the replacement character.

    A terminal thus never executes the escape sequences of a guest or a server.
    """
    if text.isprintable():
        return text
    return _UNPRINTABLE.sub("\ufffd", text)


def printable_in_json(text: str) -> str:
    """Return a text without the control characters that JSON does not escape."""
    return _UNESCAPED.sub("\ufffd", text)


def printable_data(value: Any, convert: Callable[[str], str] = printable) -> Any:
    """Return a copy of plain data with converted texts, also as keys."""
    if isinstance(value, str):
        return convert(value)
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    inner = partial(printable_data, convert=convert)
    if isinstance(value, Mapping):
        return dict(zip(map(inner, value), map(inner, value.values()), strict=True))
    return list(map(inner, value)) if isinstance(value, list) else tuple(map(inner, value))


def as_sentence(text: str) -> str:
    """Return a text that begins with a capital letter if it begins with the noun of a guest.

    Labels of guests, such as C(container 'web' (100)), are also used within sentences.
    """
    if not text.startswith("container "):
        return text
    return text[0].upper() + text[1:]
