# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The snapshots of one VM as a resource: guards and sends the steps of its plan, and waits.

A rollback is followed until the VM runs again, by its effects if its task is not visible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from ..._foundation.api.tasks import may_be_held
from ..._foundation.api.upid import TaskResult, parse_upid
from ..._foundation.core.clock import poll
from ..._foundation.core.errors import (
    AlreadyExists,
    AlreadyRunning,
    FleetError,
    Locked,
    PowerChanged,
    TaskTimeout,
    UnknownSnapshot,
    UnknownTask,
)
from ..._foundation.resource.engine import REPEATS, Execution, FailureVerdict, Resource, StepResult
from ..._foundation.resource.plan import Plan, Step
from .model import ACTION_OF_LOCK, REMOVE, ROLL_BACK, START, TAG, TAKE, SnapshotVm
from .read import all_tasks, new_task, running_action, tree_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

# Tolerated clock difference between controller and server, in seconds.
_LEEWAY = 300


@dataclass(frozen=True)
class SnapshotOutcome:
    """The result for one VM; `label` is the VM as the task names it."""

    label: str
    vm: SnapshotVm | None = None
    plan: Plan = field(default_factory=Plan)
    done: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: FleetError | None = None


class SnapshotsOfVm(Resource[SnapshotOutcome]):
    """The snapshots of one VM, with the plan for them.

    `check` runs before each request, and raises FleetError if the VM must not be changed. It checks
    more if its argument says that the request destroys data. `read_again` returns the VM after the
    last step.
    """

    client: Client

    def __init__(
        self,
        client: Client,
        vm: SnapshotVm,
        plan: Plan,
        *,
        timeout: int,
        check: Callable[[bool], None],
        read_again: Callable[[], SnapshotVm],
    ) -> None:
        self.client = client
        self.vm = vm
        self.plan = plan
        self.timeout = timeout
        self.check = check
        self.read_again = read_again
        self._earlier: set[str] = set()  # rollbacks before this one
        self._since = 0.0  # the time from which rollbacks are listed
        self._started: tuple[str, str] | None = None  # the step that starts the VM, and its task
        if any(step.action == ROLL_BACK for step in plan.steps):
            self.after_failed_read = REPEATS

    def guard(self, step: Step) -> None:
        if step.action == TAG:  # right after a rollback the VM has the tags of the snapshot
            return
        if step.action == ROLL_BACK:
            # A new rollback is identified by its task, which no earlier one has.
            self._since = self.client.clock.time() - _LEEWAY
            rows = all_tasks(self.client, self.vm, ROLL_BACK, self._since)
            self._earlier = {row["upid"] for row in rows}
        self.check(step.action in (REMOVE, ROLL_BACK))

    def confirm_write(self, step: Step) -> Callable[[], Any]:
        """Return the check for a lost answer: it finds the task's UPID, True if done, or None."""
        if not step.is_task:
            return lambda: None
        if step.action == ROLL_BACK:
            since, known = self._since, self._earlier
            return lambda: new_task(self.client, self.vm, ROLL_BACK, since, known)
        return lambda: self._is_done(step)

    def send(self, step: Step) -> StepResult:
        try:
            return super().send(step)
        except FleetError as error:
            if step.action != ROLL_BACK or not error.upid:
                raise
            is_unknown, snapshot = isinstance(error, UnknownTask), str(step.path[-2])
            if is_unknown and is_rolled_back(self.client, self.vm, snapshot, self.timeout):
                task = self.vm.task_of(ROLL_BACK)
                sent = self.after_task(step, TaskResult(error.upid, self.vm.node, task, "OK"))
                line = "the node does not know the task any more, but the VM is rolled back"
                return replace(sent, warnings=(f"{step.summary}: {line}",))
            if not step.data.get("start"):
                raise
            raise with_restart_step(error) from error

    def _is_done(self, step: Step) -> Any:
        upid = running_action(self.client, self.vm, step.action)
        if upid is not None:
            return upid
        rows = self.client.get(*self.vm.path, "snapshot")
        name = step.data.get("snapname") or step.path[-1]
        exists = name in tree_of(rows).snapshots
        return True if exists is (step.action == TAKE) else None

    def after_task(self, step: Step, result: TaskResult) -> StepResult:
        if step.data.get("start"):
            self._started = step.summary, result.upid
        return super().after_task(step, result)

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        is_taken = step.action == TAKE and isinstance(error, AlreadyExists)
        is_removed = step.action == REMOVE and isinstance(error, UnknownSnapshot)
        return FailureVerdict.DONE if is_taken or is_removed else FailureVerdict.FAILED

    def tolerate(self, step: Step, error: FleetError) -> str:
        if step.action == TAKE:
            return f"{step.summary}: a snapshot of that name was created since the plan was made"
        return f"{step.summary}: it was deleted since the plan was made"

    def await_final(self) -> tuple[str, ...]:
        if self._started is None:
            return ()
        summary, upid = self._started
        lines = wait_for_start(self.client, self.vm, upid, self.timeout)
        return tuple(f"{summary}: {line}" for line in lines)

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        failure = super().failure(error, done)
        return with_unlock_step(failure, self.vm) if isinstance(failure, Locked) else failure

    def preview(self) -> SnapshotOutcome:
        return SnapshotOutcome(self.vm.label, self.vm, self.plan)

    def report(self, execution: Execution) -> SnapshotOutcome:
        final = self.read_again()
        return SnapshotOutcome(self.vm.label, final, self.plan, execution.done, execution.warnings)


