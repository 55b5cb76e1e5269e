# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries the plan of any resource out: the one loop that sends steps.

Decides nothing: what a failure means for a kind of resource, that kind says (`Managed`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from .._core.errors import FleetError
from .plan import Plan, Step
from .protocols import Api

if TYPE_CHECKING:
    from .._api.upid import TaskResult


class Verdict(Enum):
    """What the failure of a step means."""

    FAILED = "the run ends with this error"
    UNKNOWN = "the step may have taken effect: what a new look leaves to do is done"
    STALE = "another run was faster: as before, but an error where the same step is still to do"
    DONE = "the step took effect, in spite of the error or by another run"


@dataclass(frozen=True)
class Sent:
    """What came of one step: the answer to its request, and warnings of its task."""

    answer: Any = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Execution:
    """What came of a plan.

    `answers` has what PVE answered to each step, by its action. `rest` is the plan that was made
    last, where one was made again because of a failure.
    """

    done: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    answers: Mapping[str, Any] = field(default_factory=dict)
    rest: Plan | None = None


class Managed:
    """One thing that a task manages, as far as its plan is carried out.

    Each kind of resource overrides what is different about it.
    """

    client: Api
    timeout: int = 300  # seconds for each task
    most_looks: int = 5  # how often a plan is made again after a failure

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        """Read the resource again and return what is left to do after these steps.

        `uncertain` is set after a failure. Raises FleetError.
        """
        raise NotImplementedError

    def before(self, step: Step) -> None:
        """Refuse a step that is about to be sent: raises FleetError."""

    def happened(self, step: Step) -> Callable[[], Any] | None:
        """Return the look after a lost answer to this step.

        The look returns the UPID of its task, True where it took effect, or None where it did not.
        Without one a lost answer is a NetworkError.
        """

    def send(self, step: Step) -> Sent:
        """Send the request of a step, and wait for its task. Raises FleetError."""
        if step.is_task:
            result = self.client.task(
                step.method,
                *step.path,
                data=step.data,
                attempted=attempted(step.summary),
                timeout=self.time_for(step),
                happened=self.happened(step),
            )
            return self.ended(step, result)
        answer = self.client.write(
            step.method,
            *step.path,
            data=step.data,
            attempted=attempted(step.summary),
            happened=self.happened(step),
        )
        return Sent(answer)

    def ended(self, step: Step, result: TaskResult) -> Sent:
        """Return what came of a step whose task has ended well."""
        return Sent(result.upid, tuple(f"{step.summary}: {line}" for line in result.warnings))

    def time_for(self, step: Step) -> int:
        """Return the seconds that the task of a step may take."""
        return step.timeout or self.timeout

    def judge(self, step: Step, error: FleetError) -> Verdict:
        """Return what the failure of a step means (pure)."""
        return Verdict.FAILED

    def excuse(self, step: Step, error: FleetError) -> str:
        """Return the warning about a step that took effect in spite of an error (pure)."""
        return error.message

    def finish(self) -> tuple[str, ...]:
        """Wait for what follows the last step, and return warnings. Raises FleetError."""
        return ()

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        """Return the error with which the run ends (pure): with what had been done before it."""
        if not done:
            return error
        return with_done(error, [step.summary for step in done])


def with_done(error: FleetError, done: Sequence[str]) -> FleetError:
    """Return an error that says what had been done before it."""
    details = dict(error.details)
    if done:
        details["done"] = list(done)
    return error.on(details=details)


def attempted(summary: str) -> str:
    """Return how the message begins where what this summary says has failed."""
    return f"Could not {summary[:1].lower()}{summary[1:]}"


def execute(managed: Managed, plan: Plan) -> Execution:
    """Send the steps of a plan in order, and return what was done.

    Where an answer is lost or another run was faster, the rest is planned again from a new reading;
    so it is after a step that says so. Raises FleetError, with what had been done in its details.
    """
    run = _Run(managed, list(plan.steps))
    try:
        while run.steps:
            run.next_step()
        run.warnings += managed.finish()
    except FleetError as error:
        failure = managed.failure(error, run.done)
        if failure is error:
            raise
        raise failure from error
    return Execution(
        tuple(step.summary for step in run.done), tuple(run.warnings), run.answers, run.rest
    )


class _Run:
    """The state of one execution."""

    def __init__(self, managed: Managed, steps: list[Step]) -> None:
        self.managed = managed
        self.steps = steps
        self.done: list[Step] = []
        self.warnings: list[str] = []
        self.answers: dict[str, Any] = {}
        self.rest: Plan | None = None
        self.looks = 0

    def next_step(self) -> None:
        step = self.steps.pop(0)
        try:
            self.managed.before(step)
            sent = self.managed.send(step)
        except FleetError as error:
            verdict = self.managed.judge(step, error)
            if verdict is not Verdict.DONE:
                self._look_again(step, error, verdict)
                return
            sent = Sent(warnings=(self.managed.excuse(step, error),))
        self.done.append(step)
        self.managed.client.note(step.summary)
        self.warnings += sent.warnings
        self.answers[step.action] = sent.answer
        if step.reread:
            self.steps = list(self.managed.replan(self.done, False).steps)

    def _look_again(self, step: Step, error: FleetError, verdict: Verdict) -> None:
        """Plan again what is left to do; raises the error where that is of no use."""
        if verdict is Verdict.FAILED or self.looks >= self.managed.most_looks:
            raise error
        self.looks += 1
        self.rest = self.managed.replan(self.done, True)
        self.steps = list(self.rest.steps)
        if verdict is Verdict.STALE and self.steps[:1] == [step]:
            raise error
