# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pace of a run: resources of tasks, VMs that may be down at the same time, progress."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from ..._foundation.api.protocols import Progress
from ..._foundation.cluster.rules import VmSelector
from ..._foundation.cluster.state import VmRow
from ..._foundation.core.clock import Clock
from ..._foundation.core.errors import Conflict, FleetError
from ..._foundation.core.parallel import Resource
from ..._foundation.resource.plan import Plan
from ..kinds.model import Actual
from ..kinds.words import TYPES

# Requests below `status` that take a running VM down.
_DOWN = frozenset(("reboot", "reset", "shutdown", "stop"))
_OFF = frozenset(("shutdown", "stop"))
_WAKEUP = 1.0  # seconds between two checks of a waiting VM whether the run was given up


@dataclass(frozen=True)
class RebootCandidate:
    """A VM that will be restarted, and the selectors of its anti-affinity rules."""

    row: VmRow
    apart_from: tuple[VmSelector, ...] = ()

    def excludes(self, other: RebootCandidate) -> bool:
        """Return whether anti-affinity forbids that both VMs are down at the same time.

        The rules of one VM match the other, or both VMs have a selector in common.
        """
        if set(self.apart_from) & set(other.apart_from):
            return True
        return self._keeps_away(other) or other._keeps_away(self)

    def _keeps_away(self, other: RebootCandidate) -> bool:
        return any(match.fits(other.row) for match in self.apart_from)


def restarts(actual: Actual | None, plan: Plan) -> bool:
    """Return whether a plan takes a running VM down and starts it again (pure)."""
    if actual is None:
        return False
    if not actual.running:
        return False
    actions = {step.action for step in plan.steps}
    is_restart = not actions.isdisjoint(("reboot", "reset"))
    goes_off = not actions.isdisjoint(_OFF)
    comes_back = "start" in actions
    return is_restart or (goes_off and comes_back)


def takes_down(path: tuple[str | int, ...]) -> bool:
    """Return whether a request takes a running VM down (pure)."""
    return path[-2:-1] == ("status",) and path[-1] in _DOWN


class RebootQueue:
    """Lets VMs go down in batches.

    The next batch begins when every VM of the previous batch runs again. If a VM does not come
    back, no other VM is taken down.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._changed = threading.Condition()
        self._down: dict[int, RebootCandidate] = {}
        self._taken = 0  # of the current batch
        self._lost: str = ""

    def enter(self, vmid: int, candidate: RebootCandidate, pause: Callable[[], None]) -> None:
        """Wait until the VM may go down. `pause` raises if the run was given up.

        Raises Conflict if an earlier VM does not run again.
        """
        with self._changed:
            while True:
                if self._lost:
                    raise _not_after(candidate, self._lost)
                is_full = self._taken >= self._size > 0
                if not is_full and not any(map(candidate.excludes, self._down.values())):
                    break
                self._changed.wait(_WAKEUP)
                pause()
            self._down[vmid] = candidate
            self._taken += 1

    def leave(self, vmid: int, *, runs: bool) -> None:
        """Note whether a VM runs again."""
        with self._changed:
            candidate = self._down.pop(vmid, None)
            if candidate is None:
                return
            if not runs and not self._lost:
                self._lost = f"'{candidate.row.name}' ({candidate.row.vmid})"
            if not self._down:
                self._taken = 0
            self._changed.notify_all()

    def is_down(self, vmid: int) -> bool:
        """Return whether a VM has entered and not left."""
        with self._changed:
            return vmid in self._down


def _not_after(candidate: RebootCandidate, lost: str) -> FleetError:
    return Conflict(
        f"VM '{candidate.row.name}' ({candidate.row.vmid}) was not rebooted: VM {lost} does not "
        "run again after its reboot",
        "Find out why, repair it and run again: what is left waits for a reboot",
        "earlier reboot failed",
    )


# The end of the path of a request that creates a guest, by kind.
_CREATIONS = tuple((pve_type,) for pve_type in TYPES)


def resources_of(
    path: tuple[str | int, ...],
    data: Mapping[str, Any],
    storages: frozenset[Resource] = frozenset(),
) -> frozenset[Resource]:
    """Return the resources of a request's task; `storages` hold the disks of a new VM (pure)."""
    used: set[Resource] = {("all", "")}
    if len(path) > 1 and path[0] == "nodes":
        used.add(("node", str(path[1])))
    if path[-1:] == ("clone",):
        used |= {("template", str(path[3])), *storages}
    elif path[2:] in _CREATIONS:
        used |= storages
    elif data.get("storage"):
        used.add(("storage", str(data["storage"])))
    return frozenset(used)


@dataclass(frozen=True)
class RunCounts:
    """How far a run is: its guests, the names and seconds of those at work, and the guest that has
    just finished, if any. `word` is the work, such as C(created).
    """

    word: str
    number: int
    done: int
    failed: int
    seconds: float
    busy: Sequence[tuple[str, float]]
    finished: str = ""
    has_failed: bool = False
    took: float = 0.0


@runtime_checkable
class RunWatcher(Protocol):
    """Shows the progress of a run."""

    def note_run(self, counts: RunCounts) -> None: ...


class RunProgress:
    """Counts the guests of a run that are done and at work; safe to use from several threads."""

    def __init__(self, number: int, word: str, watcher: object, clock: Clock) -> None:
        self._number = number
        self._word = word
        self._watcher = watcher if isinstance(watcher, RunWatcher) else None
        self._clock = clock
        self._began = clock.monotonic()
        self._done = 0
        self._failed = 0
        self._busy: dict[int, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def begin(self, at: int, label: str) -> None:
        """Count a guest as at work; `at` is its place in the run."""
        with self._lock:
            self._busy[at] = (label, self._clock.monotonic())

    def end(self, at: int, *, failed: bool) -> None:
        """Count a guest as done or failed, and show it."""
        with self._lock:
            label, began = self._busy.pop(at)
            took = self._clock.monotonic() - began
            self._done += not failed
            self._failed += failed
            counts = replace(self._counts(), finished=label, has_failed=failed, took=took)
            if self._watcher is not None:
                self._watcher.note_run(counts)

    def over(self, progress: Progress | None) -> Progress | None:
        """Return a progress callback that shows the run; a run of one guest shows its tasks."""
        watcher = self._watcher
        if watcher is None or self._number == 1:
            return progress

        def show(_upid: str, _seconds: float, _status: str) -> None:
            with self._lock:
                watcher.note_run(self._counts())

        return show

    def _counts(self) -> RunCounts:
        now = self._clock.monotonic()
        busy = [(label, now - began) for label, began in self._busy.values()]
        seconds = now - self._began
        return RunCounts(self._word, self._number, self._done, self._failed, seconds, busy)