def with_unlock_step(error: Locked, vm: SnapshotVm) -> FleetError:
    """Return the error with a next step for the lock of a failed task, which PVE never removes.

    `vm` must be read after the task for the lock is no longer visible.
    """
    if may_be_held(error) or vm.lock not in ACTION_OF_LOCK:
        return error
    more = ". Then start it if it ran before the rollback" if vm.lock == LOCK else ""
    unlock = f"'{vm.kind.tool} unlock {vm.vmid}' on node {vm.node}"
    repair = f"repair what it says, and remove the lock with {unlock}"
    step = f"No task that holds the lock is visible. If one has failed, {repair}{more}"
    return error.on(next_step=step)


def wait_for_start(client: Client, vm: SnapshotVm, rollback: str, timeout: int) -> tuple[str, ...]:
    """Wait until the VM runs, and return the warnings of the start that task `rollback` began.

    `rollback` is a UPID. The HA manager starts a VM under HA, so the VM's state decides. Raises the
    error of the start task, or TaskTimeout after `timeout` seconds.
    """
    attempted = f"{vm.label} was rolled back, but could not be started again"
    warnings: tuple[str, ...] = ()
    upid = running_action(client, vm, START)
    if upid is None and rollback:
        upid = new_task(client, vm, START, parse_upid(rollback).starttime)
    if upid is not None:
        try:
            warnings = client.wait(upid, timeout=timeout, attempted=attempted).warnings
        except AlreadyRunning:
            pass
        except FleetError as error:
            raise error.on(attempted=attempted) from error
    for _remaining in poll(client.clock, timeout, first=0.2):
        if _runs(client, vm):
            return warnings
    _raise_timeout(attempted, timeout, upid or "")


def _raise_timeout(attempted: str, timeout: int, upid: str) -> NoReturn:
    """Raise TaskTimeout for a VM that does not run in time; `upid` started it (pure)."""
    raise TaskTimeout(
        f"{attempted}: it does not run after {timeout} s",
        "Look at the VM's tasks and at the HA manager, then start it",
        "not running",
        upid=upid,
    )


def runs_or_starts(client: Client, vm: SnapshotVm) -> bool:
    """Return whether the VM runs or is being started, in at most two requests.

    The tasks are read first: if a start ends between the two requests, the VM already runs.
    """
    return running_action(client, vm, START) is not None or _runs(client, vm)


def require_same_power(vm: SnapshotVm, now: bool) -> None:
    """Raise PowerChanged if another run has started or stopped the VM since it was read; `now` is
    whether it runs (pure).

    A rollback stops the VM; the plan to start it again depends on its state when it was read.
    """
    if now == vm.tree.running:
        return
    verb = "started" if now else "stopped"
    raise PowerChanged(
        f"{vm.label} was not rolled back: another run has {verb} it since it was read",
        "Run this again",
        "power changed",
    )


def _runs(client: Client, vm: SnapshotVm) -> bool:
    current = client.get(*vm.path, "status", "current") or {}
    return current.get("status") == "running"


LOCK = "rollback"
# In seconds: the time by which a started task has locked the VM. It waits ten for the lock file.
_PATIENCE = 20.0


def is_rolled_back(client: Client, vm: SnapshotVm, snapshot: str, timeout: float) -> bool:
    """Return whether a started rollback succeeded; wait at most `timeout` seconds.

    `vm` is the VM as read before the rollback. PVE keeps the lock of a rollback that failed halfway
    (pve-guest-common: AbstractConfig.pm, snapshot_rollback). Return False if the outcome is
    unknown. Raises FleetError.
    """
    was_locked = False
    for remaining in poll(client.clock, timeout, first=0.2):
        config = client.get(*vm.path, "config", params={"current": 1})
        if config.get("lock") == LOCK:
            was_locked = True
            continue
        is_other = config.get("vmgenid", "") != vm.generation
        if was_locked or is_other or config.get("parent") != vm.tree.parent:
            return config.get("parent") == snapshot
        if remaining < timeout - _PATIENCE:
            return False
    return False


def wait_for_unlocked(client: Client, vm: SnapshotVm) -> bool:
    """Return whether another run's rollback, whose task is not visible, ends in time.

    Until it ends, it is unknown whether the VM must run afterwards.
    """
    for _remaining in poll(client.clock, client.connection.lock_timeout, first=0.2):
        config = client.get(*vm.path, "config", params={"current": 1})
        if config.get("lock") != LOCK:
            return True
    return False


def locked(vm: SnapshotVm) -> Locked:
    """Return the error for a VM that keeps the lock of a rollback (pure)."""
    return Locked(
        f"{vm.label} was not rolled back: VM is locked ({LOCK})", reason=f"locked ({LOCK})"
    )


def with_restart_step(error: FleetError) -> FleetError:
    """Return the error of a rollback with the next step for a VM that ran before (pure).

    PVE stops the VM first, and starts it again only after a successful rollback.
    """
    step = "It ran before: start it if it is stopped by now"
    if error.next_step:
        step = f"{error.next_step}. {step}"
    return error.on(next_step=step)
