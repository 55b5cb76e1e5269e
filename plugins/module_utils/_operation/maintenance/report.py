# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of module evacuation: rows, lines, steps and the differences (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..._foundation.cluster.state import VmRow
from ..._foundation.cluster.tenant import tenant_of
from ..._foundation.core.errors import Conflict, FleetError, NodeUnhealthy, TaskTimeout
from ..._foundation.core.failures.several import FailedGuest, failure_of_several
from ..._foundation.core.formatting import counted
from ..._foundation.core.result import Result
from ..._foundation.core.texts.plan_lines import CHANGED, FAILED, UNCHANGED, PlanLine, plan_lines
from ..._guests.guest.registry import list_of
from ..._infrastructure.node.record import NodeRecord
from .execute import MaintenanceOutcomes
from .model import HA, MIGRATE, RESTART, START, STAY, STOP, GuestDecision, MaintenanceOptions
from .times.estimate import duration, whole_time

_WORDS = {
    MIGRATE: "moves to node {target}",
    RESTART: "moves to node {target} with a restart",
    HA: "is moved by the HA manager",
    STOP: "is shut down, because it cannot leave",
    STAY: "cannot leave",
    START: "is started",
}
MOVES = (MIGRATE, RESTART)


@dataclass(frozen=True)
class MaintenanceProgress:
    """The decisions and finished steps of a task on its node."""

    options: MaintenanceOptions
    phase: str
    decisions: tuple[GuestDecision, ...] = ()
    resting: int = 0
    plan: tuple[str, ...] = ()
    outcomes: MaintenanceOutcomes = field(default_factory=MaintenanceOutcomes)


def row_of(decision: GuestDecision) -> dict[str, Any]:
    """Return the decision about a guest as the module reports it."""
    row = decision.row
    return {
        "kind": list_of(row.type).flow.key,
        "vmid": row.vmid,
        "name": row.own_name,
        "status": row.status,
        "action": decision.action,
        "target": decision.target or None,
        "reason": decision.why,
        "seconds": round(decision.seconds),
    }


def tenant_label(row: VmRow, prefix: str) -> str:
    """Return a guest as C(TENANT/NAME), without a tenant as its name."""
    name = row.own_name or f"{row.type} {row.vmid}"
    tenant, _why = tenant_of(row.tags, prefix)
    return f"{tenant}/{name}" if tenant else name


def line_of(
    decision: GuestDecision, options: MaintenanceOptions, outcomes: MaintenanceOutcomes
) -> PlanLine:
    """Return the line about a guest: its plan, or the outcome of the run."""
    label, vmid = tenant_label(decision.row, options.tenant_prefix), decision.row.vmid
    is_planned = options.check_mode or decision.action == STAY or vmid in outcomes.reached
    if not is_planned:
        error = outcomes.failed.get(vmid)
        if error is None:
            return PlanLine(UNCHANGED, label)
        return PlanLine(FAILED, label, f"not changed: {error.message}")
    reason = _WORDS[decision.action].format(target=decision.target)
    if decision.seconds:
        reason += f", about {duration(decision.seconds)}"
    if decision.why:
        reason += f": {decision.why}"
    action = FAILED if decision.action == STAY else CHANGED
    return PlanLine(action, label, reason)


def estimate(decisions: Iterable[GuestDecision], parallel: int) -> float:
    """Return the seconds until all moves are done."""
    return whole_time([one.seconds for one in decisions if one.action in MOVES], parallel)


def result_of(progress: MaintenanceProgress, failure: FleetError | None = None) -> Result:
    """Return the result of a task; `failure` is the error if it did only a part of its work."""
    options, decisions = progress.options, progress.decisions
    seconds = estimate(decisions, options.parallel)
    values: dict[str, Any] = {
        "evacuation": {
            "node": options.node,
            "phase": progress.phase,
            "guests": [row_of(one) for one in decisions],
            "resting": progress.resting,
            "seconds": round(seconds),
        },
        "report": _lines(progress, seconds),
        "plan": list(progress.plan),
        "done": progress.outcomes.done,
    }
    changed = bool(progress.plan if failure is None else progress.outcomes.done)
    diff = diff_of(options.node, decisions) if changed else {"before": {}, "after": {}}
    return Result(changed, values, diff, tuple(progress.outcomes.warnings), failure)


