# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocols between the layers of a client: a layer uses the layer below only through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..core.clock import Clock
from ..core.errors import FleetError
from .endpoint import Endpoint
from .request import Request
from .upid import TaskResult

Row = tuple[str, str, int, float, int]
"""Method, path, status (0 without an answer), milliseconds, number of the try."""

Progress = Callable[[str, float, str], None]
"""Called as `progress(upid, seconds waited, last known status)` after each poll of a running
task.
"""


class Notes(Protocol):
    """Records finished steps and running tasks, to be reported if the Ansible task is
    interrupted.
    """

    def began(self, upid: str) -> None:
        """Note that a task of Proxmox VE runs."""

    def ended(self, upid: str) -> None:
        """Note that a task of Proxmox VE has ended."""

    def step(self, summary: str) -> None:
        """Note a step that was carried out."""

    def about(self, label: str) -> Notes:
        """Return the notes about one of several VMs."""

    def complete(self) -> None:
        """Note that the work on this VM is complete."""


class Reader(Protocol):
    """Reads from Proxmox VE; `Client` does."""

    @property
    def clock(self) -> Clock:
        """The clock for waiting."""

    def get(self, *segments: str | int, tries: int | None = None, **query: Any) -> Any:
        """Return `data` of a GET on the path of these segments. Raises FleetError."""


class Sender(Protocol):
    """A layer that requests pass through."""

    def send(self, request: Request) -> Any:
        """Return `data` of the answer. Raises FleetError."""


class Transport(Sender, Protocol):
    """A layer below the retries, with the connections: each `send` is one try."""

    @property
    def has_answered(self) -> bool:
        """Whether the endpoint has ever answered."""

    @property
    def endpoint(self) -> Endpoint:
        """The server of the next request: the first one that was reached."""

    @property
    def rows(self) -> list[Row]:
        """The record of the requests sent so far."""

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""


class Waiter(Protocol):
    """A layer that waits for tasks."""

    def wait(
        self, upid: str, timeout: float, attempted: str, progress: Progress | None = None
    ) -> TaskResult:
        """Return the result of a task. Raises the error of its exit status, or TaskTimeout."""


class TaskRunner(Protocol):
    """A layer that starts tasks and waits for them."""

    def run(self, request: Request, timeout: float) -> TaskResult:
        """Start a task with a write, and return its result. Raises FleetError."""


class Limit(Protocol):
    """Limits concurrent tasks."""

    def admit(
        self, path: tuple[str | int, ...], data: Mapping[str, Any]
    ) -> AbstractContextManager[Any]:
        """Hold a task back until there is room for it.

        `path` and `data` belong to its first request.
        """

    def note_failure(self, error: FleetError) -> None:
        """Note a lock or a failure of the server."""
