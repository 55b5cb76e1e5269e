# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the benchmark that need no server: figures, the file of results, the page."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bench import report, results
from tests.bench.__main__ import PARTS
from tests.bench.command import other_work, run
from tests.bench.environment import NotMeasured
from tests.bench.figures import OURS, PEER, Figure, Measured, Row, ratio
from tests.bench.keys import KEYS
from tests.bench.workloads.fleets import desired_made_up_vms

AROUND: dict[str, Any] = {
    "date": "2026-01-02T03:04+00:00",
    "commit": "abc1234",
    "runs": 5,
    "cores": 2,
    "processor": "a processor",
    "system": "Linux 6",
    "latency_ms": 20,
    "other_cores": 0.25,
    "task_ms": {"qmclone": 3000, "default": 100},
    "ours": {"python": "3.11.7", "ansible-core": "2.19.14"},
    "peer": {"python": "3.11.7", "community.proxmox": "2.0.0"},
}


def measured(ours: float, peers: float) -> Measured:
    """Return what the part noop_loop finds when each run takes these seconds, more or less."""
    mine, theirs = (Figure((value, value * 1.1, value * 0.9)) for value in (ours, peers))
    rows = [
        Row("no change", side, one, 60, units=20, play=Figure((9.0,)))
        for side, one in ((OURS, mine), (PEER, theirs))
    ]
    found = Measured(rows)
    found.keys["noop_loop_ratio"] = ratio(theirs, mine)
    found.notes.append("A note.")
    return found


def test_a_figure_is_a_median_with_its_range() -> None:
    figure = Figure((3.0, 1.0, 2.0, 10.0))
    assert (figure.median, figure.low, figure.high) == (2.5, 1.0, 10.0)
    assert figure.scaled(2).as_dict() == {
        "median": 5.0,
        "low": 2.0,
        "high": 20.0,
        "values": [6.0, 2.0, 4.0, 20.0],
    }


@pytest.mark.parametrize(
    ("upper", "lower", "expected"),
    [
        ((10.0, 12.0, 8.0), (1.0, 2.0, 1.0), (6.0, 10.0, 10.0)),  # pairs 10, 6, 8; medians 10 and 1
        ((10.0,), (1.0, 2.0, 4.0), (2.5, 5.0, 10.0)),
        ((8.0, 10.0, 12.0), (2.0,), (4.0, 5.0, 6.0)),
    ],
)
def test_a_ratio_is_of_medians_and_its_range_of_pairs(
    upper: tuple[float, ...], lower: tuple[float, ...], expected: tuple[float, float, float]
) -> None:
    figure = ratio(Figure(upper), Figure(lower))
    assert (figure.low, figure.median, figure.high) == expected


def test_a_part_that_is_measured_again_leaves_the_others(tmp_path: Path) -> None:
    file = tmp_path / "results" / "latest.json"
    other = Measured([Row("clone", OURS, Figure((4.0,)), 9)])
    other.key("clone_start_over_server", 1.12)
    results.save(results.merged(results.load(file), "clone_start", other, AROUND), file)
    results.save(results.merged(results.load(file), "noop_loop", measured(1.0, 8.0), AROUND), file)
    results.save(
        results.merged(results.load(file), "noop_loop", measured(1.0, 12.0), {**AROUND, "runs": 9}),
        file,
    )
    found = json.loads(file.read_text(encoding="utf-8"))
    assert (found["noop_loop_ratio"], found["clone_start_over_server"]) == (12, 1.12)
    assert found["reached"] == {"noop_loop_ratio": True, "clone_start_over_server": True}
    assert found["parts"]["noop_loop"]["conditions"]["runs"] == 9
    assert found["parts"]["clone_start"]["rows"][0]["requests"] == 9
    assert [path.name for path in file.parent.iterdir()] == ["latest.json"]


def test_the_page_tells_what_was_reached_and_what_not() -> None:
    found = results.merged({}, "noop_loop", measured(1.0, 8.0), AROUND)
    page = report.page(found)
    assert "(`noop_loop_ratio`) | 8 | 8 to 8 | at least 10 | **missed** |" in page
    assert "(`fleet20_vs_peer`) | not measured | | at least 8 | |" in page
    assert "| no change | community.proxmox | 8 s (7.20 to 8.80) | 9 s |  | 2.50 |" in page
    assert "- No change: A note." in page
    assert "community.proxmox 2.0.0" in page
    assert page == report.page(json.loads(json.dumps(found)))


def test_the_page_has_percentiles_of_single_operations() -> None:
    times = tuple(float(number) for number in range(1, 41))
    found = Measured([Row("power on", OURS, Figure(times), 4)])
    page = report.page(results.merged({}, "operations", found, AROUND))
    assert f"| power on | {OURS} | 20 s | 38 s | 40 s | 4 |" in page
    assert "## Single operations\n\nNot measured yet." in report.page({})


