# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Existing guests whose plans are carried out: changed or removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic

from ...._foundation.cluster.storages.allocation import base_storages
from ...._foundation.core.errors import FleetError, NotFound
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import Resource, apply_plan
from ...._foundation.resource.execute import REPEATS, Execution, FailureVerdict, StepResult
from ...._foundation.resource.plan import Plan, Step
from ...kinds.hardware import AnyDesired
from ...kinds.model import Actual
from ..context import RunContext
from ..create.quota_race import QuotaGrowth, require_grown_within, usage_of_others
from ..describe import pending_keys
from ..live.existing import ExistingGuest, status_before_end
from ..live.handover import require_received, with_receiver
from ..live.snippets import with_present_content
from ..live.steps import GuestSteps
from ..plan import power
from ..plan.removal import plan_absent
from ..plan.snippets import with_user_data
from ..plan.steps import HAND_OVER
from .flow import GuestFlow, GuestPlan
from .report import report

# States that are actions: every run repeats them.
_REPEATED = frozenset(("restarted", "reset"))


class ExistingResource(GuestSteps, Resource[Result], Generic[AnyDesired]):
    """An existing guest with its plan."""

    def __init__(
        self,
        flow: GuestFlow[AnyDesired],
        context: RunContext[AnyDesired],
        plan: Plan,
        actual: Actual,
    ) -> None:
        self.flow = flow
        self.kind = actual.kind
        self.context = context
        self.client = context.client
        self.plan = plan
        self.actual = actual
        self.timeout = context.settings.task_timeout
        if context.desired.guest.state in _REPEATED:
            self.after_failed_read = REPEATS


def apply_to_guest(resource: ExistingResource[AnyDesired]) -> Result:
    """Carry out the plan of an existing guest and return the result."""
    return apply_plan(resource, resource.context.check_mode)


class ChangedGuest(ExistingResource[AnyDesired]):
    """An existing guest with the plan of its update."""

    def __init__(self, planned: GuestPlan[AnyDesired], actual: Actual) -> None:
        super().__init__(planned.flow, planned.context, planned.plan, actual)
        sizes = planned.facts.sizes if planned.facts is not None else {}
        intent = planned.intent
        self._cluster, self._images = planned.cluster, sizes
        self._growth = intent.growth(sizes) if intent is not None else None
        written = frozenset(intent.change.keys) if intent is not None else frozenset()
        desired = planned.context.desired.guest
        self._guest = ExistingGuest(self.client, desired, actual, written)
        self._latest: Actual | None = None  # read after the last write

    def send(self, step: Step) -> StepResult:
        if step.action == HAND_OVER:
            step = with_receiver(self.client, self.context.desired.guest, self.actual, step)
        return super().send(step)

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        verdict = super().classify_failure(step, error)
        if step.action == HAND_OVER and verdict is FailureVerdict.FAILED:
            return FailureVerdict.STALE  # an earlier run may have moved the disk since then
        return verdict

    def guard(self, step: Step) -> None:
        self._latest = None
        self._guest.require_unchanged_before(step)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        desired = self.context.desired.with_written({key for step in done for key in step.data})
        current = self._guest.read_same(done)
        self._latest = None if uncertain else current
        if uncertain:
            require_received(self.client, current, desired.hardware.disks)
        if power.is_stopped_by(self.plan.steps, done, current):
            desired = replace(desired, guest=power.after_stop(desired.guest))
        desired = self.flow.planner.still_desired(desired, self.actual, current)
        rest = self.flow.planner.plan_update(
            desired,
            current,
            shared=self._cluster.shared_storages,
            images=self._images,
            bases=base_storages(self._cluster),
        )
        node = desired.guest.node or current.node
        present = with_present_content(self.context.desired)
        return with_user_data(rest, present.hardware.snippet, current, node)

    def confirm_write(self, step: Step) -> Callable[[], Any] | None:
        """Return the check after a lost answer to a pool step: the configuration of a guest does
        not show its pool. After any other lost answer the plan is made again.
        """
        return self._guest.is_in_pool if step.action == "pool" else None

    def preview(self) -> Result:
        return report(self.flow, self.context, self.plan, self.actual, done=[])

    def report(self, execution: Execution) -> Result:
        desired = self.context.desired
        pool = self.actual.pool if desired.guest.pool is None else desired.guest.pool or None
        final = replace(self._latest or self._guest.read([]), pool=pool)
        plan = replace(
            self.plan,
            pending=tuple(pending_keys(final)),
            warnings=(*self.plan.warnings, *execution.warnings),
        )
        result = report(self.flow, self.context, plan, final, done=list(execution.done))
        if self._growth is not None:
            self._require_quota(self._growth)
        return result

    def _require_quota(self, growth: QuotaGrowth) -> None:
        """Raise QuotaExceeded if other runs have used the quota that the guest has grown into."""
        desired = self.context.desired.guest
        if growth.is_limited(desired):
            others = usage_of_others(self.client, desired, self.actual)
            require_grown_within(desired, self.actual, growth, others)


class RemovedGuest(ExistingResource[AnyDesired]):
    """An existing guest with the plan of its removal."""

    def __init__(
        self,
        flow: GuestFlow[AnyDesired],
        context: RunContext[AnyDesired],
        plan: Plan,
        actual: Actual,
    ) -> None:
        super().__init__(flow, context, plan, actual)
        self._guest = ExistingGuest(self.client, context.desired.guest, actual)

    def _reread(self, node: str, status: str | None = None) -> Actual:
        """Return the present state of the guest. Raises Conflict if the VMID has been reused."""
        return self._guest.read_untouched(node, status)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        """Return the remaining steps: none once the guest is gone, also after a lost answer."""
        try:
            return plan_absent(self.context.desired, self._reread(self.actual.node))
        except NotFound:
            return Plan()

    def guard(self, step: Step) -> None:
        status = status_before_end(step)
        if status is not None:
            self._reread(str(step.path[1]), status)

    def preview(self) -> Result:
        return report(self.flow, self.context, self.plan, None, done=[])

    def report(self, execution: Execution) -> Result:
        plan = replace(self.plan, warnings=(*self.plan.warnings, *execution.warnings))
        return report(self.flow, self.context, plan, None, done=list(execution.done))
