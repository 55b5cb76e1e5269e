# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest while an archive overwrites it: stopped, kept, restored, configured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.tasks import find_task
from ...._foundation.api.upid import parse_upid
from ...._foundation.cluster.find.restoring import RESTORE_TASKS, await_restored, is_bare
from ...._foundation.core.errors import Conflict, FleetError, RestoreFailed
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import Execution, FailureVerdict, StepResult
from ...._foundation.resource.plan import Plan, Step
from ...._guests.guest.describe import report
from ...._guests.guest.flow.apply import apply_plan
from ...._guests.guest.flow.existing import ExistingResource
from ...._guests.guest.flow.flow import GuestFlow
from ...._guests.guest.live.find import require_own
from ...._guests.guest.live.read import read_wherever, require_untouched
from ...._guests.guest.plan.planner import CreationOptions
from ...._guests.kinds.model import Actual
from ...._guests.kinds.words import CONTAINER
from ...snapshot.read import running_task
from .plan import KEEP, NOTE, RESTORE, Overwrite

if TYPE_CHECKING:
    from ...._foundation.api.upid import TaskResult

# Tolerated clock difference between controller and node, in seconds.
_CLOCKS = 10
_TASK = "vzdump"


class OverwrittenGuest(ExistingResource[Any]):
    """An existing guest with the plan that overwrites it."""

    def __init__(self, flow: GuestFlow[Any], context: Any, plan: Plan, task: Overwrite) -> None:
        super().__init__(flow, context, plan, task.actual)
        self._task = task
        self.config = task.chosen.config
        self._began = self.client.clock.time()
        self._kept: str | None = None  # the archive or the copy of the former state
        self._known: frozenset[str] = frozenset()  # the archives that existed before

    def guard(self, step: Step) -> None:
        """Read the guest again before steps that cannot be undone. Raises Conflict if another guest
        has its VMID now, or if its disks have changed.
        """
        if step.action not in (NOTE, KEEP, RESTORE, "stop", "shutdown"):
            return
        if step.action == KEEP and self._task.archives:
            self._known = frozenset(self._archives())
        current = self._read()
        known = self.actual
        if is_bare(known.live):
            if is_bare(current.live):
                return
            raise self._changed(current, "another run has restored it")
        require_own(self.context.desired.guest, current, known)
        require_untouched(self.context.desired.guest, known, current)
        if step.action == RESTORE and current.running:
            raise self._changed(current, "it was started again")

    def _changed(self, current: Actual, answer: str) -> Conflict:
        return Conflict(
            f"{current.label} was not overwritten: {answer}",
            "Look at it, and run this again if it must still be overwritten",
            "changed",
        )

    def _read(self) -> Actual:
        known = self.actual
        return read_wherever(self.client, known.kind, known.vmid, known.node, pool=known.pool)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        """Return the remaining steps; the marker of this run shows that the restore has ended."""
        current = self._await_end()
        if current.marker.run == self._task.run:
            return self.flow.planner.plan_update(
                self.context.desired, current, creating=CreationOptions()
            )
        finished = {step.action for step in done}
        if current.marker.ran is not None:
            finished.add(NOTE)
        steps = [step for step in self.plan.steps if step.action not in finished]
        if not current.running:
            steps = [step for step in steps if step.action not in ("stop", "shutdown")]
        return Plan(tuple(steps))

    def _await_end(self) -> Actual:
        """Return the guest after its restore ended. Raises RestoreFailed if the guest is empty."""
        current = self._read()
        was_empty = is_bare(self.actual.live)
        if was_empty or not is_bare(current.live):
            return current
        await_restored(
            self.client,
            current.path,
            seconds=self.timeout,
            attempted=f"{self.actual.label} could not be read",
        )
        current = self._read()
        if is_bare(current.live):
            raise RestoreFailed(
                f"{self.actual.label} was not restored: the restore has failed and has left it "
                "empty",
                self._remedy(),
                "restore failed",
            )
        return current

    def _remedy(self) -> str:
        """Return the next step that recovers the guest. A failed restore can remove a container
        (pve-container: API2/LXC.pm, create_vm).
        """
        task, vmid = self._task, self.actual.vmid
        is_container = self.actual.kind is CONTAINER
        what = "the container, also if it is gone" if is_container else "the guest again"
        step = (
            f"Run this again with vmid {vmid} and confirm '{task.chosen.name}': it restores {what}"
        )
        if task.ran is not None:
            step += ", and starts it"
        if is_container:
            form = "its copy" if task.copies else "archive"
            return (
                step if self._kept is None else f"{step}. Its former state is {form} {self._kept}"
            )
        if task.copies:
            return f"{step}. Its former state is its copy {task.restore.keep_name}"
        if not task.keeps:
            return step
        storage = task.keep_storage
        return f"{step}. Its former state is the newest archive of {vmid} on storage {storage}"

    def send(self, step: Step) -> StepResult:
        """Send a step; a copy is made by a plan of its own."""
        copy = self._task.copy
        if step.action != KEEP or copy is None:
            return super().send(step)
        result = apply_plan(copy)
        self._kept = self._task.restore.keep_name
        return StepResult(warnings=result.warnings)

    def confirm_write(self, step: Step) -> Callable[[], Any] | None:
        """Return the search for the backup's task; after other steps, the plan is made again."""
        return self._find_backup if step.action == KEEP else None

    def _find_backup(self) -> str | None:
        """Return the task of the backup if it still runs or has made an archive. The task of an
        earlier backup is ignored.
        """
        node, vmid, since = self.actual.node, self.actual.vmid, self._began - _CLOCKS
        upid = find_task(self.client, node, type=_TASK, vmid=vmid, since=since)
        if upid is None or self._new_archives():
            return upid
        return upid if upid == running_task(self.client, node, vmid, _TASK) else None

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        if step.action == KEEP:
            return FailureVerdict.FAILED
        return super().classify_failure(step, error)

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        """Return the error; after a failed restore, its next step recovers the guest."""
        failure = super().failure(error, done)
        if not error.upid or parse_upid(error.upid).type not in RESTORE_TASKS:
            return failure
        return failure.on(next_step=self._remedy())

    def after_task(self, step: Step, result: TaskResult) -> StepResult:
        if step.action == KEEP:
            self._kept = self._require_kept(result.upid)
        return super().after_task(step, result)

    def _require_kept(self, upid: str) -> str:
        """Return the volume of the new archive. Raises Conflict if there is none."""
        found = self._new_archives()
        if found:
            return max(found)
        raise Conflict(
            f"{self.actual.label} was not overwritten: storage {self._task.keep_storage} lists no "
            "archive of its present state",
            "Look at the log of the task of the backup",
            "no archive",
            upid=upid,
        )

    def _new_archives(self) -> set[str]:
        return self._archives() - self._known

    def _archives(self) -> set[str]:
        """Return the volumes of the archives of the guest; one request."""
        path = ("nodes", self.actual.node, "storage", self._task.keep_storage, "content")
        rows = self.client.get(*path, content="backup", vmid=self.actual.vmid)
        return {str(row["volid"]) for row in rows}

    def preview(self) -> Result:
        return report(self.flow, self.context, self.plan, self.actual, done=[])

    def report(self, execution: Execution) -> Result:
        plan, final = self.plan, self._read()
        result = report(self.flow, self.context, plan, final, done=list(execution.done))
        return replace(result, values={**result.values, "kept": self._kept})
