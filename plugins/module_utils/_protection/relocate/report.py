# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of module relocate (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._foundation.core.failures.several import FailedGuest, failure_of
from ..._foundation.core.formatting import counted
from ..._foundation.core.quantities import readable_size
from ..._foundation.core.result import Result
from ..._foundation.core.texts.plan_lines import CHANGED, FAILED, PlanLine, plan_lines
from ..._foundation.core.times import iso
from ..._guests.fleet.reservations import row_of
from ..._guests.guest.plan.capacity import moved_bytes
from ..._guests.kinds.model import Actual
from ..._guests.kinds.move import ARCHIVE, MOVING, ONLINE
from ..._operation.maintenance.times.estimate import OVERHEAD, duration, whole_time
from .belongings import find_left_behind
from .chain import describe_backup
from .decide import HOLD, SOURCE, TARGET
from .places import tenant_in
from .resource import MoveContext, MoveOutcome

PLANNED, HELD, ROOT, WAITS = "planned", "held", "root", "waits"
COMPLETE, AT_SOURCE = "complete", "at source"


def result_of(
    context: MoveContext,
    outcomes: Sequence[tuple[Actual, MoveOutcome]],
    complete: int,
    *,
    check_mode: bool,
) -> Result:
    """Return the result of a task, with the failure of failed guests. `complete` is the number of
    guests whose move was complete before.
    """
    rows = [_row(context, actual, one, check_mode) for actual, one in outcomes]
    failures: list[FailedGuest] = []
    for actual, one in outcomes:
        if one.error is not None:
            failures.append(FailedGuest(actual.label, one.error))
    labels = [actual.label for actual, _one in outcomes]
    plan = [step for _actual, one in outcomes for step in one.plan]
    done = [step for _actual, one in outcomes for step in one.done]
    commands = [row["command"] for row in rows if row["command"] is not None]
    lines: list[PlanLine] = []
    more: list[str] = []
    for row, (_actual, one) in zip(rows, outcomes, strict=True):
        line = _line(row)
        if one.plan or one.error is not None:
            lines.append(line)
        else:
            more.append(f"  {line.label}  {line.reason}")
    more += [f"  root on {one['place']}: {one['command']}" for one in commands]
    if complete:
        more.append(f"  {counted(complete, 'guest')} moved before")
    planned = [
        row
        for row, (_actual, one) in zip(rows, outcomes, strict=True)
        if one.sides.destination is not None and row["outcome"] in (PLANNED, WAITS)
    ]
    more += _estimate(context, planned)
    report = plan_lines(lines, check_mode=check_mode, more=more)
    values: dict[str, Any] = {
        "guests": rows,
        "commands": commands,
        "report": report,
        "plan": plan,
        "done": done,
    }
    values["complete"] = complete
    failure = failure_of(failures, labels)
    changed = bool(plan if check_mode else done)
    return Result(changed, values, {"before": [], "after": plan}, failure=failure)


def _row(
    context: MoveContext, actual: Actual, one: MoveOutcome, check_mode: bool
) -> dict[str, Any]:
    sides, source, target = one.sides, one.sides.source.state, one.sides.target.state
    nodes = sides.replica_nodes
    record = target.record or source.record or sides.record
    ends = record.since + context.desired.hold if one.verdict.step == HOLD else 0
    command: dict[str, Any] | None = None
    if one.command is not None:
        site = context.sites[one.command.at]
        place = f"{site}/{one.command.node}"
        command = {"site": site, "node": one.command.node, "place": place}
        command["command"] = one.command.command
    return {
        "vmid": sides.source.vmid or record.source,
        "type": actual.kind.type,
        "name": actual.name,
        "tenant": tenant_in(actual, context.desired.filter.owner.prefix),
        "outcome": _outcome(one, check_mode),
        "side": one.verdict.side,
        "mode": record.mode,
        "new_vmid": sides.target.vmid or None,
        "node": sides.target.node or None,
        "bytes": sum(moved_bytes(actual.kind, actual.target, ()).values()),
        "seconds": seconds_of(context, one, actual),
        "left_behind": find_left_behind(sides.belongings, sides.target.objects, sides.join, nodes),
        "backup": _backup(context, actual, one),
        "held_until": iso(ends),
        "command": command,
        "proof": one.proof,
        "msg": one.error.message if one.error is not None else None,
    }


