# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Execute the plans of a list in parallel, within limits.

A failure is the outcome of its VM only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._cluster.state import fetch_cluster_state
from .._core.clock import Stoppable
from .._core.errors import FleetError, GuestNotReady, TaskTimeout
from .._core.parallel import all_at_once, side_by_side
from .._core.poll import poll
from .._core.result import Result
from .._vm.model import Actual
from .._vm.run import VmPlan, apply_plan, preview, with_view
from .concurrency import ConcurrencyLimiter, ConcurrencyLimits, Resource, resources_of
from .plan import READERS, Planned
from .power_turns import Member, Turns, takes_down
from .progress import RunProgress
from .reservations import LiveView, Reservations

if TYPE_CHECKING:
    from .._api.client import Client

# Beyond the tasks that run at once: VMs whose tasks are done and whose guest is waited for.
SPARE_WORKERS = 16

# States in which a VM that was running runs in the end.
_RUNS_AGAIN = frozenset(("present", "started", "restarted", "reset", "resumed"))

Before = Callable[[Planned], None]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one VM: a result or an error. Without either it was left as it is."""

    planned: Planned
    result: Result | None = None
    error: FleetError | None = None
    vmid: int | None = None  # of a VM that was made before it failed


class _Pass:
    """The room that one VM's tasks take; that for the first is taken before its worker begins."""

    def __init__(
        self,
        limiter: ConcurrencyLimiter,
        storages: frozenset[Resource],
        held: frozenset[Resource],
        turn: Turn | None = None,
    ) -> None:
        self._limiter = limiter
        self._turn = turn
        self._storages = storages
        self._held: frozenset[Resource] | None = held
        self._used: frozenset[Resource] = held

    @contextmanager
    def admit(
        self,
        path: tuple[str | int, ...],
        data: Mapping[str, Any],
    ) -> Iterator[None]:
        if self._turn is not None and takes_down(path):
            self.give_back()  # a VM that waits for its turn holds nothing that those before it need
            self._turn.await_turn()
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

    def end_turn(self, error: FleetError | None) -> None:
        """Let the next VM go down, once this one runs again.

        Raises TaskTimeout where it does not.
        """
        self.give_back()
        if self._turn is not None:
            self._turn.end(error)

    def give_turn_up(self) -> None:
        """Let no other VM go down: the run ended in an error that is not the VM's."""
        if self._turn is not None:
            self._turn.give_up()

    def trouble(self, _error: FleetError) -> None:
        self._limiter.back_off(self._used)


class Turn:
    """One running VM's turn to go down for a reboot, and the look whether it runs again."""

    def __init__(
        self,
        turns: Turns,
        client: Client,
        vm_plan: VmPlan,
        actual: Actual,
        member: Member,
    ) -> None:
        self._turns = turns
        self._client = client
        self._actual = actual
        self._member = member
        self._timeout = vm_plan.context.settings.task_timeout

    def await_turn(self) -> None:
        """Return when the VM may go down; at once where it is down already. Raises Conflict."""
        if not self._turns.is_down(self._actual.vmid):
            self._turns.enter(
                self._actual.vmid,
                self._member,
                lambda: self._client.clock.sleep(0),
            )

    def end(self, error: FleetError | None) -> None:
        """Give the turn back.

        Raises TaskTimeout where the VM does not run again after its reboot.
        """
        if not self._turns.is_down(self._actual.vmid):
            return
        runs = False
        timeout: float = self._timeout
        if error is not None:
            timeout = 0
        try:
            waited_in_vain = isinstance(error, GuestNotReady)
            runs = not waited_in_vain and self._runs(timeout)
        finally:
            self._turns.leave(self._actual.vmid, runs=runs)
        if not runs and error is None:
            raise _down(self._actual.label, self._timeout)

    def give_up(self) -> None:
        """End the turn without a look at the VM."""
        self._turns.leave(self._actual.vmid, runs=False)

    def _runs(self, timeout: float) -> bool:
        """Return whether the VM runs, at the latest after `timeout` seconds.

        The task of a reboot ends when the guest is off; qmeventd starts it right after
        (qemu-server: `qm cleanup`).
        """
        return any(self._is_running() for _left in poll(self._client.clock, timeout))

    def _is_running(self) -> bool:
        try:
            now = fetch_cluster_state(self._client).vms.get(self._actual.vmid)
            node = now.node if now is not None else self._actual.node
            current = self._client.get(
                "nodes",
                node,
                "qemu",
                self._actual.vmid,
                "status",
                "current",
            )
        except FleetError:
            return False
        return str(current.get("status")) == "running"


