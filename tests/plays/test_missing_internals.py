# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each part of ansible-core that tasks in the controller's process need may be missing: the task
runs as a module, with the same result and one warning.

The parts are those that a run uses, see `missing_internals/sitecustomize.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.plays.test_in_process import HERE, Played, Row, play, same
from tests.simulator.process import DEMO, Simulator

HOOK = Path(__file__).parent / "missing_internals"
ROWS = [
    Row("a result", "pool_info", {}),
    Row("an error of the cluster", "vm", {"name": "both", "source": "nosuch"}),
    Row("a wrong option", "vm_info", {"nosuch": 1}),
]
SHARDS = 4
# All parts in `make test-long`, one of ten in `make test-slow`; in `make test`, an imported part
# and a part that is used later.
SHORT = (
    "ansible.module_utils.parsing.convert_bool.boolean",
    "ansible.module_utils.common.arg_spec.ArgumentSpecValidator().validate()._no_log_values",
)


@pytest.fixture(scope="module")
def simulator() -> Any:
    with Simulator("--cluster", DEMO) as running:
        yield running


@pytest.fixture(scope="module")
def complete(simulator: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The tasks with a complete Ansible; its output ends with the parts that they use."""
    place = tmp_path_factory.mktemp("complete")
    played = play(
        place, ROWS, simulator, PYTHONPATH=str(HOOK), PVE_FLEET_USED=str(place / "used.txt")
    )
    parts = dict.fromkeys((place / "used.txt").read_text(encoding="utf-8").splitlines())
    return Played(played.results, played.output, {"parts": list(parts)})


def without(part: str, simulator: Simulator, place: Path) -> Played:
    return play(place, ROWS, simulator, PYTHONPATH=str(HOOK), PVE_FLEET_MISSING=part)


def assert_ordinary(part: str, found: Played, complete: Played, simulator: Simulator) -> None:
    for row in ROWS:
        assert HERE in complete.way(row.name)
        assert HERE not in found.way(row.name), part
        result = {**found.results[row.name]}
        result.pop("warnings", None)  # since ansible-core 2.19, a result contains them
        assert same(result, simulator) == same(complete.results[row.name], simulator), part
    printed = " ".join(found.output.split())
    assert printed.count("Tasks of pve.fleet run as modules") == 1, part


@pytest.mark.parametrize("part", SHORT)
def test_a_missing_part_changes_no_result(
    part: str, simulator: Simulator, complete: Played, tmp_path: Path
) -> None:
    assert part in complete.compared["parts"]
    assert_ordinary(part, without(part, simulator, tmp_path), complete, simulator)


@pytest.mark.slow
def test_some_parts_may_be_missing(simulator: Simulator, complete: Played, tmp_path: Path) -> None:
    """They are imported in different files, and used at different moments of a task."""
    for number, part in enumerate(complete.compared["parts"][::10]):
        found = without(part, simulator, tmp_path / str(number))
        assert_ordinary(part, found, complete, simulator)


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_each_part_may_be_missing(
    shard: int, simulator: Simulator, complete: Played, tmp_path: Path
) -> None:
    parts = complete.compared["parts"]
    assert len(parts) >= 15
    for number, part in enumerate(parts[shard::SHARDS]):
        found = without(part, simulator, tmp_path / str(number))
        assert_ordinary(part, found, complete, simulator)
