# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines that report a run of module snapshot to a person (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

# This many steps are listed; the rows of the VMs have all of them.
_STEPS = 50


def lines_of(rows: Sequence[Mapping[str, Any]], *, check_mode: bool) -> list[str]:
    """Return the number of VMs by outcome, and the executed steps; in check mode the planned
    steps.
    """
    lines = [_headline(rows, check_mode)]
    steps: list[str] = []
    for row in rows:
        steps += row["plan"] if check_mode else row["done"]
    lines += steps[:_STEPS]
    if len(steps) > _STEPS:
        lines.append(f"and {len(steps) - _STEPS} more steps")
    return lines


def _headline(rows: Sequence[Mapping[str, Any]], check_mode: bool) -> str:
    counts = Counter(map(_outcome, rows))
    parts = [f"{name} {counts[name]}" for name in ("changed", "unchanged", "failed")]
    total = ", ".join(part for part in parts if not part.endswith(" 0"))
    if not rows:
        total = "there is no VM to work on"
    if check_mode:
        return f"Preview: {total}"
    return total


def _outcome(row: Mapping[str, Any]) -> str:
    if row["failed"]:
        return "failed"
    if row["changed"]:
        return "changed"
    return "unchanged"