class Executor:
    """Works on the VMs of one run."""

    def __init__(
        self,
        client: Client,
        reservations: Reservations,
        most: ConcurrencyLimits,
        planned_at: float,
        batch: int = 0,
    ) -> None:
        self._turns = Turns(batch)
        self._clock = Stoppable(client.clock, _given_up())
        self._client = client.for_threads(self._clock)
        self._reservations = reservations
        self._most = most
        self._planned_at = planned_at

    def execute(
        self,
        plans: list[Planned],
        before: Before | None = None,
    ) -> list[Outcome]:
        """Return the outcome of each VM, in order.

        `before` may refuse one: it raises FleetError.
        """
        limiter = ConcurrencyLimiter(self._most, self._clock.monotonic)
        outcomes: list[Outcome | None] = [None] * len(plans)
        waiting: list[tuple[tuple[int, Planned, VmPlan, _Pass], frozenset[Resource]]] = []
        for at, planned in enumerate(plans):
            vm_plan = planned.vm_plan
            if vm_plan is None:
                outcomes[at] = Outcome(planned, error=planned.error)
            elif not planned.changes and not vm_plan.context.settings.guest.asks:
                outcomes[at] = Outcome(planned, preview(vm_plan))
            else:
                storages = _storages(vm_plan)
                held = _first(vm_plan, storages)
                turn = self._turn_of(planned, vm_plan)
                waiting.append(
                    (
                        (
                            at,
                            planned,
                            vm_plan,
                            _Pass(
                                limiter,
                                storages,
                                held,
                                turn,
                            ),
                        ),
                        held,
                    )
                )
                if planned.row is not None:
                    self._reservations.put(planned.row)
        run_progress = RunProgress(len(waiting))

        def worker() -> None:
            while True:
                first = limiter.first(waiting)
                if first is None:
                    return
                at, planned, vm_plan, passed = first
                with run_progress.one():
                    try:
                        outcomes[at] = self._work(
                            planned,
                            vm_plan,
                            passed,
                            run_progress,
                            before,
                        )
                    finally:
                        passed.give_back()

        try:
            all_at_once(worker, min(len(waiting), (self._most.all or len(waiting)) + SPARE_WORKERS))
        # such as the end of the task's time: who is at work stops at its next pause
        except BaseException:
            self._clock.stop()
            limiter.close()
            raise
        return [outcome for outcome in outcomes if outcome is not None]

    def _turn_of(self, planned: Planned, vm_plan: VmPlan) -> Turn | None:
        """Return the turn of a VM that runs and is to run when all is done, or None."""
        actual, desired = vm_plan.actual, planned.item.desired
        if actual is None or not actual.running:
            return None
        if desired.state not in _RUNS_AGAIN:
            return None
        row = planned.row or planned.found
        if row is None:
            return None
        return Turn(
            self._turns,
            self._client,
            vm_plan,
            actual,
            Member(row, desired.rules.anti_affinity),
        )

    def _work(
        self,
        planned: Planned,
        vm_plan: VmPlan,
        passed: _Pass,
        run_progress: RunProgress,
        before: Before | None,
    ) -> Outcome:
        """Return the outcome of one VM."""
        notes = self._client.notes.about(planned.item.label)
        view = self._client.limited(passed, run_progress.over(self._client.progress)).noted(notes)
        cluster_view = LiveView(view, self._reservations, _vmid(vm_plan))
        seen = replace(vm_plan, cluster=replace(vm_plan.cluster, read_at=self._planned_at))
        try:
            if before is not None:
                before(planned)
            result = self._settle(with_view(seen, view, cluster_view), passed)
        except FleetError as error:
            self._reservations.drop(cluster_view.vmid)
            return Outcome(planned, error=error, vmid=cluster_view.vmid)
        notes.complete()
        return Outcome(planned, result)

    def _settle(self, vm_plan: VmPlan, passed: _Pass) -> Result:
        """Carry one plan out; where it takes the VM down, the turn ends when the VM runs again."""
        try:
            result = apply_plan(vm_plan)
        except FleetError as error:
            passed.end_turn(error)
            raise
        except BaseException:
            passed.give_turn_up()
            raise
        passed.end_turn(None)
        return result


def foresee(plans: list[Planned]) -> list[Outcome]:
    """Return what carrying the plans out would come to."""

    def one(planned: Planned) -> Outcome:
        if planned.vm_plan is None:
            return Outcome(planned, error=planned.error)
        try:
            return Outcome(planned, preview(planned.vm_plan), planned.error)
        except FleetError as error:
            return Outcome(planned, error=error)

    return side_by_side(one, plans, READERS)


def _storages(vm_plan: VmPlan) -> frozenset[Resource]:
    """Return the storages that a new VM's disks are made on."""
    if vm_plan.draft is None:
        return frozenset()
    draft = vm_plan.draft
    found: set[Resource] = set()
    for name in draft.needs.storages:
        place = name
        if name not in draft.shared:
            place = f"{draft.node}/{name}"
        found.add(("storage", place))
    return frozenset(found)


def _first(vm_plan: VmPlan, storages: frozenset[Resource]) -> frozenset[Resource]:
    """Return what the first task of a plan uses; nothing where there is none."""
    tasks = (step for step in vm_plan.plan.steps if step.is_task and step.method != "FILE")
    first = next(tasks, None)
    if first is None:
        return frozenset()
    return resources_of(first.path, first.data, storages)


def _vmid(vm_plan: VmPlan) -> int:
    if vm_plan.draft is not None:
        return vm_plan.draft.vmid
    if vm_plan.actual is not None:
        return vm_plan.actual.vmid
    return 0


def _given_up() -> FleetError:
    return TaskTimeout(
        attempted="The work on this VM was given up",
        answer="the task of Ansible has ended",
        next_step="What Proxmox VE started continues: run again to complete it",
        reason="given up",
    )


def _down(label: str, timeout: float) -> FleetError:
    return TaskTimeout(
        attempted=f"{label} was rebooted",
        answer=f"it does not run after {timeout:g} s",
        next_step="Look at its console and the node's log; no other VM of this run is rebooted",
        reason="not running after reboot",
    )
