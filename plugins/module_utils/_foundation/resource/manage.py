# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A resource as three functions: its reading, the plan from a reading, the report of a reading;
and a resource that a task of a node changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..api.interface import Api
from ..api.tasks import find_worker
from ..core.clock import poll
from ..core.errors import Conflict, FleetError
from ..core.result import Result
from .engine import Execution, Outcome, Resource, apply_plan, result_of
from .plan import Plan, Step

Reading = TypeVar("Reading")
Report = Callable[[Plan, Reading, "Execution | None"], Outcome]
"""The outcome of a plan from the last reading; without an execution, the expected outcome."""


@dataclass(frozen=True)
class Hooks(Generic[Reading]):
    """The points in which a resource can differ from others.

    `stale_errors` are failures by which PVE shows that another run was faster. With `is_final`, a
    run waits up to `timeout` seconds for a final reading, else `timed_out` makes its error.
    """

    timeout: int = 300
    stale_errors: tuple[type[FleetError], ...] = ()
    is_final: Callable[[Reading], bool] = lambda _reading: True
    timed_out: Callable[[Reading], FleetError] | None = None


class Managed(Resource[Outcome], Generic[Outcome, Reading]):
    """A resource with a function that reads it, one that plans and one that reports."""

    def __init__(
        self,
        client: Api,
        read: Callable[[], Reading],
        plan: Callable[[Reading], Plan],
        report: Report[Reading, Outcome],
        hooks: Hooks[Reading],
        reading: Reading | None = None,
    ) -> None:
        self.client = client
        self.read = read
        self.plan_of = plan
        self.outcome_of = report
        self.hooks = hooks
        self.timeout = hooks.timeout
        self.stale_errors = hooks.stale_errors
        self.reading = read() if reading is None else reading
        self.plan = plan(self.reading)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        self.reading = self.read()
        return self.plan_of(self.reading)

    def confirm_write(self, step: Step) -> Callable[[], Any]:
        """Return the check after a lost answer: the step took effect if a new plan has no step with
        the same action.
        """

        def confirm() -> bool | None:
            rest = self.replan((), True)
            return None if step.action in {other.action for other in rest.steps} else True

        return confirm

    def await_final(self) -> tuple[str, ...]:
        """Wait for a final reading. Raises the error of the hooks if there is none in time."""
        if self.hooks.timed_out is None:
            return ()
        for _remaining in poll(self.client.clock, self.timeout):
            self.reading = self.read()
            if self.hooks.is_final(self.reading):
                return ()
        raise self.hooks.timed_out(self.reading)

    def preview(self) -> Outcome:
        return self.outcome_of(self.plan, self.reading, None)

    def report(self, execution: Execution) -> Outcome:
        return self.outcome_of(self.plan, self.reading, execution)


def manage(
    client: Api,
    read: Callable[[], Reading],
    plan: Callable[[Reading], Plan],
    report: Report[Reading, Outcome],
    *,
    check_mode: bool,
    hooks: Hooks[Reading] | None = None,
) -> Outcome:
    """Read a resource, carry out the plan from the reading, and report; check mode writes nothing.

    Without steps, a run waits for the effect of the request of another run. Raises FleetError.
    """
    resource = Managed(client, read, plan, report, hooks or Hooks())
    is_under_way = not resource.plan.changed and not resource.hooks.is_final(resource.reading)
    if is_under_way and not check_mode:
        resource.await_final()
    return apply_plan(resource, check_mode)


_CLOCKS = 10  # seconds by which the clock of a node may differ


@dataclass(frozen=True)
class WorkerTask:
    """A task of a node, with the fields of its UPID."""

    node: str
    type: str
    ident: str


@dataclass(frozen=True)
class PlannedStep:
    """The plan from a reading, the values of the result after it, and the task of its step.

    With `repeats`, each reading plans the step again, such as the restart of a service.
    """

    plan: Plan
    values: Mapping[str, Any]
    worker: WorkerTask | None = None
    repeats: bool = False


class PlannedTask(Managed[Result, PlannedStep]):
    """A resource that a task of a node changes; a lost answer is found by the task."""

    def __init__(self, client: Api, label: str, read: Callable[[], PlannedStep]) -> None:
        self.label = label
        super().__init__(client, read, lambda planned: planned.plan, self._result, Hooks())

    def confirm_write(self, step: Step) -> Callable[[], Any]:
        """Return the check after a lost answer: it finds the task, or whether the step took effect.

        A step that repeats is sent again: two restarts of a service have the same effect as one.
        """
        since = self.client.clock.time() - _CLOCKS
        worker = self.worker_of(step)
        if self.reading.repeats:
            return lambda: None
        is_done = super().confirm_write(step)

        def confirm() -> Any:
            if worker is not None:
                upid = find_worker(self.client, worker.node, worker.type, worker.ident, since)
                if upid is not None:
                    return upid
            return is_done()

        return confirm

    def worker_of(self, step: Step) -> WorkerTask | None:
        """Return the task of a step, None for a step without one."""
        return self.reading.worker if step.is_task else None

    def _result(self, plan: Plan, reading: PlannedStep, execution: Execution | None) -> Result:
        final = reading if execution is None else self.read()
        if execution is not None and final.plan.changed and not final.repeats:
            raise Conflict(
                f"The change of {self.label} did not last: the task ended well, but the state is "
                "not the desired one",
                "Another run may have changed it at the same time: run this again",
                "changed since",
            )
        return result_of(plan, final.values, execution, header=self.label)


def run_planned(
    client: Api, label: str, read: Callable[[], PlannedStep], check_mode: bool, timeout: int = 300
) -> Result:
    """Carry out the plan from a reading; `timeout` is in seconds. Check mode writes nothing."""
    task = PlannedTask(client, label, read)
    task.timeout = timeout
    return apply_plan(task, check_mode)
