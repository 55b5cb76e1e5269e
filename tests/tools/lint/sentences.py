# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measures the sentence structures that readers of docstrings and comments have to read twice.

A passage is a docstring, a block of comment lines, or a comment behind code. The share of a room is
the percentage of its passages with at least one hit. License headers, directives such as ``noqa``,
code and quotations do not count.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.tools.stage import REPO, source_files

ROOTS = ("plugins/", "roles/", "tests/tools/")
# These files name the patterns.
_SELF = {"tests/tools/lint/idioms.py", "tests/tools/lint/sentences.py"}

# "The node where the VM runs" is plain English.
_PLACES = (
    "node",
    "nodes",
    "host",
    "server",
    "site",
    "cluster",
    "file",
    "files",
    "directory",
    "path",
    "page",
    "position",
    "place",
    "places",
    "line",
)
_NOT_A_PLACE = "".join(rf"(?<!\b{place} )" for place in _PLACES)
# Each pattern, and the structure to write instead. The patterns apply to text whose white space and
# comment marks have become single blanks. "What" and "where" are fine in a question.
PATTERNS = {
    r"what(?:ever|soever)?\b(?![^.?!]*\?)|that which|the things? (?:that|which)"
    r"|all (?:that|which)": ("the noun: 'the result of each VM' for 'what came of the VMs'"),
    rf"{_NOT_A_PLACE}where(?:ver)?\b(?! to )(?![^.?!]*\?)|in (?:the|a) case (?:that|in which)": (
        "if, when"
    ),
    r"ones? (?:that|which|who|whose|with|without)|ones of|that of|whoever|whomever"
    r"|those (?:of|that|which|who|whose|with|without|for|in)|(?:an|the )other ones?": (
        "the noun again: 'a VM without a name'"
    ),
    r"(?:comes|came|coming|come) (?:to|of)(?! (?:an end|light)\b)": "equals, results from, is",
    r"(?:has|have|had|having) to": "must",
    r"(?:is|are|was|were) to be": "must be, will be",
    r"by now|all the same|as (?:it is|they are|it was|they were)": (
        "already, nevertheless, unchanged"
    ),
    r"(?:left|leave|leaves|leaving|let|lets|letting) (?:[\w-]+ ){0,3}?alone": (
        "unchanged, skipped"
    ),
    r"but for|none but|nothing but|no other than|for (?:which|whose) sake": "except, only",
}
_COMPILED = {
    pattern: re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE) for pattern in PATTERNS
}
_QUOTED = re.compile(r"``.*?``|`[^`]*`|\"[^\"]*\"|\b[A-Z]\([^)]*\)|(?<!\w)'[^']{0,60}'(?!\w)")
_HEADER = re.compile(r"Copyright \(c\)|GNU General Public License|SPDX-License-Identifier")
_DIRECTIVE = re.compile(r"(?:!|noqa|type:|pragma|nosec|pylint:|fmt:|ruff:|yamllint|ansible-lint)")


@dataclass(frozen=True)
class Passage:
    """A docstring or a comment, with the number of its first line."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Hit:
    """A pattern within a passage."""

    passage: Passage
    pattern: str
    text: str

    def __str__(self) -> str:
        place = f"{self.passage.file}:{self.passage.line}"
        return f"{place}: '{self.text}'; better: {PATTERNS[self.pattern]}"


@dataclass(frozen=True)
class Share:
    """The passages of a room, and the number of them with at least one hit."""

    room: str
    passages: int
    hit: int

    @property
    def percent(self) -> float:
        """The share as a percentage, 0 for a room without passages."""
        return 100 * self.hit / self.passages if self.passages else 0.0

    def __str__(self) -> str:
        return f"{self.room:<34}{self.hit:>5} of {self.passages:>5}{self.percent:>7.1f} %"


def room_of(file: str) -> str:
    """Return the room that a file counts for, for example `module_utils/_foundation/core` or `roles`."""
    parts = PurePosixPath(file).parts
    if parts[:2] == ("plugins", "module_utils"):
        return "/".join(parts[1:4])
    if parts[0] == "plugins":
        return parts[1]
    return "roles" if parts[0] == "roles" else "/".join(parts[:2])


def find_passages(file: str, text: str) -> Iterator[Passage]:
    """Yield the docstrings and comments of a Python file, and the comments of a YAML file."""
    if file.endswith(".py"):
        yield from _docstrings(file, text)
        yield from _join_blocks(file, _python_comments(text))
    else:
        yield from _join_blocks(file, _yaml_comments(text))


def _docstrings(file: str, text: str) -> Iterator[Passage]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
            docstring := ast.get_docstring(node)
        ):
            yield Passage(file, node.body[0].lineno, docstring)


def _python_comments(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield line, text and whether the comment has the line for itself."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            alone = not token.line[: token.start[1]].strip()
            yield token.start[0], token.string.lstrip("#").strip(), alone


def _yaml_comments(text: str) -> Iterator[tuple[int, str, bool]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#"):
            yield number, line.strip().lstrip("#").strip(), True


def _join_blocks(file: str, comments: Iterable[tuple[int, str, bool]]) -> Iterator[Passage]:
    """Yield adjacent comment lines as one passage."""
    first, last, lines = 0, 0, list[str]()
    for number, text, alone in comments:
        if _HEADER.match(text) or _DIRECTIVE.match(text):
            continue
        if lines and alone and number == last + 1:
            lines.append(text)
        else:
            if lines:
                yield Passage(file, first, "\n".join(lines))
            first, lines = number, [text]
        # A comment behind code is a passage of its own.
        last = number if alone else 0
    if lines:
        yield Passage(file, first, "\n".join(lines))


def find_hits(passage: Passage) -> list[Hit]:
    """Return the patterns of a passage, at most one hit for each pattern."""
    plain = " ".join(_QUOTED.sub("X", " ".join(passage.text.split())).split())
    hits = [(pattern, compiled.search(plain)) for pattern, compiled in _COMPILED.items()]
    return [Hit(passage, pattern, match.group()) for pattern, match in hits if match]


def measure(files: Iterable[tuple[str, str]]) -> tuple[list[Share], list[Hit]]:
    """Return the share of each room, the total last, and all hits."""
    passages: dict[str, int] = defaultdict(int)
    with_hit: dict[str, int] = defaultdict(int)
    hits: list[Hit] = []
    for file, text in files:
        room = room_of(file)
        for passage in find_passages(file, text):
            found = find_hits(passage)
            passages[room] += 1
            with_hit[room] += bool(found)
            hits.extend(found)
    shares = [Share(room, passages[room], with_hit[room]) for room in sorted(passages)]
    total = Share("in all", sum(passages.values()), sum(with_hit.values()))
    return [*shares, total], hits


def read_files(repo: Path = REPO) -> Iterator[tuple[str, str]]:
    """Yield name and text of the files that are measured."""
    for name in source_files(repo):
        if name in _SELF or not name.startswith(ROOTS):
            continue
        if PurePosixPath(name).suffix in {".py", ".yml"}:
            yield name, (repo / name).read_text(encoding="utf-8")
