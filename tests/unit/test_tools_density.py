# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the density of code counts."""

from __future__ import annotations

from pathlib import Path

from tests.tools.density import Density, compare, find_nested, measure, measure_rooms

CODE = '''"""A docstring.

Two lines of it."""


def one(a, b):
    """Another one."""
    # A comment.
    if a and b:
        return [x for x in a if x]
    return a if b else (1 if a else 2)
'''


def test_decisions_and_lines_are_counted() -> None:
    # The function, `if`, `and`, the comprehension and its condition, two conditional expressions.
    assert measure(CODE) == Density(decisions=7, lines=4, nested=1)
    assert measure(CODE).per_ten_lines == 17.5


def test_no_conditional_expression_is_nested() -> None:
    assert find_nested(["plugins", "tests"]) == []


def test_rooms_keep_the_limit() -> None:
    assert compare(measure_rooms(["plugins"])) == []


def test_a_room_above_the_limit_is_reported() -> None:
    rooms = {"a": Density(31, 100), "b": Density(30, 100)}
    assert compare(rooms) == ["a: 3.10 decisions for ten lines, at most 3.0 are allowed"]


def test_nested_conditional_expressions_are_found(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "dense.py").write_text(CODE)
    (tmp_path / "room" / "plain.py").write_text("x = 1 if y else 2\n")
    assert find_nested(["room"], tmp_path) == [
        "room/dense.py: 1 conditional expressions within others"
    ]
