# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plain data as the YAML that a person would write (pure).

PyYAML writes no comments, its output differs between its versions, and modules run on hosts without
it. A text is written without quotation marks only if every YAML reader reads it as a text. A text
that Ansible would read as a template gets C(!unsafe).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_WIDTH = 100
_INDENT = "  "
_WORDS = r"[A-Za-z_][A-Za-z0-9_.+/@-]*(?: [A-Za-z0-9_.+/@-]+)*"
_SIZE = r"[0-9]+(?:\.[0-9]+)?[KMGT]"
_IPV4 = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})?"
_VOLUME = r"[A-Za-z][A-Za-z0-9_.-]*:[A-Za-z][A-Za-z0-9_./-]*"
_CLASS = r"[0-9]+(?:x[0-9]+)?c-[0-9]+[mgt]"
_PLAIN = re.compile(f"(?:{_WORDS}|{_SIZE}|{_IPV4}|{_VOLUME}|{_CLASS})")
# Texts that YAML 1.1 or 1.2 does not read as a text.
_RESERVED = frozenset("y n yes no on off true false null none nan inf".split())
_TEMPLATE = re.compile(r"\{[{%#]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_CONSTANTS = ((None, "null"), (True, "true"), (False, "false"))


@dataclass(frozen=True)
class CommentedValue:
    """A value with a comment on the line of its key."""

    value: Any
    note: str


def scalar(value: Any) -> str:
    """Return a single value."""
    for constant, word in _CONSTANTS:
        if value is constant:
            return word
    if not isinstance(value, str):
        return str(value)
    if _TEMPLATE.search(value):
        text = quoted(value)
        return f"!unsafe {text}"
    return plain(value)


def plain(text: str) -> str:
    """Return a text, without quotation marks if that is safe."""
    is_reserved = text.lower() in _RESERVED
    if _PLAIN.fullmatch(text) and not is_reserved:
        return text
    return quoted(text)


def quoted(text: str) -> str:
    """Return a text in quotation marks, on one line."""
    inner = "".join(map(_escaped, text))
    return f'"{inner}"'


def one_line(text: str) -> str:
    """Return a text for a comment: on one line, without control characters."""
    return "".join(map(_visible, text))


def _escaped(char: str) -> str:
    return _ESCAPES[char] if char in _ESCAPES else _visible(char)


def _visible(char: str) -> str:
    """Return a character, or an escape sequence for a character that cannot be printed."""
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02X}"
    if code < 0x10000:
        return f"\\u{code:04X}"
    return f"\\U{code:08X}"


def flow(value: Any) -> str:
    """Return a value on one line: C({cores: 2}), C([a, b])."""
    if isinstance(value, Mapping):
        pairs: list[str] = []
        for name, one in value.items():
            key = plain(str(name))
            pairs.append(f"{key}: {flow(one)}")
        inner = ", ".join(pairs)
        return f"{{{inner}}}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(flow, value))
        return f"[{inner}]"
    return scalar(value)


def lines_of(options: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield the lines of a dictionary, each entry in its shortest readable form."""
    indent = _INDENT * depth
    for name, value in options.items():
        head = f"{indent}{plain(str(name))}:"
        note = ""
        if isinstance(value, CommentedValue):
            text = one_line(value.note)
            note = f" # {text}"
            value = value.value
        yield from _entry(head, value, note, depth)


def _entry(head: str, value: Any, note: str, depth: int) -> Iterator[str]:
    """Yield the lines of an entry of a dictionary."""
    if isinstance(value, str) and _is_block(value):
        yield from _block(head, value, note, depth)
    elif _is_short(head, value):
        yield f"{head} {flow(value)}{note}"
    elif isinstance(value, Mapping):
        yield f"{head}{note}"
        yield from lines_of(value, depth + 1)
    else:
        yield f"{head}{note}"
        for item in value:
            yield from item_lines(item, depth + 1)


def _block(head: str, text: str, note: str, depth: int) -> Iterator[str]:
    """Yield a text of several lines as a block scalar."""
    tag = " !unsafe" if _TEMPLATE.search(text) else ""
    yield f"{head}{tag} |-{note}"
    indent = _INDENT * (depth + 1)
    for line in text.split("\n"):
        whole = f"{indent}{line}"
        yield whole.rstrip()


def item_lines(item: Any, depth: int) -> Iterator[str]:
    """Yield the lines of an item of a list."""
    indent = _INDENT * depth
    head = f"{indent}-"
    is_dictionary = isinstance(item, Mapping) and bool(item)
    if not is_dictionary or _is_short(head, item):
        yield f"{head} {flow(item)}"
        return
    first, *others = lines_of(item, depth + 1)
    rest = first.removeprefix(indent + _INDENT)
    yield f"{head} {rest}"
    yield from others


def _is_short(head: str, value: Any) -> bool:
    """Return whether a value is written on the line of its key; nested values never are."""
    inner: Iterable[Any] = ()
    if isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, (list, tuple)):
        inner = value
    else:
        return True
    if not inner:  # without lines of its own, it would be read as null
        return True
    if any(map(_is_nested, inner)):
        return False
    text = flow(value)
    return len(head) + len(text) < _WIDTH


def _is_nested(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple, CommentedValue))


def _is_block(text: str) -> bool:
    """Return whether a text can be a block scalar: printable lines without trailing blanks."""
    first, *others = text.split("\n")
    if not others or not others[-1]:
        return False
    if not first or first.startswith(" "):
        return False
    return all(map(_is_clean, (first, *others)))


def _is_clean(line: str) -> bool:
    if line != line.rstrip():
        return False
    return line.isprintable()
