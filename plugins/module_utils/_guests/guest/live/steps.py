# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sends the steps of a VM's plan: files, tasks, waits for the HA manager and for the task that
holds a lock, lost answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.tasks import Holder, find_holder, holder_of
from ...._foundation.api.upid import is_upid, parse_upid
from ...._foundation.core.clock import poll
from ...._foundation.core.errors import (
    AlreadyGrown,
    AlreadyMoved,
    AlreadyRunning,
    AlreadyTemplate,
    DigestChanged,
    FleetError,
    HotplugRefused,
    Locked,
    NetworkError,
    NotRunning,
    TaskTimeout,
)
from ...._foundation.plans.requests import STAND_IN
from ...._foundation.resource.engine import FailureVerdict, StepResult, Steps, attempted
from ...._foundation.resource.plan import Plan, Step
from ...kinds.kind import Kind
from ...kinds.model import Actual
from ..isolation import isolate
from .ha import await_manager
from .read import is_elsewhere
from .snippets import put_snippet

if TYPE_CHECKING:
    from ...._foundation.api.client import Client
    from ...._foundation.api.upid import TaskResult


_CREATES = frozenset(("create", "clone"))


class GuestSteps(Steps):
    """A guest whose plan is carried out.

    If an answer is lost or the guest was changed in the meantime, the rest is planned again.
    """

    kind: Kind

    client: Client
    plan: Plan
    max_replans = 3

    def send(self, step: Step) -> StepResult:
        """Send a step. If a running task refuses it by a lock, wait for that task: a new plan
        follows.
        """
        try:
            return self._send(step)
        except Locked as error:
            holder = holder_of(error)
            if holder and not has_ended(self.client, holder, self.time_for(step)):
                raise error.on(details={}) from error
            raise

    def _send(self, step: Step) -> StepResult:
        if step.action == "template" and not step.is_task:
            conversion = Conversion(self.client, self.kind, step)
            self.client.write(
                step.method,
                *step.path,
                data=step.data,
                attempted=attempted(step.summary),
                confirm=conversion.running_task,
            )
            upid = conversion.accepted_task()
            if upid is None:
                conversion.await_config(self.time_for(step))
                return StepResult()
            return self._awaited(step, upid)
        if "archive" in step.data:
            return self._restore(step)
        if step.method == STAND_IN:
            isolate(self.client, step)
            return StepResult()
        if step.method != "FILE":
            return super().send(step)
        put_snippet(self.client, step)
        return StepResult()

    def _restore(self, step: Step) -> StepResult:
        """Send a restore once. A task that fails because of a lock leaves an empty VM, which makes
        a second try fail (qemu-server: API2/Qemu.pm, create_vm).
        """
        upid = self.client.write(
            step.method,
            *step.path,
            data=step.data,
            attempted=attempted(step.summary),
            confirm=self.confirm_write(step),
        )
        return self._awaited(step, upid) if is_upid(upid) else StepResult()

    def _awaited(self, step: Step, upid: str) -> StepResult:
        """Wait for the task of a step that was sent."""
        result = self.client.wait(
            upid, timeout=self.time_for(step), attempted=attempted(step.summary)
        )
        return self.after_task(step, result)

    def after_task(self, step: Step, result: TaskResult) -> StepResult:
        await_manager(self.client, self.kind, step, result, self.time_for(step))
        return super().after_task(step, result)

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        if _needs_reread(error) and not creates(step):
            return FailureVerdict.UNKNOWN
        is_refused = isinstance(error, HotplugRefused)
        if is_refused and step.action == "config":
            # PVE has accepted the change, but the guest does not release the device: the change
            # waits for a stop.
            return FailureVerdict.DONE
        has_stopped = step.action in ("stop", "shutdown") and isinstance(error, NotRunning)
        if has_stopped or isinstance(error, AlreadyGrown):
            return FailureVerdict.STALE
        return FailureVerdict.FAILED

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        """Return the error with the finished steps, and whether the VM exists.

        `vm_exists` is null if the creation has started and its end is not known.
        """
        failure = super().failure(error, done)
        creating = list(filter(creates, self.plan.steps))
        has_created = any(map(creates, done))
        if creating and not has_created:
            return failure
        return failure.on(details={**failure.details, "vm_exists": True})


