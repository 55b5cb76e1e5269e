# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Existing guests whose plans are carried out: changed or removed.

A VMID can be reused, and another task can change the guest: it is read again before the steps that
could hit the wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic

from ...._foundation.cluster.state import pool_of
from ...._foundation.core.errors import Conflict, FleetError, NotFound
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import (
    REPEATS,
    Execution,
    FailureVerdict,
    Resource,
    StepResult,
    apply_plan,
)
from ...._foundation.resource.plan import Plan, Step
from ...kinds.hardware import AnyDesired
from ...kinds.model import Actual
from ..context import RunContext
from ..create.quota_race import require_grown_within, usage_of_others
from ..create.total_quota import TotalRule, require_grown_within_total
from ..describe import pending_keys, report
from ..live.find import require_own
from ..live.handover import require_received, with_receiver
from ..live.read import read_wherever, require_named, require_same, require_untouched
from ..live.snippets import with_present_content
from ..live.steps import GuestSteps
from ..plan import power
from ..plan.intent import Facts, with_relocation
from ..plan.removal import plan_absent
from ..plan.steps import HAND_OVER, with_user_data
from .flow import GuestFlow, GuestPlan

# Actions after which users cannot use the guest: it is read once more before them.
_ENDS = frozenset(("stop", "shutdown", "destroy"))


# Other actions that cannot be undone.
_FINAL = frozenset(("template", "resize", "remove_volume", HAND_OVER))


# Actions that interrupt a guest, move it, or change who has rights on it. PVE applies them to any
# guest with the VMID, because it compares no digest for them (qemu-server: API2/Qemu.pm).
_DISTURBS = frozenset(
    ("stop", "shutdown", "reboot", "reset", "suspend", "migrate", "move_disk", "pool")
)


# States that are actions: every run repeats them.
_REPEATED = frozenset(("restarted", "reset"))


_MOVES = 2
"""How many times a run moves a guest that others move back."""


def _require_stayed(before: Actual, now: Actual, done: Sequence[Step]) -> None:
    """Raise Conflict for a guest that is on its former node after several moves (pure)."""
    moves = sum(step.action == "migrate" for step in done)
    if moves < _MOVES or now.node != before.node:
        return
    raise Conflict(
        f"{before.label} did not stay where it was moved: after {moves} moves it is on node "
        f"{now.node} again",
        "Find out who moves it back, such as a rule of the HA manager",
        "moved back",
    )


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


# The end of a migration of a guest that another task has moved before it got the lock
# (pve-guest-common: PVE/AbstractConfig.pm, load_config).
_GONE = ".conf' does not exist"


def apply_to_guest(resource: ExistingResource[AnyDesired]) -> Result:
    """Carry out the plan of an existing guest and return the result."""
    return apply_plan(resource, resource.context.check_mode)


