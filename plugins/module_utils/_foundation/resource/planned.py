# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A resource that a task of a node changes: read, plan, start the task, read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..api.interface import Api
from ..api.tasks import find_worker
from ..core.errors import Conflict
from ..core.result import Result
from .engine import apply_plan
from .execute import Execution
from .manage import Hooks, Managed
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
                attempted=f"The change of {self.label} did not last",
                answer="the task ended well, but the state is not the desired one",
                next_step="Another run may have changed it at the same time: run this again",
                reason="changed since",
            )
        return result_of(plan, final.values, execution, header=self.label)


def run_planned(
    client: Api, label: str, read: Callable[[], PlannedStep], check_mode: bool, timeout: int = 300
) -> Result:
    """Carry out the plan from a reading; `timeout` is in seconds. Check mode writes nothing."""
    task = PlannedTask(client, label, read)
    task.timeout = timeout
    return apply_plan(task, check_mode)
