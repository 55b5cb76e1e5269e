# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A resource that a task of a node changes: read, plan, start the task, read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..api.interface import Api
from ..api.tasks import find_worker
from ..core.errors import Conflict
from ..core.result import Result
from .engine import Resource, apply_plan
from .execute import Execution
from .plan import Plan, Step
from .result import result_of

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


class PlannedTask(Resource[Result]):
    """A resource with a function that reads it and returns the plan."""

    def __init__(self, client: Api, label: str, read: Callable[[], PlannedStep]) -> None:
        self.client = client
        self.label = label
        self.read = read
        self.foreseen = read()
        self.plan = self.foreseen.plan

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        return self.read().plan

    def confirm_write(self, step: Step) -> Callable[[], Any]:
        """Return the check after a lost answer: it finds the task, or whether the step took effect.

        A step that repeats is sent again: two restarts of a service have the same effect as one.
        """
        since = self.client.clock.time() - _CLOCKS
        worker = self.worker_of(step)
        if self.foreseen.repeats:
            return lambda: None

        def confirm() -> Any:
            if worker is not None:
                upid = find_worker(self.client, worker.node, worker.type, worker.ident, since)
                if upid is not None:
                    return upid
            return None if self.read().plan.changed else True

        return confirm

    def worker_of(self, step: Step) -> WorkerTask | None:
        """Return the task of a step, None for a step without one."""
        return self.foreseen.worker if step.is_task else None

    def preview(self) -> Result:
        return result_of(self.plan, self.foreseen.values, header=self.label)

    def report(self, execution: Execution) -> Result:
        final = self.read()
        if final.plan.changed and not final.repeats:
            raise Conflict(
                attempted=f"The change of {self.label} did not last",
                answer="the task ended well, but the state is not the desired one",
                next_step="Another run may have changed it at the same time: run this again",
                reason="changed since",
            )
        return result_of(self.plan, final.values, execution, header=self.label)


def run_planned(
    client: Api, label: str, read: Callable[[], PlannedStep], check_mode: bool, timeout: int = 300
) -> Result:
    """Carry out the plan from a reading; `timeout` is in seconds. Check mode writes nothing."""
    task = PlannedTask(client, label, read)
    task.timeout = timeout
    return apply_plan(task, check_mode)
