# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of module failover (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...._foundation.core.errors import FleetError
from ...._foundation.core.failures.several import FailedGuest, failure_of_several
from ...._foundation.core.result import Result
from ...._foundation.core.texts.plan_lines import (
    CREATED,
    FAILED,
    UNCHANGED,
    PlanLine,
    plan_lines,
    with_lines,
)
from ...._foundation.core.times import iso
from ...._guests.guest.plan.archive import warn_of_unsaved
from ...._guests.guest.start_order import LAST
from ..drill.create import CopyResult, DrillContext
from .desired import DesiredFailover
from .execute import FailoverResult, empty_result
from .plan import KEEP, FailoverPlan, PlannedRecovery

PLANNED, UP, RESTORED = "planned", "up", "restored"
_COPY = {"copy_vmid": "new_vmid", "copy_name": "new_name"}


def preview(desired: DesiredFailover, plan: FailoverPlan, context: DrillContext) -> Result:
    """Return the result of a plan that was not executed."""
    rows: list[dict[str, Any]] = []
    for one in plan.guests:
        row = _row(one, empty_result(one), context)
        place = {"new_vmid": one.vmid, "new_name": one.name, "node": one.node}
        if one.refusal is not None:
            outcome = FAILED
        else:
            outcome = UNCHANGED if one.action == KEEP else PLANNED
        rows.append({**row, **place, "outcome": outcome})
    values = _values(desired, plan, context, rows, check_mode=True)
    failure = _failure([(one, one.refusal) for one in plan.guests])
    return Result(bool(plan.steps), values, _diff(plan), _warnings(plan), failure=failure)


def report(
    desired: DesiredFailover,
    plan: FailoverPlan,
    context: DrillContext,
    result: FailoverResult,
    seconds: float,
) -> Result:
    """Return the result of a run that took these seconds, with the failure of failed guests."""
    rows = [
        {**_row(one, guest, context), "outcome": _outcome(one, guest)}
        for one, guest in result.guests
    ]
    failure = _failure([(one, guest.error) for one, guest in result.guests])
    values = _values(desired, plan, context, rows, check_mode=False)
    age = values["recovery_point"]
    oldest = "" if age is None else f", the oldest data is {age} s old"
    times = [f"  the guests were up after {round(seconds)} s{oldest}"]
    values |= {"done": result.done, "recovery_time": round(seconds)}
    values["report"] = with_lines(values["report"], times)
    return Result(bool(result.done), values, _diff(plan), _warnings(plan), failure=failure)


def _failure(guests: Sequence[tuple[PlannedRecovery, FleetError | None]]) -> FleetError | None:
    """Return the error of the guests that failed, None if none did."""
    labels = [one.incoming.label for one, _error in guests]
    failures = [
        FailedGuest(one.incoming.label, error) for one, error in guests if error is not None
    ]
    return failure_of_several(failures, labels) if failures else None


def _row(one: PlannedRecovery, result: CopyResult, context: DrillContext) -> dict[str, Any]:
    row = {_COPY.get(key, key): value for key, value in result.as_row(context).items()}
    order = one.incoming.order
    return {**row, "order": None if order == LAST else order}


def _outcome(one: PlannedRecovery, result: CopyResult) -> str:
    if result.error is not None:
        return FAILED
    if one.action == KEEP:
        return UNCHANGED
    return UP if one.incoming.starts else RESTORED


def _values(
    desired: DesiredFailover,
    plan: FailoverPlan,
    context: DrillContext,
    rows: Sequence[Mapping[str, Any]],
    *,
    check_mode: bool,
) -> dict[str, Any]:
    left_out: list[dict[str, Any]] = []
    more: list[str] = []
    for chosen, reason in plan.chosen.skipped:
        vmid, name = chosen.archive.vmid, chosen.name
        left_out.append({"vmid": vmid, "name": name, "reason": reason})
        more.append(f"  {name or vmid} is left out: {reason}")
    ages = [int(row["archive_age"]) for row in rows]
    return {
        "run": desired.run,
        "began": iso(context.now),
        "rehearsal": desired.rehearsal,
        "guests": list(rows),
        "moves": [],
        "left_out": left_out,
        "recovery_point": max(ages, default=None),
        "recovery_time": None,
        "report": plan_lines([_line(row) for row in rows], check_mode=check_mode, more=more),
        "plan": list(plan.steps),
        "done": [],
    }


def _warnings(plan: FailoverPlan) -> tuple[str, ...]:
    """Return a warning about each guest with disks whose data is not in its archive, or one that
    there is no guest: all are excluded, or have been moved to their replicas.
    """
    warnings: list[str] = []
    if not plan.guests:
        warnings.append("No guest comes up: all are excluded, or have left the lost nodes")
    for one in plan.guests:
        chosen = one.incoming.chosen
        if chosen.unsaved:
            warnings += warn_of_unsaved(chosen.kind, one.incoming.label, chosen.config)
    return tuple(warnings)


def _line(row: Mapping[str, Any]) -> PlanLine:
    name = row["name"] or f"{row['type']} {row['vmid']}"
    label = f"{row['tenant']}/{name}" if row.get("tenant") else name
    if row["msg"]:
        return PlanLine(FAILED, label, f"{row['outcome']}: {row['msg']}")
    action = UNCHANGED if row["outcome"] == UNCHANGED else CREATED
    left_out = ", ".join(row["left_out"])
    without = f", without the data of {left_out}" if left_out else ""
    reason = (
        f"{row['outcome']} as {row['new_vmid']} on {row['node']}, from {row['volume']}{without}"
    )
    return PlanLine(action, label, reason)


def _diff(plan: FailoverPlan) -> dict[str, list[str]]:
    return {"before": [], "after": list(plan.steps)}
