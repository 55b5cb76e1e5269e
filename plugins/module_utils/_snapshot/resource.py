# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One VM's snapshots as a resource: how the steps of its plan are sent, guarded and waited for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._api.upid import TaskResult
from .._core.errors import AlreadyExists, FleetError, Locked, UnknownSnapshot, UnknownTask
from .._resource.engine import Resource
from .._resource.execute import Execution, Sent, Verdict
from .._resource.plan import Plan, Step
from .model import REMOVE, ROLL_BACK, TAG, TAKE, TASK_OF_LOCK, Machine
from .read import all_tasks, new_task, running_task, tree_of
from .restart import wait_for_start
from .untracked import LOCK, is_rolled_back, ran_before

if TYPE_CHECKING:
    from .._api.client import Client

# Seconds that the server's clock may differ from ours.
_LEEWAY = 300


@dataclass(frozen=True)
class Outcome:
    """The result for one VM; `label` is the VM as the task names it."""

    label: str
    machine: Machine | None = None
    plan: Plan = field(default_factory=Plan)
    done: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: FleetError | None = None


class SnapshotsOfVm(Resource[Outcome]):
    """The snapshots of one VM, with what is to be done about them.

    `look` checks before each request whether the VM may still be touched, more closely where the
    request destroys; `read_again` returns the VM as it is in the end.
    """

    client: Client

    def __init__(
        self,
        client: Client,
        machine: Machine,
        plan: Plan,
        *,
        timeout: int,
        look: Callable[[bool], None],
        read_again: Callable[[], Machine],
        label: str = "",
    ) -> None:
        self.client = client
        self.machine = machine
        self.plan = plan
        self.timeout = timeout
        self.look = look
        self.read_again = read_again
        self.label = label
        self._earlier: set[str] = set()  # rollbacks before ours
        self._since = 0.0  # when they were listed
        self._started: tuple[str, str] | None = None  # a step that starts the VM, and its task

    def before(self, step: Step) -> None:
        if step.action == TAG:  # right after a rollback the VM has the tags of the snapshot
            return
        if step.action == ROLL_BACK:
            self._list_rollbacks()
        self.look(step.action in (REMOVE, ROLL_BACK))

    def happened(self, step: Step) -> Callable[[], Any]:
        """Return the look after a lost answer: it returns the task's UPID, True when done, or
        None.
        """
        if not step.is_task:
            return lambda: None
        if step.action == ROLL_BACK:
            return self._new_rollback
        return lambda: self._is_done(step)

    def send(self, step: Step) -> Sent:
        try:
            return super().send(step)
        except FleetError as error:
            if step.action != ROLL_BACK or not error.upid:
                raise
            if isinstance(error, UnknownTask) and self._is_rolled_back(step):
                return self._untracked(step, error.upid)
            if not step.data.get("start"):
                raise
            raise ran_before(error) from error

    def _is_rolled_back(self, step: Step) -> bool:
        name = str(step.path[-2])
        return is_rolled_back(self.client, self.machine, name, self.timeout)

    def _untracked(self, step: Step, upid: str) -> Sent:
        sent = self.ended(step, TaskResult(upid, self.machine.node, ROLL_BACK, "OK"))
        line = "the node does not know the task any more, but the VM is rolled back"
        return replace(sent, warnings=(f"{step.summary}: {line}",))

    def _list_rollbacks(self) -> None:
        """Note the rollbacks so far: ours leaves no trace but its task."""
        client, machine = self.client, self.machine
        self._since = client.clock.time() - _LEEWAY
        rows = all_tasks(client, machine.node, machine.vmid, ROLL_BACK, self._since)
        self._earlier = {row["upid"] for row in rows}

    def _new_rollback(self) -> Any:
        machine = self.machine
        return new_task(
            self.client, machine.node, machine.vmid, ROLL_BACK, self._since, self._earlier
        )

    def _is_done(self, step: Step) -> Any:
        upid = running_task(self.client, self.machine.node, self.machine.vmid, step.action)
        if upid is not None:
            return upid
        rows = self.client.get(*self.machine.path, "snapshot")
        name = step.data.get("snapname") or step.path[-1]
        exists = name in tree_of(rows).snapshots
        return True if exists is (step.action == TAKE) else None

    def ended(self, step: Step, result: TaskResult) -> Sent:
        if step.data.get("start"):
            self._started = step.summary, result.upid
        return super().ended(step, result)

    def judge(self, step: Step, error: FleetError) -> Verdict:
        is_taken = step.action == TAKE and isinstance(error, AlreadyExists)
        is_removed = step.action == REMOVE and isinstance(error, UnknownSnapshot)
        return Verdict.DONE if is_taken or is_removed else Verdict.FAILED

    def excuse(self, step: Step, error: FleetError) -> str:
        if step.action == TAKE:
            return f"{step.summary}: a snapshot of that name was created since the plan was made"
        return f"{step.summary}: it was deleted since the plan was made"

    def finish(self) -> tuple[str, ...]:
        if self._started is None:
            return ()
        summary, upid = self._started
        lines = wait_for_start(self.client, self.machine, upid, self.timeout)
        return tuple(f"{summary}: {line}" for line in lines)

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        failure = super().failure(error, done)
        return left_locked(failure, self.machine) if isinstance(failure, Locked) else failure

    def preview(self) -> Outcome:
        return Outcome(self.label, self.machine, self.plan)

    def report(self, execution: Execution) -> Outcome:
        final = self.read_again()
        return Outcome(self.label, final, self.plan, execution.done, execution.warnings)


def left_locked(error: Locked, machine: Machine) -> FleetError:
    """Return the error with the next step for a lock that a failed task left: PVE keeps it forever.

    `machine` is the VM as it was when no task for the lock was visible any more.
    """
    if machine.lock not in TASK_OF_LOCK:
        return error
    more = ""
    if machine.lock == LOCK:
        more = ". Then start it if it ran before the rollback"
    unlock = f"'qm unlock {machine.vmid}' on node {machine.node}"
    repair = f"repair what it says, and remove the lock with {unlock}"
    step = f"No task that holds the lock is visible. If one has failed, {repair}{more}"
    return error.on(next_step=step)
