# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a fleet's run reports: each VM's outcome, sums, differences, and one failure for those that failed (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .._core.errors import FleetError, TaskFailed
from .._core.result import Result
from .carry import Outcome

# Of so many failures the message tells; the result has them all.
_TOLD = 5
_KINDS = ("created", "changed", "removed", "unchanged", "failed", "kept")


def report(outcomes: list[Outcome]) -> Result:
    """Return the result of the run; it fails where a VM failed."""
    rows = [row_of(outcome) for outcome in outcomes]
    counts = Counter(row["action"] for row in rows)
    values: dict[str, Any] = {"vms": rows, "summary": {kind: counts[kind] for kind in _KINDS}}
    diffs = [_headed(outcome) for outcome in outcomes if outcome.result is not None and outcome.result.changed]
    warnings = [line for outcome in outcomes if outcome.result is not None for line in outcome.result.warnings]
    if counts["kept"]:
        warnings.append(f"{counts['kept']} VMs that are not in the list were not removed, because others failed")
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    return Result(
        any(row["changed"] for row in rows),
        values,
        diffs or {"before": {}, "after": {}},
        tuple(dict.fromkeys(warnings)),
        failure(failed, len(outcomes)) if failed else None,
    )


def row_of(outcome: Outcome) -> dict[str, Any]:
    """Return what is told of one VM: what module vm returns of it, and which VM it is."""
    item, prepared = outcome.planned.item, outcome.planned.prepared
    wish = item.desired
    row: dict[str, Any] = {
        "name": wish.name,
        "vmid": wish.vmid,
        "node": None,
        "tenant": wish.tenant,
        "pruned": item.pruned,
        "changed": False,
        "failed": outcome.error is not None,
        "vm": None,
        "plan": prepared.plan.summaries if prepared is not None else [],
        "done": [],
    }
    known = prepared.actual if prepared is not None else None
    if known is not None:
        row.update(vmid=known.vmid, node=known.node, name=wish.name or known.name)
    if outcome.result is not None:
        row.update(outcome.result.values)
        vm = row["vm"] or {}
        row.update({key: vm[key] for key in ("vmid", "node", "name") if vm.get(key) is not None})
        row["changed"] = outcome.result.changed
    if outcome.error is not None:
        done = list(outcome.error.details.get("done", []))
        row.update(outcome.error.as_result(), done=done, changed=bool(done))
    row["action"] = _action(outcome, row)
    return row


def _action(outcome: Outcome, row: Mapping[str, Any]) -> str:
    if outcome.error is not None:
        return "failed"
    if outcome.result is None:
        return "kept"
    prepared = outcome.planned.prepared
    if not row["changed"] or prepared is None:
        return "unchanged"
    if prepared.draft is not None:
        return "created"
    return "removed" if outcome.planned.item.desired.state == "absent" else "changed"


def _headed(outcome: Outcome) -> dict[str, Any]:
    diff = outcome.result.diff if outcome.result is not None else None
    label = outcome.planned.item.desired.label
    found = dict(diff) if isinstance(diff, Mapping) else {"before": {}, "after": {}}
    return {"before_header": label, "after_header": label, **found}


def failure(failed: list[Outcome], number: int) -> FleetError:
    """Return the error of the run: that of its only VM, or one for all that failed of `number`."""
    errors = [outcome.error for outcome in failed if outcome.error is not None]
    first = errors[0]
    if number == 1:
        return first
    told = [_told(outcome) for outcome in failed[:_TOLD]]
    if len(failed) > _TOLD:
        told.append(f"And {len(failed) - _TOLD} more.")
    category = type(first) if len({type(error) for error in errors}) == 1 else TaskFailed
    return category(
        attempted=f"{len(failed)} of {number} VMs failed",
        answer=" ".join(told),
        next_step="Repair these and run again: what is done stays done",
        reason=first.reason if len({error.reason for error in errors}) == 1 else "some VMs failed",
        status=first.status if len(failed) == 1 else None,
        path=first.path if len(failed) == 1 else "",
        upid=first.upid if len(failed) == 1 else "",
        retryable=any(error.retryable for error in errors),
    )


def _told(outcome: Outcome) -> str:
    label, message = outcome.planned.item.desired.label, str(outcome.error)
    return message if label in message else f"{label}: {message}"