@pytest.mark.parametrize(("share", "expected"), [(50, 2.0), (95, 4.0), (1, 1.0), (100, 4.0)])
def test_a_percentile_is_a_measured_value(share: int, expected: float) -> None:
    assert Figure((4.0, 1.0, 3.0, 2.0)).percentile(share) == expected


def test_a_part_may_have_keys_alone() -> None:
    found = Measured()
    found.key("soak_grown_mib", 0.5)
    page = report.page(results.merged({}, "soak", found, AROUND))
    assert "(`soak_grown_mib`) | 0.50 MiB | 0.50 to 0.50 | at most 2 MiB | reached |" in page


def test_parts_of_different_conditions_are_kept_apart() -> None:
    found = results.merged({}, "noop_loop", measured(1.0, 8.0), AROUND)
    found = results.merged(
        found, "create", measured(1.0, 2.0), {**AROUND, "cores": 64, "other_cores": 0.5}
    )
    page = report.page(found)
    assert "64 cores" in page
    assert "took 0.25 to 0.50 cores" in page
    assert "- parts: `noop_loop`\n" in page


def test_every_key_belongs_to_a_part_that_exists() -> None:
    """`make mutants` measures the part that `make bench` does not."""
    assert {key.part for key in KEYS.values()} <= {*PARTS, "mutants"}


@pytest.mark.parametrize(
    ("name", "good", "bad"), [("noop_forks_ratio", 7.0, 6.9), ("fleet20_over_bound", 1.3, 1.31)]
)
def test_a_key_knows_its_reach(name: str, good: float, bad: float) -> None:
    assert KEYS[name].reached(good) is True
    assert KEYS[name].reached(bad) is False
    assert KEYS["fleet1000_noop_seconds"].reached(bad) is None


def test_a_command_is_timed_with_its_children(tmp_path: Path) -> None:
    spin = (
        "import time\nwhile time.process_time() < 0.3: pass\nkeep = bytearray(64 <<"
        " 20)\ntime.sleep(0.3)"
    )
    code = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}], check=True);"
        " print('over')"
    )
    ran = run([sys.executable, "-c", code], tmp_path, {}, watch_memory=True)
    assert ran.output.read_text() == "over\n"
    assert ran.cpu_seconds >= 0.3
    assert ran.seconds >= 0.6
    assert ran.peak_mib >= 64
    ballast = bytearray(b"x") * (200 << 20)
    small = run([sys.executable, "-c", "print('small')"], tmp_path, {})
    assert small.peak_mib < 64 < len(ballast) >> 20, "the memory of who measures does not count"
    with pytest.raises(NotMeasured, match="ended with status 3"):
        run([sys.executable, "-c", "import sys; sys.exit(3)"], tmp_path, {})


def test_own_work_is_not_the_work_of_others(tmp_path: Path) -> None:
    began, others = time.monotonic(), other_work()
    run([sys.executable, "-c", "import time\nwhile time.process_time() < 1: pass"], tmp_path, {})
    most = (os.cpu_count() or 1) - 1 / (time.monotonic() - began)
    assert 0 <= others() <= most + 0.1


def test_tasks_describe_the_made_up_vms() -> None:
    desired = desired_made_up_vms(30)
    assert len({wanted["name"] for wanted in desired}) == 30
    assert all(
        wanted["nics"][0]["vlan"] > 100 and wanted["disks"][0]["size"].endswith("G")
        for wanted in desired
    )


def test_both_sides_have_the_same_libraries(repo: Path) -> None:
    ours: set[str] = set()
    for name in ("tests/requirements-demo.txt", "tests/integration/requirements.txt"):
        ours |= set((repo / name).read_text(encoding="utf-8").splitlines())
    lines = (repo / "tests" / "requirements-bench.txt").read_text(encoding="utf-8").splitlines()
    shared = [line for line in lines if line and not line.startswith(("#", "matplotlib"))]
    assert len(shared) == 4
    assert set(shared) <= ours


def test_the_table_of_slices_has_multiples_of_the_list() -> None:
    seconds = {"a list": 2.0, "60 hosts in 1 slice": 6.0}
    found = Measured(
        [
            Row(f"{what}, {way}", OURS, Figure((took * number,)), 100 * number)
            for number, what in ((5, "create 60 VMs"), (1, "60 VMs unchanged"))
            for way, took in seconds.items()
        ]
    )
    table = report.slices(results.merged({}, "slices", found, AROUND)).splitlines()
    assert table[2:] == [
        "| a list | 1 (10 s) | 500 | 1 (2 s) | 100 |",
        "| 60 hosts in 1 slice | 3.0 | 500 | 3.0 | 100 |",
    ]
    assert report.slices({}) == "Not measured yet."
