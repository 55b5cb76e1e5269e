# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How dense the code is: decisions for each ten lines of code, by room.

A decision is what McCabe counts, and also each condition of a comprehension, a conditional
expression and each further operand of `and` and `or`. Lines are those that hold code: no blank
line, comment or docstring.

``python -m tests.tools.density DIRECTORY...`` prints the density of each room below the
directories. ``--check`` fails for a room above LIMIT and for a conditional expression within
another.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.tools.stage import REPO

# Decisions for each ten lines that a room may have.
LIMIT = 3.0
# Where rooms have this limit, and where conditional expressions may not be nested.
_LIMITED = ("plugins",)
_NOT_NESTED = ("plugins", "tests")
_BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.Assert, ast.match_case)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SKIPPED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Density:
    """What was counted in some files."""

    decisions: int = 0
    lines: int = 0
    nested: int = 0  # conditional expressions within others

    def __add__(self, other: Density) -> Density:
        return Density(
            self.decisions + other.decisions,
            self.lines + other.lines,
            self.nested + other.nested,
        )

    @property
    def per_ten_lines(self) -> float:
        return 10 * self.decisions / max(self.lines, 1)


def measure(text: str) -> Density:
    """Return the density of a file's text."""
    tree = ast.parse(text)
    decisions = sum(_weight(node) for node in ast.walk(tree))
    docstrings = _docstring_lines(tree)
    code = {line for line in _code_lines(text) if line not in docstrings}
    return Density(decisions, len(code), _count_nested(tree))


def _count_nested(tree: ast.AST) -> int:
    """Return how many conditional expressions are within others."""
    return sum(
        isinstance(child, ast.IfExp)
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp)
        for child in ast.walk(node)
        if child is not node
    )


def _weight(node: ast.AST) -> int:
    if isinstance(node, (*_BRANCHES, *_FUNCTIONS)):
        return 1
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return 0


def _docstring_lines(tree: ast.AST) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def _code_lines(text: str) -> Iterator[int]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SKIPPED:
            yield from range(token.start[0], token.end[0] + 1)


def measure_rooms(roots: Iterable[str], repo: Path = REPO) -> dict[str, Density]:
    """Return the density of each directory with Python files below the roots."""
    rooms: dict[str, Density] = {}
    for path in _files(roots, repo):
        room = path.parent.relative_to(repo).as_posix()
        rooms[room] = rooms.get(room, Density()) + measure(path.read_text(encoding="utf-8"))
    return rooms


def find_nested(roots: Iterable[str], repo: Path = REPO) -> list[str]:
    """Return a line for each file that has a conditional expression within another."""
    complaints: list[str] = []
    for path in _files(roots, repo):
        nested = _count_nested(ast.parse(path.read_text(encoding="utf-8")))
        if nested:
            name = path.relative_to(repo).as_posix()
            complaints.append(f"{name}: {nested} conditional expressions within others")
    return complaints


def compare(rooms: Mapping[str, Density]) -> list[str]:
    """Return a line for each room above the limit."""
    complaints: list[str] = []
    for room, density in sorted(rooms.items()):
        if density.per_ten_lines > LIMIT:
            complaints.append(
                f"{room}: {density.per_ten_lines:.2f} decisions for ten lines, at most {LIMIT}"
                " are allowed"
            )
    return complaints


def _files(roots: Iterable[str], repo: Path) -> Iterator[Path]:
    for root in roots:
        yield from sorted((repo / root).rglob("*.py"))


def _print(rooms: Mapping[str, Density]) -> None:
    for room, density in rooms.items():
        print(
            f"{density.per_ten_lines:5.2f}  {density.nested:3d} nested  {density.lines:6d} lines "
            f" {room}"
        )
    total = sum(rooms.values(), Density())
    print(f"{total.per_ten_lines:5.2f}  {total.nested:3d} nested  {total.lines:6d} lines  in all")


def main(arguments: list[str]) -> int:
    """Print the density of rooms, or check it; return 1 where a room is too dense."""
    roots = [argument for argument in arguments if not argument.startswith("-")]
    rooms = measure_rooms(roots or _LIMITED)
    if "--check" not in arguments:
        _print(rooms)
        return 0
    complaints = compare(rooms) + find_nested(_NOT_NESTED)
    total = sum(rooms.values(), Density())
    print("\n".join([*complaints, f"{total.per_ten_lines:.2f} decisions for ten lines in all"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
