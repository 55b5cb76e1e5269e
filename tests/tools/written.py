# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of YAML and Python in generated files, shared by the generators."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

# Columns of a written line; a fragment is indented when it is embedded.
MAX_LINE = 100
# A key and the blank between it and its value, in braces.
_PAIR = re.compile(r"(\w+:) (?=[^ \[{]+[,}\]])")
# Characters of a list that is written as words, and of a line with words.
_LONG_LIST = 84
_WORDS = 60
# Characters of a dictionary in braces.
_IN_BRACES = 340
# The place of an entry, behind the marks of lists, and its key if it has one.
_START = re.compile(r"(?P<place> *(?:- )*)(?P<key>[^\s:]+:(?: |$))?")

# The same in C, if PyYAML was built with it, is ten times as fast.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# The marks of a written part of another file.
BEGIN, END = "# Written by `make options`: begin", "# Written by `make options`: end"
BLOCK = re.compile(
    rf"(?P<indent> *){re.escape(BEGIN)}\n.*?(?P=indent){re.escape(END)}\n", re.DOTALL
)
_SETTINGS = Path(__file__).parents[2] / "pyproject.toml"
LICENSE = """\
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""


def formatted(sources: Mapping[Path, str]) -> dict[Path, str]:
    """Return Python files in the form that `make lint` wants, by one call of ruff."""
    settings = ["--quiet", "--no-cache", "--config", str(_SETTINGS)]
    with TemporaryDirectory() as folder:
        for path, text in sources.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "ruff", "format", *settings, folder]
        subprocess.run(command, capture_output=True, check=True)
        return {path: Path(folder, path).read_text(encoding="utf-8") for path in sources}


class DeclarationError(ValueError):
    """A declaration that nothing can be written from."""


class Source(str):
    """Text that pprint writes without quotes."""

    def __repr__(self) -> str:
        return str(self)


def with_words(value: Any) -> Any:
    """Return data with long lists of words as texts that the code splits: ruff writes a list that
    fits in no line with one word a line.
    """
    if isinstance(value, dict):
        return {key: with_words(one) for key, one in value.items()}
    if not isinstance(value, list) or len(repr(value)) < _LONG_LIST:
        return value
    if value[0] == "":
        return Source(f"['', *{_words_of(value[1:])}]")
    return Source(_words_of(value))


def _words_of(value: Sequence[Any]) -> str:
    if not all(isinstance(one, str) and re.fullmatch(r"\S+", one) for one in value):
        return repr(value)
    *lines, last = textwrap.wrap(" ".join(value), _WORDS, break_on_hyphens=False)
    if not lines:
        return f"{last!r}.split()"
    text = " ".join(repr(f"{line} ") for line in lines)
    return f"({text} {last!r}).split()"


class _InOneLine(list[Any]):
    """A list that YAML shows in brackets."""

    def __repr__(self) -> str:
        return f"brackets({super().__repr__()})"


def in_one_line(value: Any) -> Any:
    """Return a short list as a list that YAML shows in brackets."""
    if not isinstance(value, list) or len(", ".join(map(str, value))) > 70:
        return value
    return _InOneLine(value)


class _InBraces(dict[str, Any]):
    """A dictionary that YAML shows in braces."""

    def __repr__(self) -> str:
        return f"braces({super().__repr__()})"


def in_braces(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dictionary that YAML shows in braces, including nested values."""
    return _InBraces(value)


def fits_in_braces(value: Mapping[str, Any]) -> bool:
    """Return whether a few lines hold a dictionary in braces; a long word fits in none."""
    text = yaml.dump(in_braces(value), Dumper=_Dumper, sort_keys=False, width=math.inf)
    return len(text) <= _IN_BRACES and max(map(len, text.split())) < MAX_LINE - 18


def compact(value: Any, lines: int = 1) -> Any:
    """Return data as YAML shows it in brackets and braces, if that many lines hold it."""
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, width=1000)
    if len(text) > lines * (MAX_LINE - 20):
        return value
    if isinstance(value, dict):
        return _InBraces(value)
    return _InOneLine(value) if isinstance(value, list) else value


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent(dumper: yaml.SafeDumper, data: _InOneLine) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)


def _represent_braces(dumper: yaml.SafeDumper, data: _InBraces) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)


_Dumper.add_representer(_InOneLine, _represent)
_Dumper.add_representer(_InBraces, _represent_braces)


def dumped_by_key(data: Mapping[str, Any]) -> str:
    """Return a dictionary as YAML, each key in lines as long as the linters allow."""
    return "".join(dumped({key: value}) for key, value in data.items())


def dumped(data: Any) -> str:
    """Return YAML as the linters want it, in lines as long as they allow."""
    known = repr(data)
    if known not in _DUMPED:
        _DUMPED[known] = _dump(data)
    return _DUMPED[known]


# PyYAML is slow, and tests write the same files again and again.
_DUMPED: dict[str, str] = {}


def _dump(data: Any) -> str:
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=math.inf, allow_unicode=True)
    folded = "".join(f"{_folded(line)}\n" for line in text.splitlines())
    if yaml.load(folded, Loader=LOADER) != yaml.load(text, Loader=LOADER):
        raise ValueError(f"cannot be folded without a change: {text}")
    return folded


def _folded(line: str) -> str:
    """Return a line of YAML in several lines, each as long as allowed.

    A key stays on the line of its value. PyYAML itself breaks a line behind the word that passes
    the limit.
    """
    start = _START.match(line)
    assert start is not None
    depth = len(start["place"]) + (2 if start["key"] else 0)
    lines = textwrap.wrap(
        _PAIR.sub(r"\1\0", line),
        MAX_LINE,
        subsequent_indent=" " * depth,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace("\0", " ")
