# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What waiting for tasks needs of a client: to read, and to know the time."""

from __future__ import annotations

from typing import Any, Protocol

from .._core.clock import Clock


class Reader(Protocol):
    """Somebody who can ask Proxmox VE; `Client` can."""

    @property
    def clock(self) -> Clock:
        """The clock to wait by."""

    def get(self, *segments: str | int, tries: int | None = None, **query: Any) -> Any:
        """Return the answer to a GET of the path that the segments make. Raises FleetError."""
