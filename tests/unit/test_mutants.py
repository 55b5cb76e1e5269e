# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutation testing: the sample, the choice of tests, and the outcome of a mutant."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="cosmic-ray belongs to the tools of developers")
pytest.importorskip("coverage", reason="coverage belongs to the tools of developers")

from coverage import CoverageData

from tests.mutants.__main__ import SUITES, covering, difference, is_killed
from tests.mutants.sample import Mutant, program, sample

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


def test_the_tests_that_execute_a_line_meet_its_mutants() -> None:
    data = CoverageData(no_disk=True)
    file = "/somewhere/plugins/module_utils/room.py"
    for context, lines in {
        "": [1],
        "tests/modules/test_a.py::test_both[1]|run": [2, 3],
        "tests/unit/test_b.py::test_one|run": [3],
    }.items():
        data.set_context(context)
        data.add_lines({file: lines})

    def found(line: int, name: str = "plugins/module_utils/room.py") -> list[str]:
        return covering(Mutant(name, line, "", "", ""), data)

    unit, module = "tests/unit/test_b.py::test_one", "tests/modules/test_a.py::test_both"
    assert found(2) == [module]
    assert found(3) == [unit, module]
    assert found(1) == [unit, module]
    assert found(1, "plugins/module_utils/never.py") == list(SUITES)
