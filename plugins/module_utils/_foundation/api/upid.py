# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task of Proxmox VE: its identity and its result (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.errors import ApiError


@dataclass(frozen=True)
class Upid:
    """The parts of a task's identity: `UPID:node:pid:pstart:starttime:type:id:user:`."""

    text: str
    node: str
    pid: int
    starttime: int
    type: str
    id: str
    user: str


@dataclass(frozen=True)
class TaskResult:
    """The result of a task that succeeded.

    `warnings` are the warnings in its log, `log` the last lines of the log (only with warnings).
    """

    upid: str
    node: str
    type: str
    exitstatus: str
    warnings: tuple[str, ...] = ()
    log: tuple[str, ...] = ()


def parse_upid(text: Any) -> Upid:
    """Return the parts of a UPID; raises ApiError for any other text."""
    parts = text.strip().split(":") if isinstance(text, str) else []
    try:
        if len(parts) != 9 or parts[0] != "UPID" or not parts[1]:
            raise ValueError
        return Upid(
            text.strip(),
            parts[1],
            int(parts[2], 16),
            int(parts[4], 16),
            parts[5],
            parts[6],
            parts[7],
        )
    except ValueError:
        raise ApiError(
            f"Could not follow a task: {text!r} is not a task ID",
            "Look at the task list of the node",
            "no UPID",
        ) from None


def is_upid(value: Any) -> bool:
    """Return whether an answer is the ID of a task."""
    return isinstance(value, str) and value.startswith("UPID:")
