# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base of the layers that requests pass through on their way to Proxmox VE."""

from __future__ import annotations

from typing import Generic, TypeVar

from ..endpoint import Endpoint
from ..protocols import Connected, Row

Below = TypeVar("Below", bound=Connected)


class Layer(Generic[Below]):
    """A layer around the layer below, with its connections. A subclass adds `send`."""

    def __init__(self, below: Below) -> None:
        self._below = below

    @property
    def has_answered(self) -> bool:
        """Whether the endpoint has ever answered."""
        return self._below.has_answered

    @property
    def endpoint(self) -> Endpoint:
        """The server of the next request: the first one that was reached."""
        return self._below.endpoint

    @property
    def rows(self) -> list[Row]:
        """The record of the requests sent so far."""
        return self._below.rows

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        self._below.close()
