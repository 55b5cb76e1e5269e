"""pvescheduler: backup jobs that run by the clock of the cluster, on each node for its own guests.

Source: pve-manager, PVE/Jobs.pm, PVE/Jobs/VZDump.pm and PVE/Service/pvescheduler.pm. A node looks
at each full minute. Nothing waits if there is no job.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..cluster.sections import SectionFile
from ..core.api import Ctx, api
from ..errors import ApiError
from ..guests.vzdump import vzdump
from ..schema.calendar_event import next_event, parse_event

if TYPE_CHECKING:
    from ..core.api import Simulation
    from ..core.tasks import Task

_MINUTE = 60
_TIMING = ("enabled", "schedule")  # properties whose change starts a job's waiting again
_ITERATIONS = 10


@dataclass
class JobState:
    """What a node knows of a job: the time from which it waits, and its last task.

    `updated` is set by a change of the schedule and by the start of the scheduler, and comes before
    the start of the last task.
    """

    time: float
    timing: tuple[Any, ...]
    updated: float | None = None
    task: Task | None = None

    @property
    def last_run(self) -> float:
        """PVE/Jobs.pm, get_last_runtime."""
        if self.updated is not None:
            return self.updated
        return self.task.start if self.task is not None else self.time

    @property
    def running(self) -> bool:
        """Whether its last task has not ended."""
        return self.task is not None and self.task.running


@dataclass
class Scheduler:
    """The schedulers of all nodes."""

    sim: Simulation
    states: dict[tuple[str, str], JobState] = field(default_factory=dict)
    timer: asyncio.Task[None] | None = None

    def changed(self) -> None:
        """Jobs were created, changed or removed by a request: the node of the request knows at
        once, the others see it at their next look.
        """
        now = self.sim.cluster.now()
        for node in self._online():
            self._synchronize(node, now if node == self.sim.cluster.local else _full_minute(now))
        self._wait()

    def node_started(self, node: str) -> None:
        """The scheduler of a node starts: a job that was missed waits for its next time, unless it
        has `repeat-missed`.
        """
        now = self.sim.cluster.now()
        self._synchronize(node, now)
        for name, job in self._jobs():
            if not job.get("repeat-missed"):
                self.states[node, name].updated = now
        self._wait()

    async def forward(self, moment: float) -> None:
        """Put the clock forward; each job that becomes due runs to its end on the way."""
        cluster = self.sim.cluster
        while True:
            due = self._next_look()
            if due is None or due > moment:
                break
            cluster.clock_ahead += max(0.0, due - cluster.now())
            await _ended(self.look())
        cluster.clock_ahead += max(0.0, moment - cluster.now())
        self._wait()

    def look(self) -> list[Task]:
        """Start the jobs that are due, and return their tasks (PVE/Jobs.pm, run_jobs)."""
        now = self.sim.cluster.now()
        started: list[Task] = []
        for node in self._online():
            self._synchronize(node, now)
            for name, job in self._jobs():
                state = self.states[node, name]
                due = self._due(node, job, state)
                if due is not None and due <= now and not state.running:
                    task = self._run(node, name, job, state)
                    started += [task] if task is not None else []
        return started

    def _run(self, node: str, name: str, job: dict[str, Any], state: JobState) -> Task | None:
        """Back up the guests of the job on a node. None without such guests, and if it is
        refused.
        """
        state.updated, state.task, state.time = None, None, self.sim.cluster.now()
        method = self.sim.schema.methods["POST", "/nodes/{node}/vzdump"]
        options = {option: value for option, value in job.items() if option in method.props}
        for option, value in options.items():
            if isinstance(value, dict):
                options[option] = ",".join(f"{key}={part}" for key, part in value.items())
        options |= {"node": node, "job-id": name, "quiet": True}
        try:
            answer = vzdump(Ctx(self.sim, "root@pam", None, method), options)
        except ApiError:
            return None
        state.task = self.sim.cluster.tasks.by_upid.get(answer)
        return state.task

    def _wait(self) -> None:
        """Wait for the next look that has something to do."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        due = self._next_look()
        if due is not None:
            self.timer = self.sim.background(self._look_at(due))

    async def _look_at(self, due: float) -> None:
        await asyncio.sleep(max(0.0, due - self.sim.cluster.now()))
        self.look()
        self.timer = None
        self._wait()

    def _next_look(self) -> float | None:
        """The full minute at which the next job is due; one minute after another while it runs."""
        now = self.sim.cluster.now()
        found: list[float] = []
        for node in self._online():
            for name, job in self._jobs():
                state = self.states.get((node, name))
                due = None if state is None else self._due(node, job, state)
                if due is not None:
                    found.append(_full_minute(max(due, now)))
        return min(found, default=None)

    def _due(self, node: str, job: dict[str, Any], state: JobState) -> int | None:
        if job.get("node") not in (None, node) or not int(job.get("enabled", 1)):
            return None
        return next_event(parse_event(job["schedule"]), state.last_run)

    def _synchronize(self, node: str, now: float) -> None:
        """Source: PVE/Jobs.pm, synchronize_job_states_with_config."""
        jobs = dict(self._jobs())
        for key in [key for key in self.states if key[0] == node and key[1] not in jobs]:
            del self.states[key]
        for name, job in jobs.items():
            timing = tuple(job.get(option) for option in _TIMING)
            state = self.states.get((node, name))
            if state is None:
                self.states[node, name] = JobState(now, timing)
            elif state.timing != timing:
                state.timing, state.updated = timing, now

    def _online(self) -> list[str]:
        """The nodes whose scheduler runs; without a quorum none reads its jobs."""
        cluster = self.sim.cluster
        if not cluster.quorate:
            return []
        return [name for name, node in cluster.nodes.items() if node.online]

    def _jobs(self) -> Iterator[tuple[str, dict[str, Any]]]:
        file: SectionFile = self.sim.cluster.sections.setdefault("jobs", SectionFile())
        yield from sorted(file.entries.items())


def _full_minute(moment: float) -> float:
    return math.ceil(moment / _MINUTE) * float(_MINUTE)


async def _ended(tasks: list[Task]) -> None:
    handles = [task.handle for task in tasks if task.handle is not None]
    await asyncio.gather(*handles, return_exceptions=True)


@api("GET /cluster/jobs/schedule-analyze")
def analyze(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The next times of a schedule (pve-manager: API2/Cluster/Jobs.pm)."""
    event = parse_event(p["schedule"])
    last = p.get("starttime")
    moment: float = ctx.cluster.now() if last is None else int(last)
    rows = []
    for _number in range(int(p.get("iterations") or _ITERATIONS)):
        following = next_event(event, moment)
        if following is None:
            break
        rows.append({"timestamp": following, "utc": time.asctime(time.gmtime(following))})
        moment = following
    return rows
