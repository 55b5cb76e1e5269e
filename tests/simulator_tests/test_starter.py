"""Servers that one process forks are like those that start by themselves."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulator import process
from tests.simulator.forks import Forked, Starter
from tests.simulator.process import Simulator, SimulatorError
from tests.simulator_tests.client import Client

pytestmark = pytest.mark.slow


@pytest.fixture
def starter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Starter]:
    """A starter of this test's own."""
    monkeypatch.setattr(process, "_starter", None)
    process.start_from_one_process()
    own = process._starter
    assert own is not None
    yield own
    own.stop()


def listing(simulator: Simulator) -> object:
    """What there is, without what changes while the server runs."""
    rows = Client(simulator).get("/cluster/resources")
    return [[row.get(key) for key in ("id", "name", "node", "status", "tags")] for row in rows]


def test_a_forked_server_is_like_one_that_starts_by_itself(
    starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--nodes", "2", "--vms", "3", "--lag-s", "0")
    with Simulator(*options) as forked, Simulator(*options) as second:
        assert len({forked.pid, second.pid, os.getpid()}) == 3
        assert len({forked.url, second.url}) == len({forked.ca, second.ca}) == 2
        seen = [listing(forked), listing(second)]
    monkeypatch.setattr(process, "_starter", None)
    with Simulator(*options) as own:
        assert isinstance(own.process, subprocess.Popen)
        assert seen == [listing(own)] * 2


def test_each_server_has_its_own_directory_environment_and_version(
    starter: Starter, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Simulator("--pve-version", "8.4") as old, Simulator() as new:
        assert old.ca.startswith(str(tmp_path))
        assert Client(old).get("/version")["release"] == "8.4"
        assert Client(new).get("/version")["release"] == "9.2"


def test_how_a_server_ended_is_known(starter: Starter) -> None:
    with Simulator() as sim:
        assert sim.process is not None
        assert sim.process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            sim.process.wait(0.01)
        os.kill(sim.pid, signal.SIGTERM)
        assert sim.process.wait(250) == sim.process.poll() == 0
    with Simulator() as sim:
        assert sim.process is not None
        sim.process.kill()
        assert sim.process.wait(250) == -signal.SIGKILL


def test_a_bad_start_of_a_forked_server_fails_as_usual(starter: Starter) -> None:
    with pytest.raises(SimulatorError, match="--nodes: 1 to 64"):
        Simulator("--nodes", "0").start()


def test_servers_end_with_their_starter(starter: Starter) -> None:
    sim = Simulator().start()
    starter.stop()
    assert sim.process is not None
    assert sim.process.wait(250) == 0
    sim.stop()
    with Simulator() as again:
        assert listing(again)


def parent(process: Forked) -> int:
    """The process that forked this one."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    return int(fields.split()[1])


def test_processes_of_tests_share_a_starter(tmp_path: Path) -> None:
    """It ends the servers of one that leaves, and itself after the last one."""
    environment = dict(os.environ)
    first, second = (
        Starter("tests.simulator.starter", environment, place=tmp_path) for _each in range(2)
    )
    arguments = ["--cluster", str(process.DEMO)]
    servers = [one.start(arguments, environment) for one in (first, second)]
    assert all(server.stdout.readline().startswith("ready") for server in servers)
    shared = parent(servers[0])
    assert shared == parent(servers[1]) != os.getpid()
    first.stop()
    assert servers[0].wait(250) == 0
    assert servers[1].poll() is None
    second.stop()
    assert servers[1].wait(250) == 0
    third = first.start(arguments, environment)
    assert parent(third) != shared
    first.stop()
    for server in (*servers, third):
        server.stdout.close()
        server.stderr.close()
