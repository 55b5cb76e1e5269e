# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Execute the plans of a list in parallel, within limits.

A failure affects only its own VM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.state import node_of
from ..._foundation.core.clock import Stoppable, poll
from ..._foundation.core.errors import FleetError, GuestNotReady, TaskTimeout
from ..._foundation.core.parallel import (
    ConcurrencyLimiter,
    ConcurrencyLimits,
    Resource,
    all_at_once,
    side_by_side,
)
from ..._foundation.core.result import Result
from ..._foundation.resource.engine import after_writes, read_privileges
from ..guest.flow.apply import apply_plan, preview, with_view
from ..guest.flow.flow import GuestPlan
from ..kinds.model import Actual
from .pace import RebootCandidate, RebootQueue, RunProgress, resources_of, takes_down
from .plan import READERS, PlannedGuest
from .reservations import LiveView, Reservations

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

# Workers in addition to the concurrent tasks, for VMs that only wait for their guest.
SPARE_WORKERS = 16

# Desired states in which a running VM must be running again when the run ends.
_RUNS_AGAIN = frozenset(("present", "started", "restarted", "reset", "resumed"))

Before = Callable[[PlannedGuest], None]


@dataclass(frozen=True)
class VmOutcome:
    """The outcome of one VM: a result or an error. Without either, the VM was not changed."""

    planned: PlannedGuest
    result: Result | None = None
    error: FleetError | None = None
    vmid: int | None = None  # after an error; it differs from the plan if the VMID was taken


class Admission:
    """Admits the tasks of one VM; `held` are the resources reserved for its first task."""

    def __init__(
        self,
        limiter: ConcurrencyLimiter,
        storages: frozenset[Resource],
        held: frozenset[Resource],
        slot: RebootSlot | None = None,
    ) -> None:
        self._limiter = limiter
        self._slot = slot
        self._storages = storages
        self._held: frozenset[Resource] | None = held
        self._used: frozenset[Resource] = held

    @contextmanager
    def admit(self, path: tuple[str | int, ...], data: Mapping[str, Any]) -> Iterator[None]:
        if self._slot is not None and takes_down(path):
            self.give_back()  # a waiting VM must not hold resources that earlier VMs need
            self._slot.await_slot()
        wanted = resources_of(path, data, self._storages)
        if self._held != wanted:
            self.give_back()
            self._limiter.enter(wanted)
        self._held, self._used = wanted, wanted
        try:
            yield
        except BaseException:
            self.give_back(well=False)
            raise
        self.give_back()

    def give_back(self, well: bool = True) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._limiter.leave(held, well=well)

    def end_slot(self, error: FleetError | None) -> None:
        """Let the next VM go down when this VM runs again.

        Raises TaskTimeout if it does not start.
        """
        self.give_back()
        if self._slot is not None:
            self._slot.end(error)

    def give_slot_up(self) -> None:
        """Let no other VM go down, because an error outside this VM ended the run."""
        if self._slot is not None:
            self._slot.give_up()

    def note_failure(self, _error: FleetError) -> None:
        self._limiter.back_off(self._used)


