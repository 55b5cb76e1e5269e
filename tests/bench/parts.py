"""What a part of the measurement is, and what all of them need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.bench.figures import Figure, Measured, Row
from tests.bench.sides import Listed, Played, Side
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

CLUSTER = Path(__file__).resolve().parent / "cluster.yml"
LATENCY_MS = 20
SLOTS = 4  # tasks that a node runs at once
NODES = 5
TASK_MS = {
    "qmcreate": 700,
    "qmclone": 3000,
    "qmstart": 900,
    "qmsnapshot": 800,
    "vzcreate": 700,
    "vzdump": 1500,
    "qmrestore": 3000,
    "default": 100,
}
NO_TIME = dict.fromkeys(TASK_MS, 0)

PART = Callable[["Bench"], Measured]


@dataclass(frozen=True)
class Bench:
    """The two sides, and how often each is measured."""

    ours: Side
    peer: Side
    runs: int

    @property
    def few(self) -> int:
        """Runs of what takes the peer a minute or more."""
        return min(self.runs, 3)

    def say(self, text: str) -> None:
        """Tell the person who waits."""
        print(f"  {text}", flush=True)


@contextmanager
def tasks_cluster(cluster: Path = CLUSTER) -> Iterator[Simulator]:
    """Serve the cluster of a file with tasks that take their time."""
    times = ",".join(f"{kind}={milliseconds}" for kind, milliseconds in TASK_MS.items())
    arguments = (
        "--cluster",
        cluster,
        "--latency-ms",
        LATENCY_MS,
        "--task-ms",
        times,
        "--task-slots",
        SLOTS,
    )
    with Simulator(*arguments) as simulator:
        yield simulator


@contextmanager
def made_up_cluster(vms: int, at_once: int = 0, nodes: int = NODES) -> Iterator[Simulator]:
    """Serve a made-up cluster: all VMs with an agent, one in ten stopped, and at most at_once
    concurrent requests.
    """
    arguments = (
        "--nodes",
        nodes,
        "--vms",
        vms,
        "--seed",
        1,
        "--latency-ms",
        LATENCY_MS,
        "--max-concurrency",
        at_once,
    )
    with Simulator(*arguments) as simulator:
        yield simulator


@contextmanager
def in_no_time(simulator: Simulator) -> Iterator[None]:
    """Let a preparation cost nothing: neither latency nor tasks take time."""
    simulator.steer("/settings", {"latency_ms": 0, "task_ms": NO_TIME})
    try:
        yield
    finally:
        simulator.steer("/settings", {"latency_ms": LATENCY_MS, "task_ms": TASK_MS})


def ask(simulator: Simulator, path: str, **query: Any) -> list[dict[str, Any]]:
    """Return the rows of a listing of the server."""
    token = {"Authorization": f"PVEAPIToken={TOKEN_ID}={TOKEN_SECRET}"}
    url = f"{simulator.url}/api2/json/{path}"
    with requests.Session() as session:
        session.trust_env = False
        answer = session.get(url, params=query, headers=token, verify=simulator.ca, timeout=30)
    answer.raise_for_status()
    rows: list[dict[str, Any]] = answer.json()["data"]
    return rows


def server_seconds(simulator: Simulator, nodes: Sequence[str] = ("pve1",)) -> float:
    """Return the time of all tasks of these nodes since the start or the reset, as it was set for
    their types.
    """
    milliseconds = 0
    for node in nodes:
        tasks = ask(simulator, f"nodes/{node}/tasks", limit=1000)
        milliseconds += sum(TASK_MS.get(task["type"], TASK_MS["default"]) for task in tasks)
    return milliseconds / 1000


def row_of_plays(
    what: str, side: Side, plays: Sequence[Played], *, units: int = 1, note: str = ""
) -> Row:
    """Return the row of several plays that did the same.

    The requests are those of the one in the middle.
    """
    return Row(
        what,
        side.name,
        Figure(tuple(play.seconds for play in plays)),
        sorted(play.requests for play in plays)[len(plays) // 2],
        units=units,
        play=Figure(tuple(play.play_seconds for play in plays)),
        command=Figure(tuple(play.ran.seconds for play in plays)),
        cpu=Figure(tuple(play.ran.cpu_seconds for play in plays)),
        peak_mib=Figure(tuple(play.ran.peak_mib for play in plays)),
        note=note,
    )


def row_of_lists(
    what: str, side: Side, lists: Sequence[Listed], *, units: int, note: str = ""
) -> Row:
    """Return the row of several listings of the same inventory.

    Their time is that of the whole command.
    """
    return Row(
        what,
        side.name,
        Figure(tuple(one.ran.seconds for one in lists)),
        sorted(one.requests for one in lists)[len(lists) // 2],
        units=units,
        cpu=Figure(tuple(one.ran.cpu_seconds for one in lists)),
        peak_mib=Figure(tuple(one.ran.peak_mib for one in lists)),
        note=note,
    )


def ways(side: Side, ours: dict[str, Any], peers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tasks of a side: one of pve.fleet, one or several of the peer."""
    return [ours] if side.is_ours else list(peers)