def creates(step: Step) -> bool:
    """Return whether a step creates the VM."""
    return step.action in _CREATES


def _needs_reread(error: FleetError) -> bool:
    """Return whether the step may have happened or the plan is stale: the VM may have moved."""
    if isinstance(error, (AlreadyMoved, AlreadyRunning, AlreadyTemplate, DigestChanged)):
        return True
    if isinstance(error, Locked):
        return bool(holder_of(error))
    if isinstance(error, NetworkError):
        was_sent = error.dispatched is not False
        return was_sent or is_elsewhere(error)
    return is_elsewhere(error)


class Conversion:
    """A conversion whose answer is null while its task runs (pve-container: API2/LXC.pm,
    template).

    A task is listed before the answer is sent (pve-common: RESTEnvironment.pm, fork_worker).
    """

    def __init__(self, client: Client, kind: Kind, step: Step) -> None:
        self._client = client
        self._type = f"{kind.task_prefix}template"
        self._step = step

    def running_task(self) -> str | None:
        """Return the UPID of its task if it still runs: the check after a lost answer."""
        running = [row for row in self._tasks("active") if not row.get("endtime")]
        return running[0]["upid"] if running else None

    def accepted_task(self) -> str | None:
        """Return the UPID of its newest task once PVE accepted it. Raises TaskTimeout if hidden."""
        try:
            rows = self._tasks("all")
        except NetworkError:
            raise
        except FleetError as error:
            raise self._out_of_sight(error.cause) from error
        return max((row["upid"] for row in rows), key=_age, default=None)

    def await_config(self, timeout: float) -> None:
        """Wait until the guest is a template, if its task is not listed."""
        path = (*self._step.path[:-1], "config")
        for _remaining in poll(self._client.clock, timeout, longest=1.0):
            if str(self._client.get(*path).get("template") or "") == "1":
                return
        raise self._out_of_sight(f"it is not a template after {timeout:g} s")

    def _tasks(self, source: str) -> list[Mapping[str, Any]]:
        node, vmid = self._step.path[1], self._step.path[3]
        filters: dict[str, Any] = {"vmid": vmid, "typefilter": self._type, "source": source}
        rows = self._client.get("nodes", node, "tasks", **filters) or []
        return [row for row in rows if row.get("type") == self._type]

    def _out_of_sight(self, why: str) -> TaskTimeout:
        return TaskTimeout(
            f"{attempted(self._step.summary)}: {why}",
            "Look at the task list of the node, then run this again",
            "task still runs",
        )


def _age(upid: str) -> tuple[int, int]:
    """Return the second in which a task started, and its process ID."""
    task = parse_upid(upid)
    return task.starttime, task.pid


# Locks that do not refuse every change: of a state that is kept as long as a user wants, and of a
# backup, during which PVE starts and stops a VM (qemu-server: API2/Qemu.pm, vm_start).
_NOT_AWAITED = frozenset(("suspended", "backup"))


def await_unlocked(client: Client, actual: Actual, timeout: float) -> Holder:
    """Wait for the task that holds the lock of a guest, and return it: if it has ended, the guest
    must be read again. One or two requests for a locked guest.
    """
    if not actual.lock or actual.lock in _NOT_AWAITED:
        return Holder()
    try:
        holder = find_holder(client.get, actual.node, actual.vmid, actual.lock)
    except FleetError:
        return Holder()
    if not holder.upid:
        return Holder()
    return replace(holder, has_ended=has_ended(client, holder.upid, timeout))


def require_unlocked(holder: Holder, actual: Actual) -> None:
    """Raise Locked for a guest on which a task still works (pure)."""
    if holder.upid and not holder.has_ended:
        raise holder.refusal(f"{actual.label} was not changed", actual.node, actual.lock or "")


def has_ended(client: Client, upid: str, timeout: float) -> bool:
    """Wait for a task of another run, and return whether it ended, well or not."""
    try:
        client.wait(upid, timeout=timeout)
    except TaskTimeout:
        return False
    except FleetError:
        return True
    return True