def seconds_of(context: MoveContext, one: MoveOutcome, actual: Actual) -> int | None:
    """Return the estimated seconds of a move that is planned, None if no rate is known. The memory
    that a running VM writes during its move is not known.
    """
    desired = context.desired
    rates = [rate for rate in (desired.rate, (desired.bwlimit or 0) << 10) if rate]
    if one.sides.destination is None or not rates:
        return None
    size = sum(moved_bytes(actual.kind, actual.target, ()).values())
    if one.sides.record.mode == ONLINE:
        size += actual.kind.figures_of(actual.live).memory
    elif one.sides.record.mode == ARCHIVE:
        size *= 2  # it is written to the archive, and read from it
    return int(OVERHEAD) + -(-size // min(rates))


def _estimate(context: MoveContext, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the line about the size and the time of the moves that are planned."""
    desired = context.desired
    size = sum(row["bytes"] for row in rows)
    if not size:
        return []
    known = [row["seconds"] for row in rows if row["seconds"] is not None]
    text = "its time is not known without transfer_rate or bwlimit"
    if known:
        # the moves share the link
        shared = size / desired.rate if desired.rate else 0.0
        longest = max(shared, whole_time(known, desired.limits.all or len(known)))
        text = f"about {duration(longest)}, without the memory that VMs write during their moves"
    windows = f", in the windows {', '.join(desired.windows)}" if desired.windows else ""
    return [f"  to copy: {readable_size(size)}, {text}{windows}"]


def _backup(context: MoveContext, actual: Actual, one: MoveOutcome) -> str | None:
    """Return the backup after the move of a guest that is still at its source."""
    sides = one.sides
    if not sides.source.state.exists or not sides.target.vmid:
        return None
    row = row_of(
        actual.kind,
        actual.target,
        vmid=sides.target.vmid,
        node=sides.target.node,
        pool=sides.pool or None,
        status=actual.status,
    )
    here, there = context.objects[SOURCE], context.objects[TARGET]
    return describe_backup(row, sides.source.vmid, here, there, context.storages)


def _outcome(one: MoveOutcome, check_mode: bool) -> str:
    if one.error is not None:
        return FAILED
    if one.waits:
        return WAITS
    if one.busy:
        return MOVING
    if check_mode and one.plan:
        return PLANNED
    if one.command is not None:
        return ROOT
    if one.verdict.step == HOLD:
        return HELD
    return AT_SOURCE if one.sides.source.state.exists else COMPLETE


def _line(row: Mapping[str, Any]) -> PlanLine:
    label = f"{row['tenant']}/{row['name']}" if row["tenant"] else str(row["name"])
    if row["msg"]:
        return PlanLine(FAILED, label, str(row["msg"]))
    place = f" as {row['new_vmid']} on {row['node']}" if row["node"] else ""
    left = f", without {', '.join(row['left_behind'])}" if row["left_behind"] else ""
    is_ahead = row["outcome"] in (PLANNED, WAITS)
    size = f", {row['mode']}, {readable_size(row['bytes'])}" if is_ahead else ""
    until = f" until {row['held_until']}" if row["outcome"] == HELD else ""
    outcome = "waits for root" if row["outcome"] == ROOT else row["outcome"]
    backup = f", backup {row['backup']}" if row["backup"] and size else ""
    text = f"{outcome}{until}{place}{size}{left}{backup}"
    return PlanLine(CHANGED, label, text)
