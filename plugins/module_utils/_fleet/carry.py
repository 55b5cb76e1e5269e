# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries the plans of a fleet out, side by side within bounds. What fails for one VM is that one's outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._api.board import TaskBoard
from .._core.clock import Stoppable
from .._core.errors import FleetError, TaskTimeout
from .._core.parallel import all_at_once, side_by_side
from .._core.result import Result
from .._vm.converge import Prepared, preview, settle, with_view
from .claims import Claims, View
from .gates import Gates, Most, Resource, resources_of
from .plan import READERS, Planned
from .tally import Tally

if TYPE_CHECKING:
    from .._api.client import Client

# Beyond the tasks that go on at once: VMs whose tasks are done and whose guest is waited for.
SPARE_WORKERS = 16

Before = Callable[[Planned], None]


@dataclass(frozen=True)
class Outcome:
    """How it went with one VM: a result or an error. Without either it was left as it is."""

    planned: Planned
    result: Result | None = None
    error: FleetError | None = None


class _Pass:
    """One VM's way through the gates: the room for its first task is taken before its worker begins."""

    def __init__(self, gates: Gates, storages: frozenset[Resource], held: frozenset[Resource]) -> None:
        self._gates = gates
        self._storages = storages
        self._held: frozenset[Resource] | None = held
        self._used: frozenset[Resource] = held

    @contextmanager
    def admit(self, path: tuple[str | int, ...], data: Mapping[str, Any]) -> Iterator[None]:
        wanted = resources_of(path, data, self._storages)
        if self._held != wanted:
            self.give_back()
            self._gates.enter(wanted)
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
            self._gates.leave(held, well=well)

    def trouble(self, _error: FleetError) -> None:
        self._gates.ease(self._used)


class Crew:
    """Works on the VMs of one run."""

    def __init__(self, client: Client, claims: Claims, most: Most, planned_at: float) -> None:
        self._clock = Stoppable(client.clock, _given_up())
        self._client = client.view()
        self._client.clock = self._clock
        self._client.board = TaskBoard(self._client)
        self._claims = claims
        self._most = most
        self._planned_at = planned_at

    def carry_out(self, plans: list[Planned], before: Before | None = None) -> list[Outcome]:
        """Return how each VM fared, in their order. `before` may refuse one at the last moment; it raises then."""
        gates = Gates(self._most, self._clock.monotonic)
        outcomes: list[Outcome | None] = [None] * len(plans)
        waiting: list[tuple[tuple[int, Planned, Prepared, _Pass], frozenset[Resource]]] = []
        for at, planned in enumerate(plans):
            prepared = planned.prepared
            if prepared is None:
                outcomes[at] = Outcome(planned, error=planned.error)
            elif not planned.changes and not prepared.job.guest.asks:
                outcomes[at] = Outcome(planned, preview(prepared))
            else:
                storages = _storages(prepared)
                held = _first(prepared, storages)
                waiting.append(((at, planned, prepared, _Pass(gates, storages, held)), held))
                if planned.row is not None:
                    self._claims.put(planned.row)
        tally = Tally(len(waiting))

        def worker() -> None:
            while True:
                turn = gates.first(waiting)
                if turn is None:
                    return
                at, planned, prepared, passed = turn
                with tally.one():
                    try:
                        outcomes[at] = Outcome(planned, self._work(planned, prepared, passed, tally, before))
                    except FleetError as error:
                        outcomes[at] = Outcome(planned, error=error)
                    finally:
                        passed.give_back()

        try:
            all_at_once(worker, min(len(waiting), (self._most.all or len(waiting)) + SPARE_WORKERS))
        except BaseException:  # such as the end of the task's time: who is at work stops at its next pause
            self._clock.stop()
            gates.close()
            raise
        return [outcome for outcome in outcomes if outcome is not None]

    def _work(self, planned: Planned, prepared: Prepared, passed: _Pass, tally: Tally, before: Before | None) -> Result:
        vmid = _vmid(prepared)
        view = self._client.view()
        view.admit, view.trouble, view.progress = passed.admit, passed.trouble, tally.over(self._client.progress)
        scene = View(view, self._claims, vmid)
        seen = replace(prepared, picture=replace(prepared.picture, read_at=self._planned_at))
        try:
            if before is not None:
                before(planned)
            return settle(with_view(seen, view, scene))
        except FleetError:
            self._claims.drop(scene.vmid)
            raise


def foresee(plans: list[Planned]) -> list[Outcome]:
    """Return what carrying the plans out would come to."""

    def one(planned: Planned) -> Outcome:
        try:
            return Outcome(planned, preview(planned.prepared) if planned.prepared else None, planned.error)
        except FleetError as error:
            return Outcome(planned, error=error)

    return side_by_side(one, plans, READERS)


def _storages(prepared: Prepared) -> frozenset[Resource]:
    """Return the storages that a new VM's disks are made on."""
    if prepared.draft is None:
        return frozenset()
    node, shared = prepared.draft.node, prepared.draft.shared
    return frozenset(
        ("storage", name if name in shared else f"{node}/{name}") for name in prepared.draft.needs.storages
    )


def _first(prepared: Prepared, storages: frozenset[Resource]) -> frozenset[Resource]:
    """Return what the first task of a plan uses; nothing where there is none."""
    tasks = (step for step in prepared.plan.steps if step.is_task and step.method != "FILE")
    first = next(tasks, None)
    return resources_of(first.path, first.data, storages) if first is not None else frozenset()


def _vmid(prepared: Prepared) -> int:
    if prepared.draft is not None:
        return prepared.draft.vmid
    return prepared.actual.vmid if prepared.actual is not None else 0


def _given_up() -> FleetError:
    return TaskTimeout(
        attempted="The work on this VM was given up",
        answer="the task of Ansible has ended",
        next_step="What Proxmox VE began goes on: run again to complete it",
        reason="given up",
    )
