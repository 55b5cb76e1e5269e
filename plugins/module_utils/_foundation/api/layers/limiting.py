# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layers that limit concurrent tasks and report failures to the limit."""

from __future__ import annotations

from typing import Any

from ...core.errors import Locked, NetworkError
from ..protocols import Limit, Progress, Sender, TaskRunner, Waiter
from ..request import Request
from ..upid import TaskResult


class LimitedRequests:
    """Reports each lock and each failure of the server to the limit."""

    def __init__(self, below: Sender, limit: Limit) -> None:
        self._below = below
        self._limit = limit

    def send(self, request: Request) -> Any:
        """Return `data` of the answer. Raises FleetError."""
        try:
            return self._below.send(request)
        except (NetworkError, Locked) as error:
            if isinstance(error, Locked) or (error.status or 0) >= 500:
                self._limit.note_failure(error)
            raise


class LimitedWaiter:
    """Reports a task that failed because of a lock to the limit."""

    def __init__(self, below: Waiter, limit: Limit) -> None:
        self._below = below
        self._limit = limit

    def wait(
        self, upid: str, timeout: float, attempted: str, progress: Progress | None = None
    ) -> TaskResult:
        """Return the result of a task. Raises the error of its exit status, or TaskTimeout."""
        try:
            return self._below.wait(upid, timeout, attempted, progress)
        except Locked as error:
            self._limit.note_failure(error)
            raise


class LimitedTasks:
    """Starts a task when the limit has room for it."""

    def __init__(self, below: TaskRunner, limit: Limit) -> None:
        self._below = below
        self._limit = limit

    def run(self, request: Request, timeout: float) -> TaskResult:
        """Start a task with a write, and return its result. Raises FleetError."""
        with self._limit.admit(request.segments, request.values):
            return self._below.run(request, timeout)
