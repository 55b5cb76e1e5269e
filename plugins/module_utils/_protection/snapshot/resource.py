# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The snapshots of one VM as a resource: guards and sends the steps of its plan, and waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.api.tasks import may_be_held
from ..._foundation.api.upid import TaskResult
from ..._foundation.core.errors import (
    AlreadyExists,
    FleetError,
    Locked,
    UnknownSnapshot,
    UnknownTask,
)
from ..._foundation.resource.engine import Resource
from ..._foundation.resource.execute import REPEATS, Execution, FailureVerdict, StepResult
from ..._foundation.resource.plan import Plan, Step
from .model import ACTION_OF_LOCK, REMOVE, ROLL_BACK, TAG, TAKE, SnapshotVm
from .read import all_tasks, new_task, running_task, tree_of
from .restart import LOCK, is_rolled_back, wait_for_start, with_restart_step

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
            self._list_rollbacks()
        self.check(step.action in (REMOVE, ROLL_BACK))

    def confirm_write(self, step: Step) -> Callable[[], Any]:
        """Return the check for a lost answer: it finds the task's UPID, True if done, or None."""
        if not step.is_task:
            return lambda: None
        if step.action == ROLL_BACK:
            return self._new_rollback
        return lambda: self._is_done(step)

    def send(self, step: Step) -> StepResult:
        try:
            return super().send(step)
        except FleetError as error:
            if step.action != ROLL_BACK or not error.upid:
                raise
            if isinstance(error, UnknownTask) and self._is_rolled_back(step):
                return self._untracked(step, error.upid)
            if not step.data.get("start"):
                raise
            raise with_restart_step(error) from error

    def _is_rolled_back(self, step: Step) -> bool:
        name = str(step.path[-2])
        return is_rolled_back(self.client, self.vm, name, self.timeout)

    def _untracked(self, step: Step, upid: str) -> StepResult:
        sent = self.after_task(
            step, TaskResult(upid, self.vm.node, self.vm.task_of(ROLL_BACK), "OK")
        )
        line = "the node does not know the task any more, but the VM is rolled back"
        return replace(sent, warnings=(f"{step.summary}: {line}",))

    def _list_rollbacks(self) -> None:
        """Record the earlier rollbacks, because only its task identifies the new one."""
        client, vm = self.client, self.vm
        self._since = client.clock.time() - _LEEWAY
        rows = all_tasks(client, vm.node, vm.vmid, vm.task_of(ROLL_BACK), self._since)
        self._earlier = {row["upid"] for row in rows}

    def _new_rollback(self) -> Any:
        vm = self.vm
        task = vm.task_of(ROLL_BACK)
        return new_task(self.client, vm.node, vm.vmid, task, self._since, self._earlier)

    def _is_done(self, step: Step) -> Any:
        upid = running_task(self.client, self.vm.node, self.vm.vmid, self.vm.task_of(step.action))
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
