# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook is ended in the middle of a list of 20 VMs; the next run completes them.

Of each kind of end there are several moments: 10 in `make test`, 20 with `make test-slow`, 200 in
`make test-long`.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases, repeated
from tests.fast_time import fast_time
from tests.faults.world import World, read_world
from tests.modules.estate_lab import Lab, open_lab
from tests.plays.commands import start
from tests.plays.interrupting import End, await_that, end, kill
from tests.simulator.forks import Forked

SEEDS = cases(full=200, short=20)
TENANT = "acme"
NAMES = [f"vm-{number}" for number in range(20)]
OPTIONS: dict[str, Any] = {
    "tenant": TENANT,
    "state": "started",
    "vms": [{"name": name, "source": "debian-13", "cores": 2} for name in NAMES],
}
QUICK = ("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0", "--cleanup-s", "0")
_UPID = re.compile(r"UPID:\S+")


ENDS = (End(signal.SIGINT), End(signal.SIGTERM), End(signal.SIGKILL, worker_too=True))
ORPHANED = End(signal.SIGKILL)


def end_of(seed: int) -> End:
    """Return how the run of a seed ends; a worker that is left costs the next run seconds."""
    if seed % 10 == 9:
        return ORPHANED
    return ENDS[seed % len(ENDS)]


@dataclass(frozen=True)
class Ground:
    """A cluster, and what a run that is not interrupted leads to there."""

    lab: Lab
    world: World
    requests: int


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    # Clones in groups of four, as the limit has them, so that a run is long enough to be ended.
    with open_lab(*QUICK, "--task-ms", "default=20,qmclone=100,qmstart=40") as lab:
        assert not lab.run("vms", **OPTIONS).get("failed")
        yield Ground(lab, read_world(lab), len(lab.simulator.log()))


def play(lab: Lab, directory: Path, options: dict[str, Any] | None = None) -> Forked:
    """Start ansible-playbook with one task, the list."""
    task = {"name": "Make the VMs", "pve.fleet.vms": options or OPTIONS}
    plays = [{"name": "All", "hosts": "localhost", "gather_facts": False, "tasks": [task]}]
    (directory / "play.yml").write_text(json.dumps(plays), encoding="utf-8")
    connection = {f"PROXMOX_{key.upper()}": str(value) for key, value in lab.connection.items()}
    quiet = {"ANSIBLE_INVENTORY_UNPARSED_WARNING": "false"}
    command = ["ansible-playbook", "play.yml"]
    return start(command, directory, {**os.environ, **quiet, **connection})


def working_in(directory: Path) -> list[int]:
    """Return the processes whose working directory this is."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # it has ended
            if Path(os.readlink(entry / "cwd")) == directory:
                found.append(int(entry.name))
    return found


def tasks(lab: Lab) -> list[dict[str, Any]]:
    """Return the tasks of all nodes."""
    rows: list[dict[str, Any]] = []
    for node in ("pve1", "pve2", "pve3"):
        rows += lab.client.get("nodes", node, "tasks", source="all", limit=1000)
    return rows


def active(lab: Lab) -> set[str]:
    """Return the UPIDs of the tasks that run."""
    return {row["upid"] for row in tasks(lab) if not row.get("endtime")}


def clones(lab: Lab) -> list[str]:
    """Return the numbers of VMs that PVE has accepted to clone, each as often as it has."""
    return [
        str(row["params"]["newid"])
        for row in lab.simulator.writes()
        if row["path"].endswith("/clone") and row["status"] == 200
    ]


def made(lab: Lab) -> list[str]:
    """Return the clones that PVE has made, by UPID.

    Of two at once for one number on another node, PVE lets the second fail in its task.
    """
    found = [row for row in tasks(lab) if row["type"] == "qmclone" and row.get("status") == "OK"]
    return [row["upid"] for row in found]


def section(report: str, title: str) -> list[str]:
    """Return the entries of the report under a title."""
    found = re.search(rf"^  {title}:\n((?:    .*\n)*)", report, re.M)
    return [line.strip() for line in found[1].splitlines()] if found else []


@pytest.mark.parametrize("seed", repeated(range(SEEDS), first=3, more=3))
def test_the_next_run_completes_what_was_interrupted(
    seed: int, ground: Ground, tmp_path: Path
) -> None:
    lab, rng, how = ground.lab, random.Random(seed), end_of(seed)
    lab.simulator.reset()
    process = play(lab, tmp_path)
    moment = rng.randrange(1, ground.requests)
    await_that(lambda: sum(lab.simulator.counts().values()) >= moment or process.poll() is not None)
    end(process, how)
    # A worker that is left does its work in real time; the next run has to see it at work.
    with nullcontext() if how.leaves_worker else fast_time():
        again = lab.run("vms", **OPTIONS)
    # Up to ansible-core 2.18, a worker without its parent waits forever to hand over its result.
    # It may have been started in the moment in which the parent was ended.
    kill(working_in(tmp_path), signal.SIGKILL)
    process.communicate()
    assert not again.get("failed"), again["msg"]
    world = read_world(lab)
    for name in NAMES:
        (wanted,) = ground.world.named(name, TENANT)
        (machine,) = world.named(name, TENANT)
        assert machine.comparable() == wanted.comparable()
        assert " run=" not in machine.config.get("description", "")
    assert len(world.vms) == len(ground.world.vms)
    assert world.leaked() == ground.world.leaked()
    assert len(made(lab)) == len(NAMES)
    assert active(lab) == set()
    assert not lab.run("vms", **OPTIONS)["changed"]


@pytest.fixture
def slow() -> Iterator[Lab]:
    """A cluster on which a clone takes longer than everything else."""
    with open_lab(*QUICK, "--task-ms", "default=20,qmclone=3600000") as lab:
        yield lab


def test_sigint_says_what_is_done_and_what_still_runs(slow: Lab, tmp_path: Path) -> None:
    blank = {"name": "blank", "disks": [{"size": 1}]}
    options = {**OPTIONS, "vms": [blank, *OPTIONS["vms"][:2]], "task_timeout": 3600}
    process = play(slow, tmp_path, options)
    await_that(lambda: len(clones(slow)) == 2)
    await_that(lambda: is_complete(slow, "blank"))
    seen = listings(slow)
    await_that(lambda: listings(slow) >= seen + 2)
    before = active(slow)
    process.send_signal(signal.SIGINT)
    process.wait()
    after = active(slow)
    _output, errors = process.communicate()
    assert "pve.fleet.vms for localhost was interrupted." in errors
    reported = {_UPID.findall(line)[0] for line in section(errors, "still running in Proxmox VE")}
    assert reported
    assert after <= reported <= before
    assert section(errors, "complete") == ["acme/blank"]
    assert "Next step: run the playbook again." in errors
    assert "Traceback" not in errors
    # The next run finds the clones that still run, and waits for them.
    slow.simulator.steer("/settings", {"task_ms": "qmclone=2000"})
    with fast_time():
        assert not slow.run("vms", **options).get("failed")
    assert len(clones(slow)) == len(made(slow)) == 2


def is_complete(lab: Lab, name: str) -> bool:
    """Return whether a VM of the list has all that it needs."""
    return any(
        one.running and " run=" not in one.config.get("description", "")
        for one in read_world(lab).named(name, TENANT)
    )


def listings(lab: Lab) -> int:
    """Return how often the tasks of a node were listed: so a run waits for several of them."""
    return sum(1 for row in lab.simulator.log() if row["path"].endswith("/tasks"))
