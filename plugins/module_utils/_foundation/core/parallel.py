# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Work on several things side by side, within limits that are lowered while Proxmox VE
struggles.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import TaskTimeout

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

Resource = tuple[str, str]
"""A resource that a task uses: its kind (all, node, storage, template) and its name."""

# Seconds in which several failures of one resource count as one, since all running tasks can fail.
CALM = 2.0

# Signals with a handler in Python: Ansible's own, and the signal of its keyword `timeout`.
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


def leave_signals_to_the_main_thread() -> None:
    """Block the signals of a task in the calling thread, which is not the main one.

    Python runs handlers only in the main thread. If two signals follow quickly, as Ansible sends
    them to a worker, Linux may deliver both to another running thread: the main thread then keeps
    waiting, and the process does not end.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)


# Requests of one task that read at the same time, and sites that it works on at the same time.
READS_AT_ONCE = 8
SITES_AT_ONCE = 16
# Sites that are only listed: one connection each, and a process may usually open 1,024 files.
LISTINGS_AT_ONCE = 128


def side_by_side(
    work: Callable[[Item], Outcome], items: Sequence[Item], workers: int = READS_AT_ONCE
) -> list[Outcome]:
    """Return the result of `work` for each item, in order, with at most `workers` threads.

    An exception cancels all items that have not started. If the failure of one item must not stop
    the others, `work` returns the failure.
    """
    maximum = max(1, min(workers, len(items)))
    if maximum == 1:
        return [work(item) for item in items]
    pool = ThreadPoolExecutor(
        max_workers=maximum,
        thread_name_prefix="pve-fleet",
        initializer=leave_signals_to_the_main_thread,
    )
    try:
        return list(pool.map(work, items))
    finally:  # a task that has timed out does not wait for busy workers
        pool.shutdown(wait=False, cancel_futures=True)


def all_at_once(work: Callable[[], None], workers: int) -> None:
    """Call `work` in that number of threads and return when every call has returned.

    An exception in one call is raised at once.
    """
    side_by_side(lambda _number: work(), range(workers), workers)


@dataclass(frozen=True)
class ConcurrencyLimits:
    """The maximum of concurrent tasks by kind of resource; 0 sets no limit.

    `read_ahead` is the number of VMs that are read again while they wait for room: their first task
    can then start as soon as another task ends. With 0, a VM is read when it has room.
    """

    all: int = 32
    node: int = 4
    storage: int = 0
    template: int = 4
    read_ahead: int = 0


class _Gate:
    """The limit of one resource, at most `maximum`; 0 sets no limit."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.limit = maximum
        self.busy = 0
        self._successes = 0  # successful tasks since the last change of the limit
        self._halved_at = float("-inf")

    @property
    def is_full(self) -> bool:
        return self.maximum > 0 and self.busy >= self.limit

    def count(self, well: bool) -> None:
        """Count a finished task; a lowered limit grows after enough successful tasks."""
        if not well:
            self._successes = 0
            return
        self._successes += 1
        if self.limit < self.maximum and self._successes >= self.limit:
            self.limit += 1
            self._successes = 0

    def halve(self, now: float) -> None:
        """Halve the limit, at most once in CALM seconds."""
        self._successes = 0
        is_calm = now - self._halved_at > CALM
        if not self.maximum or not is_calm:
            return
        self._halved_at = now
        in_use = max(self.busy, 1)
        self.limit = max(1, min(self.limit, in_use) // 2)


class ConcurrencyLimiter:
    """Limits the number of concurrent tasks.

    A task takes all its resources at once or none, so no two tasks block each other.
    """

    def __init__(self, limits_by_kind: ConcurrencyLimits, now: Callable[[], float]) -> None:
        self._limits_by_kind = limits_by_kind
        self._now = now
        self._limiter: dict[Resource, _Gate] = {}
        self._changed = threading.Condition()
        self._closed = False

    def first(self, waiting: list[tuple[Any, frozenset[Resource]]]) -> Any:
        """Wait for room, and return the first waiting item that has room, or None at the end.

        The item is removed from the list; its resources are held until `leave`.
        """
        with self._changed:
            while waiting and not self._closed:
                for at, (one, resources) in enumerate(waiting):
                    if self._take(resources):
                        del waiting[at]
                        return one
                self._changed.wait()
            return None

    def enter(self, resources: frozenset[Resource]) -> None:
        """Wait until there is room, and take it. Raises TaskTimeout if the limiter is closed."""
        with self._changed:
            while not self._closed and not self._take(resources):
                self._changed.wait()
            if self._closed:
                raise TaskTimeout("No further task was started: the run was given up")

    def leave(self, resources: frozenset[Resource], *, well: bool = True) -> None:
        """Release the room. A limit grows by one after as many successful tasks as it allows."""
        with self._changed:
            for resource in resources:
                gate = self._gate(resource)
                gate.busy -= 1
                gate.count(well)
            self._changed.notify_all()

    def back_off(self, resources: frozenset[Resource]) -> None:
        """Halve the limits: Proxmox VE did not answer, or a lock was not free in time."""
        with self._changed:
            for resource in resources:
                self._gate(resource).halve(self._now())

    def limits(self) -> Mapping[Resource, int]:
        """Return the present limit of each resource used so far."""
        with self._changed:
            found: dict[Resource, int] = {}
            for resource, gate in self._limiter.items():
                if gate.maximum:
                    found[resource] = gate.limit
            return found

    def close(self) -> None:
        """Admit no further task."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _take(self, resources: frozenset[Resource]) -> bool:
        gates = list(map(self._gate, resources))
        for gate in gates:
            if gate.is_full:
                return False
        for gate in gates:
            gate.busy += 1
        return True

    def _gate(self, resource: Resource) -> _Gate:
        if resource not in self._limiter:
            self._limiter[resource] = _Gate(getattr(self._limits_by_kind, resource[0]))
        return self._limiter[resource]


def within_limits(
    work: Callable[[Item], Outcome],
    items: Sequence[tuple[Item, frozenset[Resource]]],
    limits: ConcurrencyLimits,
    now: Callable[[], float],
) -> list[Outcome]:
    """Return the result of `work` for each item, in order.

    An item starts as soon as each of its resources has room. An exception ends the work.
    """
    limiter = ConcurrencyLimiter(limits, now)
    outcomes: dict[int, Outcome] = {}
    waiting: list[tuple[Any, frozenset[Resource]]] = []
    for at, (item, resources) in enumerate(items):
        waiting.append(((at, item, resources), resources))

    def worker() -> None:
        while True:
            first = limiter.first(waiting)
            if first is None:
                return
            at, item, resources = first
            try:
                outcomes[at] = work(item)
            finally:
                limiter.leave(resources)

    with closing(limiter):
        all_at_once(worker, min(limits.all or len(items), len(items)))
    return [outcomes[at] for at in range(len(items))]
