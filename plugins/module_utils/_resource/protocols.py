# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interface that the engine needs of a client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from .._api.protocols import Reader

if TYPE_CHECKING:
    from .._api.upid import TaskResult


class Api(Reader, Protocol):
    """Reads and writes under the rules for writes; `Client` does."""

    @property
    def login(self) -> str:
        """The user, or the whole name of the token, that the task logs in as."""

    def get(
        self,
        *segments: str | int,
        params: Mapping[str, Any] | None = None,
        tries: int | None = None,
        attempted: str = "",
        **query: Any,
    ) -> Any:
        """Return the answer to a GET of the path that the segments make. Raises FleetError."""

    def write(
        self,
        method: str,
        *segments: str | int,
        data: Mapping[str, Any] | None = None,
        attempted: str = "",
        confirm: Callable[[], Any] | None = None,
        again: Callable[[], None] | None = None,
    ) -> Any:
        """Return the answer to a write; `confirm` looks after a lost answer, and `again` may raise
        before the write is sent once more. Raises FleetError.
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
        """Return how the task ended that a write started. Raises FleetError."""

    def note(self, summary: str) -> None:
        """Keep a note of a step that was carried out."""

    def version(self) -> tuple[int, int]:
        """Return major and minor number of Proxmox VE; asked once."""
