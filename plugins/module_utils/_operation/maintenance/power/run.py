# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module power: tier after tier, each complete before the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.state import fetch_cluster_state
from ...._foundation.core.errors import ConfigurationError, FleetError, NotApproved
from ...._foundation.core.formatting import counted
from ...._foundation.core.result import Result
from ...._foundation.core.texts.plan_lines import CHANGED, FAILED, UNCHANGED, PlanLine, plan_lines
from ...._foundation.resource.engine import after_writes
from ...._guests.guest.flow.apply import require_permitted
from ...._guests.guest.registry import list_of
from ...._guests.guest.start_order import LAST
from ..guests import fingerprint
from ..report import failed, tenant_label
from .execute import await_running_tasks, find_unhealthy, keep_plans, switch_tier
from .options import LEAVE, RECORDED, PowerOptions, read_options
from .plan import OrderedGuest, PowerEstate, name_of, plan_estate
from .record import read_stopped, write_stopped

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


@dataclass
class _PowerRun:
    """One run: its finished steps, the VMIDs of the guests that have reached the state in it, and
    the errors of others.
    """

    estate: PowerEstate
    reached: set[int] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    errors: dict[int, FleetError] = field(default_factory=dict)
    stopped_at: str = ""
    is_refused: bool = False  # whether the plan of a guest is not the approved one


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Start or stop the guests of tenants in tiers; check mode writes nothing.

    Raises FleetError.
    """
    options = read_options(params)
    recorded = _read_record(options)
    estate = plan_estate(client, options, recorded)
    if not check_mode:
        nodes = fetch_cluster_state(client.direct()).nodes  # a tenant's login may read it
        online = sorted(name for name, node in nodes.items() if node.online)
        vmids = {turn.row.vmid for turn in estate.turns}
        await_running_tasks(client, online, vmids, options.limits.task_timeout)
        estate = plan_estate(client, options, recorded)
    _require_planned(estate, options)
    work = _PowerRun(estate)
    if check_mode and options.unresponsive != LEAVE:
        require_permitted(client, [turn.planned.vm_plan for turn in estate.turns])
    if check_mode:
        for tier in estate.tiers:
            keep_plans(client, options, tier, estate.managed)
    else:
        _execute(client, options, work, recorded)
    return _result(options, work, check_mode)


def _read_record(options: PowerOptions) -> dict[int, str] | None:
    """Return the recorded guests, or None without a record. Raises ConfigurationError."""
    if not options.record:
        return None
    recorded = read_stopped(options.record)
    if recorded is None and options.starts and options.selection == RECORDED:
        raise ConfigurationError(
            f"The record {options.record} could not be used: there is no such file, so the guests "
            "that a stop has stopped are not known",
            "Correct the path, or set selection to onboot or all to start guests without a record",
            "no record",
        )
    return recorded


def _require_planned(estate: PowerEstate, options: PowerOptions) -> None:
    """Raise the errors of the guests without a plan, unless `unresponsive` is C(leave)."""
    if not estate.refused or options.unresponsive == LEAVE:
        return
    errors = {one.row.vmid: one.planned.error for one in estate.refused if one.planned is not None}
    found = {vmid: error for vmid, error in errors.items() if error is not None}
    raise failed(f"{counted(len(found), 'guest')} could not be planned", found, estate.refused)


def _execute(
    client: Client, options: PowerOptions, work: _PowerRun, recorded: Mapping[int, str] | None
) -> None:
    """Carry out the tiers in order. The record is written before the first guest stops, and emptied
    after the last one has started.
    """
    keeps_record = options.record and not options.starts
    if keeps_record and (work.estate.turns or recorded is None):
        marks = {turn.row.vmid: fingerprint(turn.actual) for turn in work.estate.turns}
        write_stopped(options.record, {**(recorded or {}), **marks})
    for tier in work.estate.tiers:
        with after_writes(work.done):
            errors = switch_tier(client, options, tier, work.estate.managed)
        reached = [turn for turn in tier if turn.row.vmid not in errors]
        work.reached |= {turn.row.vmid for turn in reached}
        work.done += [text for turn in reached for text in turn.summaries]
        if options.starts:
            with after_writes(work.done):
                errors |= find_unhealthy(client, options, reached)
        for error in errors.values():
            work.done += error.details.get("done", ())
        work.errors |= errors
        refused = [one for one in errors.values() if isinstance(one, NotApproved)]
        work.is_refused |= bool(refused)
        if len(errors) > len(refused) and options.unresponsive != LEAVE:
            work.stopped_at = name_of(tier)
            return
    if recorded and options.starts and not work.errors:
        write_stopped(options.record, {})


def _result(options: PowerOptions, work: _PowerRun, check_mode: bool) -> Result:
    turns = work.estate.turns
    plan = [text for turn in turns for text in turn.summaries]
    unchanged = {one.label: one.why for one in work.estate.refused}
    failure = None
    if work.stopped_at or work.is_refused:
        number = counted(len(work.errors), "guest")
        place = f" of the {work.stopped_at}" if work.stopped_at else ""
        attempted = f"{number}{place} did not become {options.state}"
        failure = failed(attempted, work.errors, turns)
    else:
        labels = {turn.row.vmid: turn.label for turn in turns}
        unchanged |= {labels[vmid]: error.message for vmid, error in work.errors.items()}
    values: dict[str, Any] = {
        "power": {
            "state": options.state,
            "tiers": [
                {
                    "order": None if tier[0].order == LAST else tier[0].order,
                    "guests": [_row_of(turn) for turn in tier],
                }
                for tier in work.estate.tiers
            ],
            "unchanged": sorted(unchanged),
        },
        "report": plan_lines(_lines(options, work, check_mode), check_mode=check_mode),
        "plan": plan,
        "done": work.done,
    }
    changed = bool(plan if failure is None else work.done)
    warnings = (
        *work.estate.warnings,
        *(f"{label} is unchanged: {why}" for label, why in unchanged.items()),
    )
    return Result(changed, values, _diff(options, turns), warnings, failure)


def _row_of(turn: OrderedGuest) -> dict[str, Any]:
    row = turn.row
    return {
        "kind": list_of(row.type).flow.key,
        "vmid": row.vmid,
        "name": row.own_name,
        "node": row.node,
        "status": turn.actual.status,
    }


def _diff(options: PowerOptions, turns: list[OrderedGuest]) -> dict[str, Any]:
    after = "running" if options.starts else "stopped"
    return {
        "before": {turn.label: turn.actual.status for turn in turns},
        "after": {turn.label: after for turn in turns},
    }


def _lines(options: PowerOptions, work: _PowerRun, check_mode: bool) -> list[PlanLine]:
    """Return one line for each guest, in the order of the run."""
    word, prefix = "start" if options.starts else "stop", options.limits.tenant_prefix
    lines: list[PlanLine] = []
    for number, tier in enumerate(work.estate.tiers, start=1):
        for turn in tier:
            label, error = tenant_label(turn.row, prefix), work.errors.get(turn.row.vmid)
            if error is not None:
                lines.append(PlanLine(FAILED, label, f"not changed: {error.message}"))
            elif check_mode or turn.row.vmid in work.reached:
                reason = f"{word} in tier {number}, {name_of(tier)}"
                lines.append(PlanLine(CHANGED, label, reason))
            else:  # the run ended at a tier before it
                lines.append(PlanLine(UNCHANGED, label))
    for one in work.estate.refused:
        label = tenant_label(one.row, prefix)
        lines.append(PlanLine(FAILED, label, f"not changed: {one.why}"))
    return lines
