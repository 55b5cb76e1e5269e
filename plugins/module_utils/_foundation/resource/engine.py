# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The run of a task for one resource: preview its plan, or send its steps and report.

The one loop that sends steps decides nothing: each kind of resource classifies its failures
(`Steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..api.access.privileges import NEWEST, Privileges
from ..api.access.required import RequiredRequest, find_missing
from ..api.interface import Api
from ..core.errors import (
    CONVERGES,
    FleetError,
    NetworkError,
    PermissionDenied,
    TaskTimeout,
    with_done,
    with_unverified,
)
from ..core.failures.classify import classify
from ..core.result import Result
from ..schema.requests import require_accepted
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
    max_replans: int = 5  # how often a plan is made again without becoming shorter
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
        remaining = 1 + len(self.steps)
        self.rest = self.hooks.replan(self.done, True)
        self.steps = list(self.rest.steps)
        if len(self.steps) >= remaining:  # otherwise another run has done a part of it
            self.replans += 1
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


Outcome = TypeVar("Outcome")
"""The report of a resource: a result, or its part of the result for several resources."""


class Resource(Steps, Generic[Outcome]):
    """One resource that a task manages, with the plan from a reading of it."""

    plan: Plan
    option_names: Mapping[str, str] = MappingProxyType({})  # by the parameters of its requests
    config: Mapping[str, Any] = MappingProxyType({})  # of the guest that it changes or copies

    @property
    def for_approval(self) -> tuple[Plan, Any]:
        """The plan that is kept for its approval or compared with it, and its guest."""
        return self.plan, None

    def preview(self) -> Outcome:
        """Return the expected result of the plan; nothing is written."""
        raise NotImplementedError

    def report(self, execution: Execution) -> Outcome:
        """Return the result after the plan was carried out, from a new reading if needed.

        Raises FleetError; the engine adds the finished steps.
        """
        raise NotImplementedError


def read_privileges(client: Api, plans: Iterable[Plan]) -> Privileges | None:
    """Return the privileges of the login, None if no step of the plans has a known check."""
    requests = [request for plan in plans for request in requests_of(plan)]
    kinds = {kind for request in requests for kind in request.kinds}
    if not kinds:
        return None
    zones, pools, storages = dict[str, str](), dict[str, str](), dict[str, Any]()
    if any(request.uses_zones for request in requests):
        rows = client.get("cluster", "sdn", "vnets") or ()
        zones = {str(row["vnet"]): str(row["zone"]) for row in rows if row.get("zone")}
    if "moved" in kinds:
        rows = client.get("cluster", "resources", type="vm") or ()
        pools = {str(row["vmid"]): str(row["pool"]) for row in rows if row.get("pool")}
    if "state storage" in kinds:
        storages = {str(row["storage"]): row for row in client.get("storage") or ()}
    return Privileges(
        client.privileges(),
        client.login,
        client.release() if "since" in kinds else NEWEST,
        zones,
        pools,
        storages,
        (client.get("cluster", "options") or {}) if "tags" in kinds else {},
    )


def require_privileges(
    plan: Plan, held: Privileges | None, config: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Raise PermissionDenied for the first step that PVE would refuse, as in a run.

    `config` is the configuration of the guest that the plan changes or copies.
    """
    if held is None:
        return
    for step, request in zip(plan.steps, requests_of(plan, config), strict=True):
        missing = find_missing(request, held)
        if missing is None:
            continue
        path = "/" + "/".join(map(str, step.path))
        message = f"Permission check failed ({missing})".removesuffix(" ()")
        error = classify(step.method, path, 403, message, message, {})
        raise error.on(attempted=attempted(step.summary), tries=1)


def require_permitted(
    client: Api,
    plans: Sequence[tuple[Plan, Mapping[str, Any]]],
    next_step: str,
    options: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Raise ValidationFailed or PermissionDenied for the first step of plans that PVE would refuse.
    Each plan comes with the present values of its object; `options` are the names of options by
    parameter.
    """
    for plan, _values in plans:
        for step in plan.steps:
            require_accepted(step.path, step.data, options, client.release)
    held = read_privileges(client, [plan for plan, _values in plans])
    for plan, values in plans:
        try:
            require_privileges(plan, held, values)
        except PermissionDenied as error:
            raise error.on(next_step=next_step) from error


def requests_of(
    plan: Plan, config: Mapping[str, Any] = MappingProxyType({})
) -> list[RequiredRequest]:
    """Return the requests of a plan as their privileges are checked (pure)."""
    named = (step.data.get(key) for step in plan.steps for key in ("pool", "poolid"))
    pools = frozenset(str(pool) for pool in named if pool)
    steps = plan.steps
    return [RequiredRequest(one.method, one.path, one.data, pools, config) for one in steps]


def apply_plan(resource: Resource[Outcome], check_mode: bool) -> Outcome:
    """Carry out the plan of a resource and return the result; in check mode write nothing.

    Raises ValidationFailed before the first write if PVE would refuse a value of any step.
    """
    for step in resource.plan.steps:
        require_accepted(step.path, step.data, resource.option_names, resource.client.release)
    if check_mode:
        resource.client.plan_book.keep(*resource.for_approval)
        held = read_privileges(resource.client, [resource.plan])
        require_privileges(resource.plan, held, resource.config)
    else:
        resource.client.plan_book.agree(*resource.for_approval)
    if check_mode or not resource.plan.changed:
        return resource.preview()
    execution = execute(resource, resource.plan)
    with after_writes(execution.done, resource.after_failed_read):
        return resource.report(execution)


def result_of(
    plan: Plan, values: Mapping[str, Any], execution: Execution | None = None, *, header: str = ""
) -> Result:
    """Return the result of one resource: `values`, the planned steps and the finished steps.

    The warnings of the plan are listed before the warnings of its execution.
    """
    carried_out = execution or Execution()
    reported = {**values, "plan": plan.summaries, "done": list(carried_out.done)}
    warnings = (*plan.warnings, *carried_out.warnings)
    return Result(plan.changed, reported, diff_of(plan, header), warnings)


def diff_of(plan: Plan, header: str = "") -> dict[str, Any]:
    """Return the diff of a plan, as modules report it; if something changes, `header` names the
    object.
    """
    diff: dict[str, Any] = {"before": dict(plan.before), "after": dict(plan.after)}
    if header and plan.changed:
        diff["before_header"] = diff["after_header"] = header
    return diff