class RebootSlot:
    """The right of one running VM to go down for a reboot, and the check that it runs again."""

    def __init__(
        self,
        reboots: RebootQueue,
        client: Client,
        vm_plan: GuestPlan[Any],
        actual: Actual,
        candidate: RebootCandidate,
    ) -> None:
        self._reboots = reboots
        self._client = client
        self._actual = actual
        self._candidate = candidate
        self._timeout = vm_plan.context.settings.task_timeout

    def await_slot(self) -> None:
        """Wait until the VM may go down; return at once if it is down already. Raises Conflict."""
        if not self._reboots.is_down(self._actual.vmid):
            self._reboots.enter(
                self._actual.vmid, self._candidate, lambda: self._client.clock.sleep(0)
            )

    def end(self, error: FleetError | None) -> None:
        """Give the slot back. Raises TaskTimeout if the VM does not run again."""
        if not self._reboots.is_down(self._actual.vmid):
            return
        runs = False
        timeout = self._timeout if error is None else 0
        try:
            waited_in_vain = isinstance(error, GuestNotReady)
            runs = not waited_in_vain and self._runs(timeout)
        finally:
            self._reboots.leave(self._actual.vmid, runs=runs)
        if not runs and error is None:
            raise _down(self._actual.label, self._timeout)

    def give_up(self) -> None:
        """End the slot without reading the VM."""
        self._reboots.leave(self._actual.vmid, runs=False)

    def _runs(self, timeout: float) -> bool:
        """Wait for the VM to run, at most `timeout` seconds, and return whether it runs.

        The task of a reboot ends when the guest is off; qmeventd starts it right after
        (qemu-server: `qm cleanup`).
        """
        return any(self._is_running() for _remaining in poll(self._client.clock, timeout))

    def _is_running(self) -> bool:
        try:
            node = node_of(self._client, self._actual.vmid) or self._actual.node
            path = replace(self._actual, node=node).path
            current = self._client.get(*path, "status", "current")
        except FleetError:
            return False
        return str(current.get("status")) == "running"


class Executor:
    """Works on the VMs of one run."""

    def __init__(
        self,
        client: Client,
        reservations: Reservations,
        limits: ConcurrencyLimits,
        planned_at: float,
        batch: int = 0,
    ) -> None:
        self._reboots = RebootQueue(batch)
        self._clock = Stoppable(client.clock, _given_up())
        self._client = client.for_threads(self._clock)
        self._reservations = reservations
        self._limits = limits
        self._planned_at = planned_at

    def execute(self, plans: list[PlannedGuest], before: Before | None = None) -> list[VmOutcome]:
        """Return the outcome of each VM, in order; `before` may raise to refuse a VM."""
        limiter = ConcurrencyLimiter(self._limits, self._clock.monotonic)
        outcomes: list[VmOutcome | None] = [None] * len(plans)
        waiting: list[
            tuple[tuple[int, PlannedGuest, GuestPlan[Any], Admission], frozenset[Resource]]
        ] = []
        for at, planned in enumerate(plans):
            vm_plan = planned.vm_plan
            if vm_plan is None:
                outcomes[at] = VmOutcome(planned, error=planned.error)
            elif not planned.changes and not vm_plan.context.settings.needs_agent:
                outcomes[at] = VmOutcome(planned, preview(vm_plan))
            else:
                storages = _storages(vm_plan)
                held = frozenset() if self._limits.read_ahead else _first(vm_plan, storages)
                slot = self._slot_of(planned, vm_plan)
                waiting.append(
                    ((at, planned, vm_plan, Admission(limiter, storages, held, slot)), held)
                )
                if planned.row is not None:
                    self._reservations.put(planned.row)
        planned_work = [planned for (_at, planned, *_rest), _held in waiting]
        run_progress = RunProgress(
            len(waiting), _word_for(planned_work), self._client.progress, self._clock
        )

        def worker() -> None:
            while True:
                first = limiter.first(waiting)
                if first is None:
                    return
                at, planned, vm_plan, admission = first
                present_name = planned.row.name if planned.row is not None else ""
                run_progress.begin(at, planned.item.label_as(present_name))
                try:
                    outcomes[at] = self._work(planned, vm_plan, admission, run_progress, before)
                finally:
                    admission.give_back()
                    outcome = outcomes[at]
                    failed = outcome is None or outcome.error is not None
                    run_progress.end(at, failed=failed)

        spare = self._limits.read_ahead or SPARE_WORKERS
        try:
            all_at_once(worker, min(len(waiting), (self._limits.all or len(waiting)) + spare))
        # such as a timeout of the Ansible task: each worker stops at its next pause
        except BaseException:
            self._clock.stop()
            limiter.close()
            raise
        return [outcome for outcome in outcomes if outcome is not None]

    def _slot_of(self, planned: PlannedGuest, vm_plan: GuestPlan[Any]) -> RebootSlot | None:
        """Return the reboot slot of a running VM that must run again in the end, or None."""
        actual, desired = vm_plan.actual, planned.item.desired
        if actual is None or not actual.running:
            return None
        if desired.guest.state not in _RUNS_AGAIN:
            return None
        row = planned.row or planned.found
        if row is None:
            return None
        return RebootSlot(
            self._reboots,
            self._client,
            vm_plan,
            actual,
            RebootCandidate(row, desired.guest.rules.anti_affinity),
        )

    def _work(
        self,
        planned: PlannedGuest,
        vm_plan: GuestPlan[Any],
        admission: Admission,
        run_progress: RunProgress,
        before: Before | None,
    ) -> VmOutcome:
        """Return the outcome of one VM."""
        notes = self._client.notes.about(planned.item.label)
        kind = planned.item.kind.kind
        view = self._client.limited(admission, run_progress.over(self._client.progress)).noted(
            notes
        )
        cluster_view = LiveView(view, self._reservations, vm_plan.place[0], kind.type)
        dated_plan = replace(vm_plan, cluster=replace(vm_plan.cluster, read_at=self._planned_at))
        try:
            if before is not None:
                before(planned)
            result = self._execute_plan(with_view(dated_plan, view, cluster_view), admission)
        except FleetError as error:
            self._reservations.drop(cluster_view.vmid)
            return VmOutcome(planned, error=error, vmid=cluster_view.vmid)
        notes.complete()
        return VmOutcome(planned, result)

    def _execute_plan(self, vm_plan: GuestPlan[Any], admission: Admission) -> Result:
        """Execute one plan. If it takes the VM down, its slot ends when the VM runs again."""
        try:
            result = apply_plan(vm_plan)
        except FleetError as error:
            admission.end_slot(error)
            raise
        except BaseException:
            admission.give_slot_up()
            raise
        with after_writes(result.values["done"]):
            admission.end_slot(None)
        return result