class ChangedGuest(ExistingResource[AnyDesired]):
    """An existing guest with the plan of its update."""

    def __init__(self, planned: GuestPlan[AnyDesired], actual: Actual) -> None:
        super().__init__(planned.flow, planned.context, planned.plan, actual)
        intent = planned.intent
        self._facts = planned.facts or Facts(planned.cluster)
        self._growth = intent.growth(planned.sizes) if intent is not None else None
        self._desired = planned.context.guest
        # the options that the run changes
        self._written: set[str] = set() if intent is None else set(intent.change.keys)
        self._moved: set[str] = set()  # slots whose disk is now another volume
        self._known = actual  # its disks are updated after a migration
        self._node = actual.node
        self._latest: Actual | None = None  # read after the last write

    def _read(self, done: Sequence[Step]) -> Actual:
        """Return the guest after these steps. Raises Conflict if the tenant may not touch it."""
        known = self.actual
        moved = any(step.action == "pool" for step in done)
        pool = (self._desired.pool or None) if moved else known.pool
        current = read_wherever(self.client, known.kind, known.vmid, self._node, pool=pool)
        self._node = current.node
        require_own(self._desired, current, known)
        return current

    def send(self, step: Step) -> StepResult:
        if step.action == HAND_OVER:
            step = with_receiver(self.client, self._desired, self.actual, step)
        return super().send(step)

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        verdict = super().classify_failure(step, error)
        has_left = step.action == "migrate" and any(_GONE in line for line in error.log)
        if verdict is FailureVerdict.FAILED and (step.action == HAND_OVER or has_left):
            return (
                FailureVerdict.STALE
            )  # another run may have moved the disk or the guest since then
        return verdict

    def guard(self, step: Step) -> None:
        """Read the guest again before a step that disturbs it, unless PVE compares the digest."""
        self._latest = None
        self._moved.update(
            slot for slot, value in step.data.items() if "import-from=" in str(value)
        )
        is_removal = step.action == "config" and "force" in step.data
        is_final = is_removal or step.action in _FINAL
        is_dangerous = is_final or step.action in _DISTURBS
        if not is_dangerous or "digest" in step.data:
            return
        desired, known = self._desired, self._known
        current = read_wherever(
            self.client, known.kind, known.vmid, self._node, status=known.status
        )
        require_own(desired, current, known)
        # the slot of a step that moves or grows a disk, or a volume of a container
        slot = str(step.data.get("disk") or step.data.get("volume"))
        if not is_final:
            require_named(desired, known, current, self._written)
            self._moved.add(slot)
            return
        # All options that the run writes may differ from the reading for the plan, except a disk
        # that only grows or that another guest gets.
        written = self._written
        is_kept = step.action in ("resize", HAND_OVER) and slot not in self._moved
        if is_kept and slot in known.identity.volumes:
            written = written - {slot}
        require_untouched(desired, known, current, written)
        if step.action == "template":  # a base volume has another name
            slots = list(known.identity.volumes)
            if "disk" in step.data:
                slots = [step.data["disk"]]
            self._written.update(slots)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        desired = self.context.desired.with_written({key for step in done for key in step.data})
        current = self._read(done)
        require_same(self._desired, self._known, current, self._written)
        if done and done[-1].action == "migrate":
            self._known = replace(self._known, target=current.target)
            _require_stayed(self.actual, current, done)
        self._latest = None if uncertain else current
        if uncertain:
            require_received(self.client, current, desired.hardware.disks)
        if power.is_stopped_by(self.plan.steps, done, current):
            desired = replace(desired, guest=power.after_stop(desired.guest))
        desired = self.flow.planner.still_desired(desired, self.actual, current)
        planner, facts = self.flow.planner, self._facts
        rest = planner.plan_intent(
            with_relocation(planner.intent_of(desired, current), facts), facts
        )
        node = desired.guest.node or current.node
        present = with_present_content(self.context.desired)
        return with_user_data(rest, present.hardware.snippet, current, node)

    def confirm_write(self, step: Step) -> Callable[[], Any] | None:
        """Return the check after a lost answer to a pool step: the configuration of a guest does
        not show its pool. After any other lost answer the plan is made again.
        """
        if step.action != "pool":
            return None

        def confirm() -> bool | None:
            pool = pool_of(self.client, self.actual.vmid) or ""
            return True if pool == self._desired.pool else None

        return confirm

    def preview(self) -> Result:
        return report(self.flow, self.context, self.plan, self.actual, done=[])

    def report(self, execution: Execution) -> Result:
        desired, growth = self._desired, self._growth
        pool = self.actual.pool if desired.pool is None else desired.pool or None
        final = replace(self._latest or self._read([]), pool=pool)
        plan = replace(
            self.plan,
            pending=tuple(pending_keys(final)),
            warnings=(*self.plan.warnings, *execution.warnings),
        )
        result = report(self.flow, self.context, plan, final, done=list(execution.done))
        if growth is not None and growth.is_limited(desired):
            # Other runs may have used the quota that the guest has grown into.
            others = usage_of_others(self.client, desired, self.actual)
            require_grown_within(desired, self.actual, growth, others)
        if growth is not None and self.context.total is not None:
            at, actual = self.context.total, self.actual
            rule = TotalRule(at, desired, actual.label, actual.vmid, growth.more)
            require_grown_within_total(rule, growth.before)
        return result


class RemovedGuest(ExistingResource[AnyDesired]):
    """An existing guest with the plan of its removal."""

    def _reread(self, node: str, status: str | None = None) -> Actual:
        """Return the guest. Raises Conflict if it has changed since the plan of its removal."""
        desired, known = self.context.guest, self.actual
        current = read_wherever(
            self.client, known.kind, known.vmid, node, status=status, pool=known.pool
        )
        require_own(desired, current, known)
        require_untouched(desired, known, current)
        return current

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        """Return the remaining steps: none once the guest is gone, also after a lost answer."""
        try:
            return plan_absent(self.context.desired, self._reread(self.actual.node))
        except NotFound:
            return Plan()

    def guard(self, step: Step) -> None:
        # The guest can change while others are read, and while it is stopped for its removal.
        if step.action in _ENDS:
            status = "stopped" if step.action == "destroy" else "running"
            self._reread(str(step.path[1]), status)

    def preview(self) -> Result:
        return report(self.flow, self.context, self.plan, None, done=[])

    def report(self, execution: Execution) -> Result:
        plan = replace(self.plan, warnings=(*self.plan.warnings, *execution.warnings))
        return report(self.flow, self.context, plan, None, done=list(execution.done))