def _lines(progress: MaintenanceProgress, seconds: float) -> list[str]:
    """Return a line for each guest, one about the node, and the counts."""
    options = progress.options
    phase = "not in maintenance" if progress.phase == "none" else progress.phase
    about = f"  node {options.node}: {phase}"
    if any(one.action in MOVES for one in progress.decisions):
        about += f", about {duration(seconds)}"
    if progress.resting:
        about += f", without {counted(progress.resting, 'guest')} not running"
    rows = [line_of(one, options, progress.outcomes) for one in progress.decisions]
    return plan_lines(rows, check_mode=options.check_mode, more=[about])


def diff_of(node: str, decisions: Sequence[GuestDecision]) -> dict[str, Any]:
    """Return the places and states of guests before and after."""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for one in decisions:
        if one.action != STAY:
            before[one.label] = {"node": one.row.node, "status": one.row.status}
            after[one.label] = _after(node, one)
    return {"before": before, "after": after, "before_header": node, "after_header": node}


def _after(node: str, decision: GuestDecision) -> dict[str, str]:
    """Return the place and the state of a guest afterwards."""
    if decision.action == STOP:
        return {"node": node, "status": "stopped"}
    if decision.action == START:
        return {"node": node, "status": "running"}
    target = decision.target or "chosen by the HA manager"
    return {"node": target, "status": decision.row.status}


def blocked(attempted: str, blockers: Sequence[str], reason: str) -> NodeUnhealthy:
    """Return the error about moves that the state of the cluster does not allow now."""
    return NodeUnhealthy(
        f"{attempted}: {'; '.join(blockers)}",
        "Nothing was moved. Repair this, or wait, and run again",
        reason,
        details={"blockers": list(blockers)},
    )


def stuck(node: str, decisions: Sequence[GuestDecision], *, moved: bool) -> Conflict:
    """Return the error about the guests that cannot leave."""
    named = "; ".join(f"{one.label}: {one.why}" for one in decisions)
    begin = "Others have left" if moved else "Nothing was moved"
    step = f"{begin}. Repair this, or set unmovable to leave or shutdown, and run again"
    return Conflict(
        f"{counted(len(decisions), 'guest')} cannot leave node {node}: {named}",
        step,
        "unmovable guests",
        details={"guests": [row_of(one) for one in decisions]},
    )


class LabelledGuest(Protocol):
    """A guest with its row and its label in messages."""

    @property
    def row(self) -> VmRow: ...
    @property
    def label(self) -> str: ...


def failed(
    attempted: str, errors: Mapping[int, FleetError], rows: Iterable[LabelledGuest]
) -> FleetError:
    """Return one error for the guests that have failed, with their common category."""
    labels = {one.row.vmid: one.label for one in rows}
    failures = [FailedGuest(labels.get(vmid, str(vmid)), error) for vmid, error in errors.items()]
    failure = failure_of_several(failures, [one.label for one in failures])
    guests = [{"vmid": vmid, "reason": error.message} for vmid, error in errors.items()]
    return failure.on(attempted=attempted, details={**failure.details, "guests": guests})


def not_moved(decision: GuestDecision, timeout: int) -> TaskTimeout:
    """Return the error of a guest that the HA manager has left on the node."""
    return TaskTimeout(
        f"{decision.label} was not moved: the HA manager has not moved it after {timeout} s",
        "Look at the HA manager's status, then run this again: it continues from there",
        "HA has not done it",
    )


def merged(record: NodeRecord | None, fresh: NodeRecord, marks: Mapping[int, str]) -> NodeRecord:
    """Return the record with the guests that leave now; the state of the node stays unchanged."""
    if record is None or not record.version:
        return fresh
    return replace(
        record,
        phase=fresh.phase,
        guests={**marks, **record.guests},
        stopped=record.stopped | fresh.stopped,
        noout=record.noout or fresh.noout,
    )
