# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for many tasks with few requests: one list of a node tells of all that run there."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .._core.errors import FleetError
from .upid import Upid

if TYPE_CHECKING:
    from .reader import Reader

# Seconds for which a list will do at least and at most; between them, a share of what the youngest task was waited for.
SHORTEST_FRESH, LONGEST_FRESH, FRESH_SHARE = 0.08, 2.0, 0.1
ALONE_EVERY = 10.0  # seconds after which a task is asked for itself whatever the list says
MOST = 1000  # tasks in a list


class _Node:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked: dict[str, float] = {}  # when each task that is waited for was asked for itself, or joined
        self.joined: dict[str, float] = {}
        self.running: frozenset[str] | None = None  # None: it could not be told
        self.read_at = float("-inf")


class TaskBoard:
    """Which tasks run. What has ended, and how, only its own status tells; safe to use from several threads."""

    def __init__(self, client: Reader) -> None:
        self._client = client
        self._clock = client.clock
        self._nodes: dict[str, _Node] = {}
        self._lock = threading.Lock()

    def joins(self, task: Upid) -> None:
        """Note that somebody waits for a task."""
        node = self._node(task.node)
        with node.lock:
            node.joined[task.text] = node.asked[task.text] = self._clock.monotonic()

    def leaves(self, task: Upid) -> None:
        """Note that nobody waits for it any more."""
        node = self._node(task.node)
        with node.lock:
            node.joined.pop(task.text, None)
            node.asked.pop(task.text, None)

    def still_runs(self, task: Upid) -> bool:
        """Tell whether the node lists a task as running; False also where only the task itself can tell.

        A task that is waited for alone on its node is asked for itself: that costs no more.
        """
        node = self._node(task.node)
        with node.lock:
            now = self._clock.monotonic()
            if len(node.joined) < 2 or now - node.asked[task.text] >= ALONE_EVERY:
                node.asked[task.text] = now
                return False
            youngest = now - max(node.joined.values())
            if now - node.read_at > min(LONGEST_FRESH, max(SHORTEST_FRESH, youngest * FRESH_SHARE)):
                node.read_at = now
                node.running = self._read(task.node)
            if node.running is None:
                return False
            # A list from before it began does not tell; the next one will.
            return task.text in node.running or node.read_at < node.joined[task.text]

    def _read(self, node: str) -> frozenset[str] | None:
        try:
            rows = self._client.get("nodes", node, "tasks", source="active", limit=MOST, tries=1) or []
        except FleetError:
            return None
        return frozenset(str(row.get("upid")) for row in rows if not row.get("endtime"))

    def _node(self, name: str) -> _Node:
        with self._lock:
            return self._nodes.setdefault(name, _Node())
