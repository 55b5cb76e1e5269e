# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shortens the rows of a failed task, which Ansible prints in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The printed rows of each list of a failed result.
MAX_ROWS = 10


def is_read(task: Any) -> bool:
    """Return whether a play can read the result of a failed task: from a registered variable, or in
    C(rescue) or C(always) of a block.
    """
    if task.register:
        return True
    parent = task._parent
    while parent is not None:
        if getattr(parent, "rescue", None) or getattr(parent, "always", None):
            return True
        parent = getattr(parent, "_parent", None)
    return False


def shortened(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a failed result in which each long list, also in its error, has only a few rows.

    A warning counts the other rows.
    """
    own = _short_lists(result)
    short = {**result, **own}
    error = result.get("error")
    if isinstance(error, Mapping):
        short["error"] = {**error, **_short_lists(error)}
    omitted = [f"{len(result[name]) - len(rows)} of {name}" for name, rows in own.items()]
    if omitted:
        text = (
            f"Rows that are not printed: {', '.join(omitted)}. Register the result to use them, or"
            " print them with -v."
        )
        short["warnings"] = [*result.get("warnings", ()), text]
    return short


def _short_lists(values: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the printed rows of each long list: only failed rows, if any are marked as failed."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for name, rows in values.items():
        if name == "diff" or not isinstance(rows, list) or len(rows) <= MAX_ROWS:
            continue
        if all(isinstance(row, Mapping) for row in rows):  # a text is not a row
            failures = [row for row in rows if row.get("failed")]
            found[name] = (failures or rows)[:MAX_ROWS]
    return found
