"""60 VMs in jobs as AWX runs them: one task with a list, or a host for each VM in slices.

All jobs use ansible-runner's transmit, worker and process, so only the way differs.
"""

from __future__ import annotations

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.environment import NotMeasured
from tests.bench.figures import OURS, Figure, Measured, Row, ratio
from tests.bench.parts import NODES, SLOTS, Bench, server_seconds, tasks_cluster
from tests.bench.sides import Side
from tests.bench.workloads.fleets import must_be_there
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

if TYPE_CHECKING:
    from tests.awx.jobs import Finished, Job

VMS, FORKS = 60, 10
LIST = "one task with a list"
SLICES = (1, 2, 4)
_DEFAULTS: dict[str, Any] = {
    "full": True,
    "cores": 4,
    "memory": "4G",
    "cloud_init": {"user": "ops"},
    "tags": ["web"],
}


@dataclass
class Way:
    """A way to manage the same VMs, with the measurements of the runs that create them and of the
    runs that change nothing.
    """

    name: str
    jobs: list[Job]
    variables: dict[str, Any]
    created: list[Took] = field(default_factory=list)
    unchanged: list[Took] = field(default_factory=list)

    def run(self, simulator: Simulator, *, changes: bool) -> Took:
        """Run all jobs at once, and measure from the start of the first to the end of the last.

        Raises NotMeasured if a job fails, or changes something unexpectedly or not at all.
        """
        simulator.reset_log()
        processor, began = _processor(), time.monotonic()
        options = ["--forks", str(FORKS)]
        started = [job.start("provision.yml", self.variables, options) for job in self.jobs]
        with ThreadPoolExecutor(len(started)) as pool:
            ends = list(pool.map(lambda one: one.finish(), started))
        seconds = time.monotonic() - began
        _expect(self, ends, changes)
        requests = sum(simulator.counts().values())
        return Took(seconds, _processor() - processor, requests)


@dataclass(frozen=True)
class Took:
    """The cost of a run: seconds, seconds of processor time, and requests."""

    seconds: float
    processor: float
    requests: int


def slices(bench: Bench) -> Measured:
    """60 VMs cloned, configured and started, and then the same 60 VMs unchanged."""
    nodes = [f"pve{number}" for number in range(1, NODES + 1)]
    with tasks_cluster() as simulator:
        ways = _ways(bench.ours, simulator)
        for _turn in range(bench.few):
            for way in ways:
                simulator.reset()
                way.created.append(way.run(simulator, changes=True))
                must_be_there(simulator, VMS, running=VMS)
                bound = max(server_seconds(simulator, [node]) / SLOTS for node in nodes)
                way.unchanged.append(way.run(simulator, changes=False))
    create = [_row(f"clone, configure, start {VMS} VMs, {way.name}", way.created) for way in ways]
    noop = [_row(f"{VMS} VMs unchanged, {way.name}", way.unchanged) for way in ways]
    measured = Measured([*create, *noop])
    for place, number in enumerate(SLICES, start=1):
        for what, rows in (("create", create), ("noop", noop)):
            name = f"slices{number}_{what}_over_list"
            measured.keys[name] = ratio(rows[place].seconds, rows[0].seconds)
    for what, rows in (("create", create), ("noop", noop)):
        measured.key(f"hosts_{what}_requests_over_list", rows[1].requests / rows[0].requests)
    measured.notes.append(
        f"The time is measured from the start of ansible-runner to its end, with {FORKS} forks in"
        f" each slice. There are {NODES} nodes with {SLOTS} slots each; the time of the tasks of"
        f" the slowest node divided by its slots is {bound:g} s."
    )
    return measured


def _ways(side: Side, simulator: Simulator) -> list[Way]:
    vms = _vms()
    place = side.place / "slices"
    whole = _job(place / "list", side, simulator)
    # A job of AWX has `provision_vms` in the estate of its project.
    whole.set_estate({"provision_defaults": _DEFAULTS, "provision_vms": vms})
    found = [Way(LIST, [whole], {})]
    for number in SLICES:
        jobs = [
            _job(place / f"{number}-{index}", side, simulator, vms[index::number])
            for index in range(number)
        ]
        slices_of = "1 slice" if number == 1 else f"{number} slices"
        name = f"{VMS} hosts in {slices_of}"
        found.append(Way(name, jobs, {"provision_hosts": "fleet"}))
    return found


def _vms() -> list[dict[str, Any]]:
    """Return VMs over all nodes, each cloned from the template of its node."""
    return [
        {
            "name": f"new-{number:02}",
            "node": node,
            "source": f"debian-13-{node}",
            "nics": [
                {"name": "net0", "ip": f"10.20.0.{1 + number}/16", "gateway": "10.20.255.254"}
            ],
        }
        for number in range(VMS)
        for node in [f"pve{1 + number % NODES}"]
    ]


def _job(
    directory: Path, side: Side, simulator: Simulator, hosts: list[dict[str, Any]] | None = None
) -> Job:
    """Return a job with the tools of this side; if hosts are given, each host is a VM."""
    from tests.awx.jobs import Job  # needs ansible-runner, which not every environment has

    login = {
        "host": f"{simulator.host}:{simulator.port}",
        "token_id": TOKEN_ID,
        "token_secret": TOKEN_SECRET,
        "ca": Path(simulator.ca).read_text(encoding="utf-8"),
    }
    job = Job(directory, login)
    job.environment = {**side.environment(simulator), **job.environment}
    if hosts is not None:
        names = [host["name"] for host in hosts]
        data = {host["name"]: {"provision_vm": host} for host in hosts}
        job.set_inventory({"_meta": {"hostvars": data}, "fleet": {"hosts": names}})
        job.set_estate({"provision_defaults": _DEFAULTS})
    return job


def _expect(way: Way, ends: list[Finished], changes: bool) -> None:
    changed = [bool(end.recap("changed")) for end in ends]
    if any(end.status for end in ends) or changed != [changes] * len(ends):
        output = "\n".join(end.output[-3000:] for end in ends)
        raise NotMeasured(f"{way.name}: changes {changed} instead of {changes}\n{output}")


def _row(what: str, took: list[Took]) -> Row:
    return Row(
        what,
        OURS,
        Figure(tuple(one.seconds for one in took)),
        sorted(one.requests for one in took)[len(took) // 2],
        units=VMS,
        cpu=Figure(tuple(one.processor for one in took)),
    )


def _processor() -> float:
    """Return the processor time of all processes that this one started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
