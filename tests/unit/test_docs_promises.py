# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each promise names the tests that prove it, and these exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "promises.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (?P<promise>[^|]+) \| (?P<proof>[^|]+) \|$", re.MULTILINE)
_WORD = re.compile(r"`([^`]+)`")


def rows() -> dict[str, str]:
    """Return what proves each promise, by the promise."""
    table = PAGE.partition("\n## ")[0]
    found = {row["promise"]: row["proof"] for row in _ROW.finditer(table)}
    del found["Promise"], found["---"]
    assert len(found) == table.count("\n| ") - 2
    return found


def named(text: str) -> Iterator[tuple[str, str]]:
    """Yield file and name of each test in a text; a file is given once for the tests behind it."""
    file = ""
    for word in _WORD.findall(text):
        if word.startswith("tests/"):
            file = word
        elif word.startswith("test_"):
            yield file, word


@cache
def defined_in(file: str) -> frozenset[str]:
    """Return the names of the tests of a file, also of those in a class."""
    tree = ast.parse((REPO / file).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return frozenset(one.name for one in functions if one.name.startswith("test_"))


@pytest.mark.parametrize("promise", rows())
def test_a_promise_has_tests_that_exist(promise: str) -> None:
    proof = rows()[promise]
    tests = list(named(proof))
    assert tests
    assert [(file, name) for file, name in tests if name not in defined_in(file)] == []


def test_each_file_of_the_page_exists() -> None:
    files = {word for word in _WORD.findall(PAGE) if word.startswith("tests/")}
    assert len(files) > 10
    assert sorted(file for file in files if not (REPO / file).is_file()) == []


def test_a_name_that_no_file_has_is_found() -> None:
    assert list(named("`tests/a.py`: `test_one`, `test_two`; `tests/b.py`: `test_three`")) == [
        ("tests/a.py", "test_one"),
        ("tests/a.py", "test_two"),
        ("tests/b.py", "test_three"),
    ]
    here = "tests/unit/test_docs_promises.py"
    assert "test_each_file_of_the_page_exists" in defined_in(here)
    assert "test_without_an_author" not in defined_in(here)
