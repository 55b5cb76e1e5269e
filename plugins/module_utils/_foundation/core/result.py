# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of one run of a module, in the form for its entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import FleetError

Diff = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """Whether something changed, the resource (`values`, for example `{"vm": {...}}`), the diff and
    warnings.

    `diff` is `{"before": ..., "after": ...}` of plain data, or a list of them. `failure` is the
    error of a task that did a part of its work: the task fails and still returns the other values.
    A step that it started counts as a change.
    """

    changed: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)
    diff: Diff | Sequence[Diff] | None = None
    warnings: tuple[str, ...] = ()
    failure: FleetError | None = None

    def as_dict(self, diff: bool = False) -> dict[str, Any]:
        """Return the arguments for `exit_json`, with `diff` only if it was requested.

        The warnings are not included.
        """
        has_started = self.failure is not None and self.failure.came_after_changes
        result: dict[str, Any] = {"changed": self.changed or has_started, **self.values}
        if diff and self.diff is not None:
            if isinstance(self.diff, Mapping):
                result["diff"] = dict(self.diff)
            else:
                result["diff"] = [dict(one) for one in self.diff]
        if self.failure is not None:
            result.update(self.failure.as_result())
        return result
