# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan that check mode, diff mode and the run share: ordered steps and their changes.

Data only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """One request of a plan.

    `reread`: the next steps depend on facts that exist only after this step.
    """

    action: str
    summary: str
    method: str
    path: tuple[str | int, ...]
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    is_task: bool = True
    reread: bool = False
    timeout: int | None = None


@dataclass(frozen=True)
class Plan:
    """Ordered steps and their changes. An empty plan writes nothing."""

    steps: tuple[Step, ...] = ()
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    pending: tuple[str, ...] = ()  # keys that will wait for a stop when the plan is done
    warnings: tuple[str, ...] = ()
    blinds: bool = False  # whether the login may lose the right to read the resource
    label: str = ""  # of the resource, in a plan that is kept for its approval

    @property
    def changed(self) -> bool:
        return bool(self.steps)

    @property
    def summaries(self) -> list[str]:
        return [step.summary for step in self.steps]