def preview_all(plans: list[PlannedGuest]) -> list[VmOutcome]:
    """Return the outcome that each plan would have, without executing it.

    One request for the privileges of the login, if a guest would change.
    """
    made = [planned.vm_plan for planned in plans if planned.vm_plan is not None]
    held = None
    if made:
        held = read_privileges(made[0].context.client, [vm_plan.plan for vm_plan in made])

    def one(planned: PlannedGuest) -> VmOutcome:
        if planned.vm_plan is None:
            return VmOutcome(planned, error=planned.error)
        try:
            return VmOutcome(planned, preview(planned.vm_plan, held), planned.error)
        except FleetError as error:
            return VmOutcome(planned, error=error)

    return side_by_side(one, plans, READERS)


def _storages(vm_plan: GuestPlan[Any]) -> frozenset[Resource]:
    """Return the storages on which the disks of a new VM are created."""
    if vm_plan.new is None:
        return frozenset()
    shared = vm_plan.cluster.shared_storages
    found: set[Resource] = set()
    for name in vm_plan.flow.needs_of(vm_plan.new).storages:
        place = name if name in shared else f"{vm_plan.new.node}/{name}"
        found.add(("storage", place))
    return frozenset(found)


def _first(vm_plan: GuestPlan[Any], storages: frozenset[Resource]) -> frozenset[Resource]:
    """Return the resources of the first task of a plan, empty if the plan has no task."""
    tasks = (step for step in vm_plan.plan.steps if step.is_task and step.method != "FILE")
    first = next(tasks, None)
    if first is None:
        return frozenset()
    return resources_of(first.path, first.data, storages)


def _word_for(plans: Sequence[PlannedGuest]) -> str:
    """Return the common work of all guests, or a general word (pure)."""
    if all(planned.creates for planned in plans):
        return "created"
    return "removed" if all(planned.is_removal for planned in plans) else "done"


def _given_up() -> FleetError:
    return TaskTimeout(
        "The work on this VM was given up: the task of Ansible has ended",
        "What Proxmox VE started continues: run again to complete it",
        "given up",
    )


def _down(label: str, timeout: float) -> FleetError:
    return TaskTimeout(
        f"{label} was rebooted: it does not run after {timeout:g} s",
        "Look at its console and the node's log; no other VM of this run is rebooted",
        "not running after reboot",
    )
