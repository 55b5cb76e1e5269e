# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the plan of any resource: the one loop that sends steps.

It decides nothing: each kind of resource classifies its failures (`Steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from ..api.interface import Api
from ..core.errors import (
    CONVERGES,
    FleetError,
    NetworkError,
    TaskTimeout,
    with_done,
    with_unverified,
)
from .plan import Plan, Step

if TYPE_CHECKING:
    from ..api.upid import TaskResult

# The next step after a failed read, for changes that another run would repeat.
REPEATS = "Read the state with the _info module: to run this again repeats the change"


class FailureVerdict(Enum):
    """The meaning of a step's failure."""

    FAILED = "the run ends with this error"
    UNKNOWN = "the step may have taken effect: replan, and do the remaining steps"
    STALE = "another run changed it first: replan, and fail if the same step is still needed"
    DONE = "the step took effect, in spite of the error or by another run"


@dataclass(frozen=True)
class StepResult:
    """The result of one step: the answer to its request, and warnings of its task."""

    answer: Any = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Execution:
    """The result of a plan.

    `answers` are PVE's answers to the steps, by action. `rest` is the last plan if a failure made
    a new plan necessary.
    """

    done: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    answers: Mapping[str, Any] = field(default_factory=dict)
    rest: Plan | None = None


class Steps:
    """The behaviour of one kind of resource while its plan is carried out.

    Each kind overrides the methods in which it differs.
    """

    client: Api
    timeout: int = 300  # seconds for each task
    max_replans: int = 5  # how often a plan is made again after a failure
    after_failed_read: str = CONVERGES  # the next step if a read fails after a write
    stale_errors: tuple[type[FleetError], ...] = ()  # failures that show a stale plan

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        """Read the resource again and return the plan of the remaining steps.

        `uncertain` is set after a failure. Raises FleetError.
        """
        raise NotImplementedError

    def guard(self, step: Step) -> None:
        """Raise FleetError to refuse a step before it is sent."""

    def confirm_write(self, step: Step) -> Callable[[], Any] | None:
        """Return the check of the state after a lost answer to this step.

        The check returns the UPID of the step's task, True if the step took effect, or None if it
        did not. Without a check, a lost answer is a NetworkError.
        """

    def send(self, step: Step) -> StepResult:
        """Send the request of a step, and wait for its task. Raises FleetError."""
        if step.is_task:
            result = self.client.task(
                step.method,
                *step.path,
                data=step.data,
                attempted=attempted(step.summary),
                timeout=self.time_for(step),
                confirm=self.confirm_write(step),
            )
            return self.after_task(step, result)
        answer = self.client.write(
            step.method,
            *step.path,
            data=step.data,
            attempted=attempted(step.summary),
            confirm=self.confirm_write(step),
        )
        return StepResult(answer)

    def after_task(self, step: Step, result: TaskResult) -> StepResult:
        """Return the result of a step whose task has succeeded."""
        return StepResult(result.upid, tuple(f"{step.summary}: {line}" for line in result.warnings))

    def time_for(self, step: Step) -> int:
        """Return the seconds that the task of a step may take."""
        return step.timeout or self.timeout

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        """Classify the failure of a step (pure)."""
        is_stale = isinstance(error, self.stale_errors)
        return FailureVerdict.STALE if is_stale else FailureVerdict.FAILED

    def tolerate(self, step: Step, error: FleetError) -> str:
        """Return the warning about a step that took effect in spite of an error (pure)."""
        return error.message

    def await_final(self) -> tuple[str, ...]:
        """Wait for the effects of the last step, and return warnings. Raises FleetError."""
        return ()

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        """Return the final error of the run, including the steps that were done before (pure)."""
        return with_done(error, [step.summary for step in done], self.after_failed_read)


@contextmanager
def after_writes(done: Sequence[str], next_step: str = CONVERGES) -> Iterator[None]:
    """Add these finished steps to every FleetError of the block."""
    try:
        yield
    except FleetError as error:
        failure = with_done(error, done, next_step)
        if failure is error:
            raise
        raise failure from error


def attempted(summary: str) -> str:
    """Return the beginning of the message for a failure of the step with this summary."""
    return f"Could not {summary[:1].lower()}{summary[1:]}"


def execute(hooks: Steps, plan: Plan) -> Execution:
    """Send the steps of a plan in order, and return the result.

    If an answer is lost or another run changed the resource first, the remaining steps are planned
    again from a new reading; a step can also require that (`reread`). Raises FleetError, with the
    finished steps in its details.
    """
    run = _Run(hooks, list(plan.steps))
    try:
        while run.steps:
            run.next_step()
        run.warnings += hooks.await_final()
    except FleetError as error:
        failure = hooks.failure(run.with_unverified(error), run.done)
        if failure is error:
            raise
        raise failure from error
    return Execution(
        tuple(step.summary for step in run.done), tuple(run.warnings), run.answers, run.rest
    )


class _Run:
    """The state of one execution."""

    def __init__(self, hooks: Steps, steps: list[Step]) -> None:
        self.hooks = hooks
        self.steps = steps
        self.done: list[Step] = []
        self.warnings: list[str] = []
        self.answers: dict[str, Any] = {}
        self.rest: Plan | None = None
        self.replans = 0
        self.unverified: Step | None = None  # a step that was sent with an unknown outcome

    def next_step(self) -> None:
        step = self.steps.pop(0)
        try:
            self.hooks.guard(step)
            sent = self.hooks.send(step)
        except FleetError as error:
            verdict = self.hooks.classify_failure(step, error)
            if verdict is not FailureVerdict.DONE:
                self._replan(step, error, verdict)
                return
            sent = StepResult(warnings=(self.hooks.tolerate(step, error),))
        self._note(step)
        self.warnings += sent.warnings
        self.answers[step.action] = sent.answer
        if step.reread:
            self.steps = list(self.hooks.replan(self.done, False).steps)

    def _note(self, step: Step) -> None:
        """Note that a step is done."""
        self.done.append(step)
        self.hooks.client.note(step.summary)

    def with_unverified(self, error: FleetError) -> FleetError:
        """Return the error with the step whose outcome is unknown, in `error.unverified`."""
        if self.unverified is None:
            return error
        return with_unverified(error, self.unverified.summary)

    def _replan(self, step: Step, error: FleetError, verdict: FailureVerdict) -> None:
        """Plan the remaining steps again; raise the error if a new plan cannot help."""
        if _is_unverified(error):
            self.unverified = step
        if verdict is FailureVerdict.FAILED or self.replans >= self.hooks.max_replans:
            raise error
        self.replans += 1
        self.rest = self.hooks.replan(self.done, True)
        self.steps = list(self.rest.steps)
        if verdict is FailureVerdict.STALE and self.steps[:1] == [step]:
            raise error
        if self.unverified is not None:
            self._verify(step, error)

    def _verify(self, step: Step, error: FleetError) -> None:
        """Note the step as done if the new plan does not contain it. Otherwise it is sent again; if
        its task was started and may still run, raise the error.
        """
        if step.summary not in [one.summary for one in self.steps]:
            self._note(step)
        elif error.upid:
            raise error
        self.unverified = None


def _is_unverified(error: FleetError) -> bool:
    """Return whether the step of this error was sent and may have taken effect, now or later."""
    if isinstance(error, TaskTimeout):
        return True
    if isinstance(error, NetworkError):
        return error.dispatched is not False
    # The task was started, and its status cannot be read.
    return error.method == "GET" and bool(error.upid)
