# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A resource of three functions: its check after a lost answer, its wait, and check mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.interface import PlanBook
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    FleetError,
    TaskTimeout,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.engine import Execution
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.manage import (
    Hooks,
    manage,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Plan, Step
from tests.fake_clock import FakeClock

STEPS = {
    name: Step(name, f"Turn {name}", "POST", ("switch", name), is_task=False)
    for name in ("left", "right")
}


class Switch:
    """A client whose resource is a list of the steps that are still necessary."""

    plan_book = PlanBook()

    def __init__(self, *states: tuple[str, ...], confirmed: bool = False) -> None:
        self.states: Iterator[tuple[str, ...]] = iter(states)
        self.state: tuple[str, ...] = ()
        self.clock = FakeClock()
        self.confirmed = confirmed
        self.sent: list[str] = []
        self.checks: list[Any] = []

    def read(self) -> tuple[str, ...]:
        self.state = next(self.states, self.state)
        return self.state

    def release(self) -> tuple[int, int]:
        return (9, 2)

    def note(self, _summary: str) -> None:
        pass

    def write(self, _method: str, *path: str, confirm: Callable[[], Any], **_options: Any) -> None:
        self.sent.append(path[-1])
        self.checks.append(confirm() if self.confirmed else None)


def turn(client: Any, *, check_mode: bool = False, **hooks: Any) -> tuple[list[str], Any]:
    """Manage the switch, and return its planned and its finished steps."""

    def report(plan: Plan, _state: Any, execution: Execution | None) -> tuple[list[str], Any]:
        return plan.summaries, execution and list(execution.done)

    return manage(
        client,
        client.read,
        lambda names: Plan(tuple(STEPS[name] for name in names)),
        report,
        check_mode=check_mode,
        hooks=Hooks(**hooks) if hooks else None,
    )


def test_check_mode_reports_the_plan_without_a_write() -> None:
    client = Switch(("left", "right"))
    assert turn(client, check_mode=True) == (["Turn left", "Turn right"], None)
    assert client.sent == []


@pytest.mark.parametrize(
    ("after", "effect"), [((), True), (("right",), True), (("left", "right"), None)], ids=str
)
def test_a_step_took_effect_if_a_new_plan_lacks_it(
    after: tuple[str, ...], effect: bool | None
) -> None:
    """The next step is still planned: only the step itself counts."""
    client = Switch(("left", "right"), after, confirmed=True)
    assert turn(client)[1] == ["Turn left", "Turn right"]
    assert client.checks[0] is effect


def late(_state: Any) -> FleetError:
    return TaskTimeout(attempted="Timed out", answer="it turns", next_step="Wait", reason="late")


def test_a_run_waits_for_a_final_reading_and_check_mode_does_not() -> None:
    hooks: dict[str, Any] = {"is_final": lambda state: state == ("right",), "timed_out": late}
    client = Switch(("left",), (), (), ("right",))
    assert turn(client, **hooks)[1] == ["Turn left"]
    assert client.clock.slept
    waiting = Switch((), (), ("right",))  # another run has sent the request
    assert turn(waiting, **hooks) == ([], None)
    assert waiting.clock.slept
    assert waiting.sent == []
    previewed = Switch(())
    assert turn(previewed, check_mode=True, **hooks) == ([], None)
    assert not previewed.clock.slept


def test_the_wait_ends_with_the_error_of_the_resource() -> None:
    client = Switch(("left",), ())
    with pytest.raises(TaskTimeout):
        turn(client, timeout=5, is_final=lambda state: state == ("right",), timed_out=late)
