# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A resource as three functions: its reading, the plan from a reading, the report of a reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..api.interface import Api
from ..core.errors import FleetError
from ..core.poll import poll
from .engine import Outcome, Resource, apply_plan
from .execute import Execution
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
    ) -> None:
        self.client = client
        self.read = read
        self.plan_of = plan
        self.outcome_of = report
        self.hooks = hooks
        self.timeout = hooks.timeout
        self.stale_errors = hooks.stale_errors
        self.reading = read()
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
