# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer for answers that are only shown: their texts contain no control characters."""

from __future__ import annotations

from typing import Any

from ...core.formatting import printable_data
from ..protocols import Sender
from ..request import Request


class PrintableLayer:
    """Replaces control characters in the texts of each answer."""

    def __init__(self, below: Sender) -> None:
        self._below = below

    def send(self, request: Request) -> Any:
        """Return `data` of the answer. Raises FleetError."""
        return printable_data(self._below.send(request))
