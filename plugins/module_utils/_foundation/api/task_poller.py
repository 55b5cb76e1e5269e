# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for many tasks with few requests: one list contains all running tasks of a node."""

from __future__ import annotations

import threading

from ..core.errors import FleetError
from .protocols import Reader
from .upid import Upid

# Bounds in seconds after which a list is read again; between them, a share of the youngest wait.
SHORTEST_FRESH, LONGEST_FRESH, FRESH_SHARE = 0.06, 2.0, 0.05
ALONE_EVERY = 10.0  # seconds after which a task's own status is read in any case
MAXIMUM = 1000  # tasks in a list


class _Node:
    """The awaited tasks of one node. Times are the clock's, in seconds."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.joined: dict[str, float] = {}  # when the wait for each task began
        self.last_read: dict[str, float] = {}  # when each task's own status was last read
        self.running: frozenset[str] | None = None  # None if the list could not be read
        self.read_at = float("-inf")

    def is_due(self, task: str, now: float) -> bool:
        """Return whether the task's own status must be read.

        If only one task of a node is awaited, its own status costs no more than the list.
        """
        return len(self.joined) < 2 or now - self.last_read[task] >= ALONE_EVERY

    def is_stale(self, now: float) -> bool:
        """Return whether the list must be read again."""
        youngest = now - max(self.joined.values())
        fresh = max(SHORTEST_FRESH, youngest * FRESH_SHARE)
        return now - self.read_at > min(LONGEST_FRESH, fresh)


class TaskPoller:
    """Shows which tasks run, with one list for each node. Safe to use from several threads.

    The end of a task, and its result, is read from the task's own status.
    """

    def __init__(self, client: Reader) -> None:
        self._client = client
        self._clock = client.clock
        self._nodes: dict[str, _Node] = {}
        self._lock = threading.Lock()

    def joins(self, task: Upid) -> None:
        """Note that a task is awaited."""
        node = self._node(task.node)
        with node.lock:
            now = self._clock.monotonic()
            node.joined[task.text] = now
            node.last_read[task.text] = now

    def leaves(self, task: Upid) -> None:
        """Note that a task is no longer awaited."""
        node = self._node(task.node)
        with node.lock:
            node.joined.pop(task.text, None)
            node.last_read.pop(task.text, None)

    def still_runs(self, task: Upid) -> bool:
        """Return whether the node lists a task as running.

        Also False if the task's own status must be read.
        """
        node = self._node(task.node)
        with node.lock:
            now = self._clock.monotonic()
            if node.is_due(task.text, now):
                node.last_read[task.text] = now
                return False
            if node.is_stale(now):
                node.read_at = now
                node.running = self._read(task.node)
            if node.running is None:
                return False
            # A list that is older than the task does not contain it; the next list will.
            is_older = node.read_at < node.joined[task.text]
            return is_older or task.text in node.running

    def _read(self, node: str) -> frozenset[str] | None:
        """Return the UPIDs of the tasks that run on a node, or None if they cannot be listed."""
        path = ("nodes", node, "tasks")
        try:
            rows = self._client.get(*path, source="active", limit=MAXIMUM, tries=1) or []
        except FleetError:
            return None
        return frozenset(str(row.get("upid")) for row in rows if not row.get("endtime"))

    def _node(self, name: str) -> _Node:
        with self._lock:
            return self._nodes.setdefault(name, _Node())
