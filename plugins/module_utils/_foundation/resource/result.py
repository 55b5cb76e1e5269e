# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The form of the result of one resource (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.result import Result
from .execute import Execution
from .plan import Plan


def result_of(
    plan: Plan, values: Mapping[str, Any], execution: Execution | None = None, *, header: str = ""
) -> Result:
    """Return the result of one resource: `values`, the planned steps and the finished steps.

    The warnings of the plan are listed before the warnings of its execution.
    """
    carried_out = execution or Execution()
    reported = {**values, "plan": plan.summaries, "done": list(carried_out.done)}
    warnings = (*plan.warnings, *carried_out.warnings)
    return Result(plan.changed, reported, diff_of(plan, header), warnings)


def diff_of(plan: Plan, header: str = "") -> dict[str, Any]:
    """Return the diff of a plan, as modules report it; if something changes, `header` names the
    object.
    """
    diff: dict[str, Any] = {"before": dict(plan.before), "after": dict(plan.after)}
    if header and plan.changed:
        diff["before_header"] = diff["after_header"] = header
    return diff
