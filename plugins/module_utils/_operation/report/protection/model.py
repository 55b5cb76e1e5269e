# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The copies that protect a VM (data)."""

from __future__ import annotations

from dataclasses import dataclass

from ...._foundation.core.errors import FleetError


@dataclass(frozen=True)
class CopySummary:
    """Snapshots or backups of one VM: their number, and the time of the newest.

    The time is in seconds since the epoch, 0 without any. `uncertainty` is the reason why
    more or newer ones may exist.
    """

    number: int
    newest: int
    uncertainty: FleetError | None = None
