# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutation testing: the sample, the choice of tests, and the outcome of a mutant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cosmic_ray", reason="cosmic-ray belongs to the tools of developers")

from tests.mutants.__main__ import covering, difference, is_killed
from tests.mutants.live import compiled, listen, probed, put, replaced, restore
from tests.mutants.sample import Mutant, program, sample
from tests.mutants.session import Session, in_forks

SOURCE = '''\
"""A room."""

from __future__ import annotations

LIMIT = 3


def fits(size: int | None) -> bool:
    return size is not None and size <= LIMIT
'''
TEST = """\
import os

from room import fits


def test_fits():
    assert fits(3)
    assert not fits(4)


def test_the_collection_of_another_tree_is_not_used():
    assert "PVE_FLEET_TEST_HOME" not in os.environ
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "room.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "test_room.py").write_text(TEST, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  long\n", encoding="utf-8")
    return tmp_path


def test_a_seed_draws_the_same_mutants(tree: Path) -> None:
    first = sample(tree, ".", 8, 1)
    assert first == sample(tree, ".", 8, 1)
    assert first != sample(tree, ".", 8, 2)
    assert len({mutant.code for mutant in first}) == 8


def test_an_invalid_program_is_not_a_mutant(tmp_path: Path) -> None:
    """cosmic-ray replaces the asterisks of an unpacking, as those of a power."""
    (tmp_path / "room.py").write_text("def both(b):\n    return {1: 2, **b}\n", encoding="utf-8")
    for mutant in sample(tmp_path, ".", 4, 1):
        compile(mutant.code, "room.py", "exec")


def test_types_are_not_mutated(tree: Path) -> None:
    assert program(SOURCE) == program(SOURCE.replace("int | None", "int + None"))
    assert program(SOURCE) != program(SOURCE.replace("<=", "<"))
    for mutant in sample(tree, ".", 8, 1):
        assert "size: int | None" in mutant.code or mutant.file != "room.py"


@pytest.mark.parametrize(
    ("old", "new", "killed"),
    [("<=", "<", True), ("size is not None and ", "True and ", False), ("3", "0 / 0", True)],
)
def test_a_mutant_is_killed_by_a_test_that_fails(
    tree: Path, old: str, new: str, killed: bool
) -> None:
    mutant = Mutant("room.py", 9, "Replace", SOURCE, SOURCE.replace(old, new))
    assert is_killed(mutant, tree, ["test_room.py"]) is killed
    assert (tree / "room.py").read_text(encoding="utf-8") == SOURCE
    assert difference(mutant).count("\n-") == 1


class KnownTests:
    """A session that has run its tests."""

    items = {"tests/a.py::one": 1, "tests/a.py::two": 2, "tests/b.py::three": 3}
    found = {
        "tests/a.py::one": ["plugins/module_utils/room.py", "plugins/module_utils/room.py:3"],
        "tests/b.py::three": ["plugins/module_utils/room.py"],
    }
    seconds = {"tests/a.py::one": 2.0, "tests/b.py::three": 1.0}
    tests_of = Session.tests_of


def test_the_tests_that_execute_a_line_meet_its_mutants() -> None:
    def found(line: int, name: str = "plugins/module_utils/room.py") -> list[str]:
        known: Any = KnownTests()
        return covering(Mutant(name, line, "", "", ""), known)

    assert found(3) == ["tests/a.py::one"]
    assert found(1) == ["tests/b.py::three", "tests/a.py::one"]  # of the file, the cheaper first
    assert found(1, "plugins/module_utils/never.py") == [*KnownTests.items]


PROGRAM = '''
LIMIT = 3


def fits(size, limit=LIMIT):
    """Text."""
    if size > 9:
        return False
    return any(size <= one for one in (limit,))


class Room:
    names = "a" in {"a", "b", "c", "d"}

    def size(self):
        return LIMIT
'''


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("size <= one", "size < one", {"fits", "<genexpr>"}),
        ("return LIMIT", "return -LIMIT", {"size"}),
        ("LIMIT = 3", "LIMIT = 4", None),
        ("limit=LIMIT", "limit=-LIMIT", None),
    ],
)
def test_what_an_import_executes_does_not_count_as_a_function(
    old: str, new: str, names: set[str] | None
) -> None:
    found = replaced(compiled(PROGRAM), compiled(PROGRAM.replace(old, new)))
    assert (None if found is None else {one.co_name for one, _new in found}) == names


def test_probes_tell_files_and_lines_and_change_nothing_else() -> None:
    heard: list[str] = []
    listen(heard.append)
    program: dict[str, Any] = {}
    exec(probed("room.py", PROGRAM, [8]), program)
    assert program["fits"](3)
    assert heard == ["room.py"]
    assert not program["fits"](10)
    assert heard == ["room.py", "room.py", "room.py:8"]
    assert program["fits"].__doc__ == "Text."


def test_loaded_functions_get_their_new_code_and_lose_it() -> None:
    before, after = compiled(PROGRAM), compiled(PROGRAM.replace("size <= one", "size < one"))
    program: dict[str, Any] = {}
    exec(before, program)
    functions = {("room.py", program["fits"].__code__): [program["fits"]]}
    put("room.py", replaced(before, after) or [], functions)
    assert not program["fits"](3)
    restore(functions)
    assert program["fits"](3)


def test_forks_run_at_once_and_one_that_hangs_is_killed() -> None:
    calls = [lambda: 0, lambda: 1, lambda: os.read(os.pipe()[0], 1)[0], lambda: 1 // 0]
    ended = dict(in_forks(calls, 2, 0.25))
    assert [ended[number] == 0 for number in range(4)] == [True, False, False, False]
