# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one loop that carries plans out, for a resource of no kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    CONVERGES,
    ApiError,
    Conflict,
    FleetError,
    NetworkError,
    PermissionDenied,
    TaskTimeout,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.engine import (
    REPEATS,
    Execution,
    FailureVerdict,
    Resource,
    StepResult,
    Steps,
    after_writes,
    apply_plan,
    execute,
    result_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Plan, Step
from tests.unit.module_utils.resource.resource_cases import FakeApi


def step(name: str, **more: Any) -> Step:
    return Step(name, f"Do {name}", "PUT", ("things", name), **{"is_task": False, **more})


A, B, C = step("a"), step("b"), step("c")
VERDICTS = {
    Conflict: FailureVerdict.STALE,
    NetworkError: FailureVerdict.UNKNOWN,
    PermissionDenied: FailureVerdict.DONE,
}


class Thing(Steps):
    """Sends nothing; `failures` are raised by the steps of that action, one after the
    other.
    """

    max_replans = 2

    def __init__(self, *rests: Plan, **failures: list[FleetError]) -> None:
        self.client = FakeApi()
        self.failures = failures
        self.rests = list(rests)
        self.looks: list[tuple[list[str], bool]] = []
        self.sent: list[str] = []
        self.refused = ""
        self.unreadable: FleetError | None = None

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        if self.unreadable is not None:
            raise self.unreadable
        self.looks.append(([one.action for one in done], uncertain))
        return self.rests.pop(0)

    def guard(self, step: Step) -> None:
        if step.action == self.refused:
            raise FleetError(reason="refused")

    def send(self, step: Step) -> StepResult:
        if self.failures.get(step.action):
            raise self.failures[step.action].pop(0)
        self.sent.append(step.action)
        return StepResult(f"answer to {step.action}", (f"{step.action} was slow",))

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        return VERDICTS.get(type(error), FailureVerdict.FAILED)

    def await_final(self) -> tuple[str, ...]:
        return ("the end",)


def test_all_steps_are_sent_in_order() -> None:
    outcome = execute(Thing(), Plan((A, B)))
    assert outcome.done == ("Do a", "Do b")
    assert outcome.warnings == ("a was slow", "b was slow", "the end")
    assert outcome.answers == {"a": "answer to a", "b": "answer to b"}
    assert outcome.rest is None


def test_what_is_left_is_planned_again_where_another_run_was_faster() -> None:
    thing = Thing(Plan((C,)), b=[Conflict()])
    outcome = execute(thing, Plan((A, B)))
    assert outcome.done == ("Do a", "Do c")
    assert thing.looks == [(["a"], True)]
    assert outcome.rest == Plan((C,))


def test_a_plan_that_another_run_makes_shorter_is_planned_again_each_time() -> None:
    d = step("d")
    rests = (Plan((B, C, d)), Plan((C, d)), Plan((d,)))
    thing = Thing(*rests, a=[Conflict()], b=[Conflict()], c=[Conflict()])
    assert len(rests) > thing.max_replans
    assert execute(thing, Plan((A, B, C, d))).done == ("Do d",)


def test_a_conflict_that_is_still_there_ends_the_run() -> None:
    thing = Thing(Plan((B, C)), b=[Conflict(reason="taken")])
    with pytest.raises(Conflict) as failure:
        execute(thing, Plan((A, B)))
    assert failure.value.details == {"done": ["Do a"]}
    assert thing.sent == ["a"]


def test_a_step_that_may_have_happened_is_sent_again_where_the_new_plan_has_it() -> None:
    thing = Thing(Plan((A, B)), a=[NetworkError()])
    assert execute(thing, Plan((A, B))).done == ("Do a", "Do b")


def test_looks_have_an_end() -> None:
    thing = Thing(*[Plan((A,))] * 9, a=[NetworkError()] * 9)
    with pytest.raises(NetworkError):
        execute(thing, Plan((A,)))
    assert len(thing.looks) == 2


def test_a_step_that_took_effect_all_the_same_is_done_with_a_warning() -> None:
    outcome = execute(Thing(a=[PermissionDenied(answer="so what")]), Plan((A, B)))
    assert outcome.done == ("Do a", "Do b")
    assert outcome.warnings[0] == "so what."


def test_a_step_can_ask_for_a_new_plan() -> None:
    thing = Thing(Plan((C,)))
    assert execute(thing, Plan((step("a", reread=True), B))).done == ("Do a", "Do c")
    assert thing.looks == [(["a"], False)]


def test_a_step_that_is_refused_is_not_sent() -> None:
    thing = Thing()
    thing.refused = "b"
    with pytest.raises(FleetError, match="refused") as failure:
        execute(thing, Plan((A, B)))
    assert thing.sent == ["a"]
    assert failure.value.details == {"done": ["Do a"]}


class Shelf(Resource[Result]):
    """A shelf that a task of PVE makes."""

    def __init__(self, api: FakeApi) -> None:
        self.client = api
        path = ("rooms", "a", "shelves")
        create = Step("create", "Create it", "POST", path, {"shelf": "x"})
        self.plan = Plan((create,), {}, {"id": "x"})

    def preview(self) -> Result:
        return result_of(self.plan, {"shelf": None}, header="shelf x")

    def report(self, execution: Execution) -> Result:
        return result_of(self.plan, {"shelf": "x"}, execution, header="shelf x")


def test_a_step_can_be_a_task_whose_warnings_are_reported() -> None:
    api = FakeApi()
    result = apply_plan(Shelf(api), check_mode=False)
    assert list(api.shelves) == ["x"]
    assert result.values == {"shelf": "x", "plan": ["Create it"], "done": ["Create it"]}
    assert result.warnings == ("Create it: it creaks",)


def test_check_mode_has_the_same_plan_and_diff_and_writes_nothing() -> None:
    api = FakeApi()
    predicted = apply_plan(Shelf(api), check_mode=True)
    assert api.written == []
    assert (predicted.changed, predicted.values["done"]) == (True, [])
    assert predicted.diff == apply_plan(Shelf(api), check_mode=False).diff


def unreadable() -> FleetError:
    return ApiError(
        attempted="Could not read shelf x",
        answer="no reason at all",
        next_step="Ask the joiner",
        method="GET",
    )


class UnreadableShelf(Shelf):
    def report(self, execution: Execution) -> Result:
        raise unreadable()


@pytest.mark.parametrize(("again", "text"), [(None, CONVERGES), (REPEATS, REPEATS)])
def test_failed_read_after_the_last_write_reports_it(again: str | None, text: str) -> None:
    shelf = UnreadableShelf(FakeApi())
    if again is not None:
        shelf.after_failed_read = again
    with pytest.raises(ApiError) as failure:
        apply_plan(shelf, check_mode=False)
    assert failure.value.details == {"done": ["Create it"]}
    assert failure.value.came_after_changes
    assert failure.value.reason == "no reason at all"
    assert failure.value.message == (
        "The changes in error.done were made, and only the read after them failed:"
        f" Could not read shelf x: no reason at all. Ask the joiner. {text}."
    )


def test_failed_read_between_two_steps_reports_the_first() -> None:
    with pytest.raises(FleetError) as failure:
        execute(Thing(b=[unreadable()]), Plan((A, B)))
    assert failure.value.details == {"done": ["Do a"]}
    assert "The changes in error.done were made" in failure.value.message


def test_steps_of_nested_work_are_reported_in_order() -> None:
    with pytest.raises(ApiError) as failure, after_writes(["One"]), after_writes(["Two"]):
        raise unreadable()
    assert failure.value.details == {"done": ["One", "Two"]}
    assert failure.value.message.count("error.done") == 1


def test_lost_answer_is_a_change_that_may_have_been_made() -> None:
    thing = Thing(b=[TaskTimeout(reason="task still runs")])
    with pytest.raises(TaskTimeout) as failure:
        execute(thing, Plan((A, B)))
    assert failure.value.details == {"done": ["Do a"], "unverified": ["Do b"]}
    assert FleetError(details={"unverified": ["Do b"]}).came_after_changes


def test_lost_answer_whose_look_fails_is_unverified() -> None:
    thing = Thing(a=[NetworkError()])
    thing.unreadable = unreadable()
    with pytest.raises(ApiError) as failure:
        execute(thing, Plan((A,)))
    assert failure.value.details == {"unverified": ["Do a"]}
    assert failure.value.message.startswith("It is not known whether this was done, because the")


def test_step_whose_answer_was_lost_is_done_if_the_new_plan_lacks_it() -> None:
    outcome = execute(Thing(Plan((B,)), a=[NetworkError()]), Plan((A, B)))
    assert outcome.done == ("Do a", "Do b")


def test_write_that_was_not_sent_is_not_unverified() -> None:
    thing = Thing(Plan((B,)), a=[NetworkError(dispatched=False)])
    assert execute(thing, Plan((A, B))).done == ("Do b",)


def test_task_that_cannot_be_followed_is_not_sent_again() -> None:
    """It may still run."""
    lost = NetworkError(upid="UPID:pve1:1:", method="GET", dispatched=True)
    thing = Thing(Plan((A,)), a=[lost])
    with pytest.raises(NetworkError) as failure:
        execute(thing, Plan((A,)))
    assert thing.sent == []
    assert failure.value.details == {"unverified": ["Do a"]}
