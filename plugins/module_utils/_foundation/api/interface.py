# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interface of a client that the engine needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from .protocols import Reader

if TYPE_CHECKING:
    from .upid import TaskResult


class Api(Reader, Protocol):
    """Reads and writes under the rules for writes; `Client` does."""

    @property
    def login(self) -> str:
        """The user, or the full name of the token, of the task."""

    def get(
        self,
        *segments: str | int,
        params: Mapping[str, Any] | None = None,
        tries: int | None = None,
        attempted: str = "",
        **query: Any,
    ) -> Any:
        """Return the answer to a GET of the path with these segments. Raises FleetError."""

    def write(
        self,
        method: str,
        *segments: str | int,
        data: Mapping[str, Any] | None = None,
        attempted: str = "",
        confirm: Callable[[], Any] | None = None,
        again: Callable[[], None] | None = None,
    ) -> Any:
        """Return the answer to a write; `confirm` checks the state after a lost answer, and `again`
        may raise before the write is sent once more. Raises FleetError.
        """

    def task(
        self,
        method: str,
        *segments: str | int,
        data: Mapping[str, Any] | None = None,
        attempted: str = "",
        timeout: float = 300.0,
        confirm: Callable[[], Any] | None = None,
    ) -> TaskResult:
        """Start a task with a write, and return its result. Raises FleetError."""

    def note(self, summary: str) -> None:
        """Record a step that was carried out."""

    def privileges(self) -> Mapping[str, Any]:
        """Return the privileges of the login by path; read once in a task."""

    def version(self) -> tuple[int, int]:
        """Return major and minor number of Proxmox VE; read once."""

    def release(self) -> tuple[int, ...]:
        """Return all numbers of the version of Proxmox VE; read once."""
