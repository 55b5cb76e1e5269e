# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds conditional expressions within others: ``python -m tests.tools.lint.nesting``."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.tools.stage import REPO

ROOTS = ("plugins", "tests")


def find_nested(roots: Iterable[str], repo: Path = REPO) -> list[str]:
    """Return a line for each conditional expression that contains another."""
    found: list[str] = []
    for root in roots:
        for path in sorted((repo / root).rglob("*.py")):
            name = path.relative_to(repo).as_posix()
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [f"{name}:{line}: nested conditional expression" for line in _lines(tree)]
    return found


def _lines(tree: ast.AST) -> list[int]:
    outer = [node for node in ast.walk(tree) if isinstance(node, ast.IfExp)]
    return [node.lineno for node in outer if _contains_another(node)]


def _contains_another(node: ast.IfExp) -> bool:
    return any(isinstance(child, ast.IfExp) for child in ast.walk(node) if child is not node)


def main() -> int:
    """Print the findings; return 1 if there are any."""
    complaints = find_nested(ROOTS)
    print("\n".join(complaints or ["No nested conditional expressions"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
