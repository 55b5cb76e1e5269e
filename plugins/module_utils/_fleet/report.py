# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a fleet's run reports: a row a VM, counts, lines, differences, and one failure (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import FleetError, failure_of_several
from .._core.result import Result
from .._vm.describe import conditions_of_failure
from .._vm.report import WAITS_FOR_STOP
from .execute import Outcome
from .listed import read_tenants
from .power_turns import restarts
from .summary import ACTIONS, lines_of

# The message names this many of the VMs that failed; the result has all of them.
_SHOWN = 5
# The lines of a refused list name this many mistakes.
_SHOWN_CAUSES = 20
# What a row is of a VM that nothing was done to because the run failed before.
_NOT_WORKED_ON: Mapping[str, Any] = {
    "vmid": None,
    "node": None,
    "status": None,
    "action": "failed",
    "changed": False,
    "failed": True,
    "pruned": False,
    "pending": [],
    "rebooted": False,
}
_SHORT = (
    "name",
    "tenant",
    "vmid",
    "node",
    "status",
    "action",
    "changed",
    "failed",
    "pruned",
    "pending",
    "rebooted",
)


def report(
    outcomes: list[Outcome],
    *,
    check_mode: bool = False,
    details: bool = True,
) -> Result:
    """Return the result of the run; it fails where a VM failed.

    Without `details` a row has only the outcome of the VM.
    """
    rows: list[dict[str, Any]] = []
    errors: dict[int, FleetError] = {}
    messages: list[str] = []
    diffs: list[dict[str, Any]] = []
    for index, outcome in enumerate(outcomes):
        rows.append(row_of(outcome))
        if outcome.error is not None:
            errors[index] = outcome.error
            messages.append(_cause(outcome, outcome.error))
        if outcome.result is not None and outcome.result.changed:
            diffs.append(_headed(outcome, outcome.result))
    counts = Counter(row["action"] for row in rows)
    lines = lines_of(rows, errors, check_mode=check_mode)
    warnings = _warnings(outcomes, rows, counts["kept"])
    failure = None
    if errors:
        failure = _failure(list(errors.values()), messages, len(outcomes))
    changed = any(row["changed"] for row in rows)
    if not details:
        rows = [short(row) for row in rows]
    values: dict[str, Any] = {
        "vms": rows,
        "refused": False,
        "summary": {action: counts[action] for action in ACTIONS},
        "report": lines,
    }
    nothing: dict[str, Any] = {"before": {}, "after": {}}
    return Result(changed, values, diffs or nothing, warnings, failure)


def refused_values(arguments: Mapping[str, Any], error: FleetError) -> dict[str, Any]:
    """Return the values of a run that failed before any VM was worked on.

    The message of the task has the cause, so a row has an error only where the VM itself has a
    mistake. With details, the VMs without one are left out where others have one: a typing error
    must not be hidden among them. The arguments may be those that were refused, of any shape.
    """
    own: dict[int, Mapping[str, Any]] = {}
    causes: list[str] = []
    for one in error.details.get("vms", ()):
        own[one["index"]] = {"msg": one["msg"], "error": one["error"]}
        causes.append(f"{one['vm']}: {one['msg']}")
    if not causes:
        causes.append(error.message)
    rows = _refused_rows(arguments, own)
    summary = dict.fromkeys(ACTIONS, 0)
    summary["failed"] = len(rows)
    lines = causes[:_SHOWN_CAUSES]
    if rows:
        lines.insert(0, f"failed {len(rows)}")
    if arguments.get("details") is not False:
        shown = [row for row in rows if "error" in row] or rows
        rows = [{**_NOT_WORKED_ON, **row} for row in shown]
    return {"vms": rows, "refused": True, "summary": summary, "report": lines}


def _refused_rows(
    arguments: Mapping[str, Any],
    own: Mapping[int, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return name and tenant of each VM of the run, with its own cause where it has one."""
    rows: list[dict[str, Any]] = []
    for index, item in enumerate(arguments.get("vms") or ()):
        given: Mapping[str, Any] = {}
        if isinstance(item, Mapping):
            given = item
        tenant = _tenant_of(given, arguments)
        if not _is_chosen(tenant, arguments):
            continue
        row = {"name": str(given.get("name") or ""), "tenant": tenant}
        rows.append({**row, **own.get(index, {})})
    return rows


def _tenant_of(own: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return the tenant of a VM: its own, else that of the defaults, else that of the task."""
    defaults = arguments.get("defaults")
    found = ""
    for layer in (arguments, defaults, own):
        if isinstance(layer, Mapping):
            found = str(layer.get("tenant") or found)
    return found


def _is_chosen(tenant: str, arguments: Mapping[str, Any]) -> bool:
    try:
        tenants = read_tenants(arguments)
    except FleetError:
        return True
    return not tenants or tenant in tenants


def short(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome in a row, without the VM itself and its plan."""
    found = {key: row[key] for key in _SHORT}
    found["tenant"] = found["tenant"] or ""
    if "site" in row:
        found["site"] = row["site"]
    if row["failed"]:
        found["msg"] = row["msg"]
        found["error"] = row["error"]
    return found


def row_of(outcome: Outcome) -> dict[str, Any]:
    """Return the report on one VM: which VM it is, and what module vm returns of it."""
    item = outcome.planned.item
    vm_plan = outcome.planned.vm_plan
    actual = outcome.planned.actual
    desired = item.desired
    row: dict[str, Any] = {
        "name": desired.name,
        "vmid": desired.vmid,
        "node": None,
        "tenant": desired.tenant,
        "pruned": item.pruned,
        "changed": False,
        "failed": outcome.error is not None,
        "vm": None,
        "plan": [],
        "done": [],
        "conditions": None,
        "pending": [],
        "rebooted": False,
    }
    if item.site:
        row["site"] = item.site
    if vm_plan is not None:
        row["plan"] = vm_plan.plan.summaries
    if actual is not None:
        row["vmid"] = actual.vmid
        row["node"] = actual.node
        row["name"] = desired.name or actual.name
    if outcome.result is not None:
        _add_result(row, outcome, outcome.result)
    if outcome.error is not None:
        _add_error(row, outcome, outcome.error)
    row["action"] = _action(outcome, row)
    row["status"] = _status(row)
    return row


def _add_result(
    row: dict[str, Any],
    outcome: Outcome,
    result: Result,
) -> None:
    """Add the result of a VM, with its VMID, node and name where it has them."""
    vm_plan = outcome.planned.vm_plan
    row.update(result.values)
    vm = row["vm"] or {}
    for key in ("vmid", "node", "name"):
        if vm.get(key) is not None:
            row[key] = vm[key]
    row["changed"] = result.changed
    if result.changed and vm_plan is not None:
        row["rebooted"] = restarts(vm_plan)


def _add_error(
    row: dict[str, Any],
    outcome: Outcome,
    error: FleetError,
) -> None:
    """Add the error of a VM, with VMID and node of a new one that failed after its creation."""
    draft = outcome.planned.draft
    done = list(error.details.get("done", []))
    row.update(error.as_result())
    row["done"] = done
    row["changed"] = bool(done)
    row["conditions"] = conditions_of_failure(error)
    if done and draft is not None:
        row["vmid"] = outcome.vmid or draft.vmid
        row["node"] = row["node"] or draft.node


def _status(row: Mapping[str, Any]) -> str | None:
    vm = row["vm"] or {}
    status = vm.get("status")
    if status is not None:
        return str(status)
    if row["action"] in ("failed", "kept"):
        return None
    return "absent"


def _action(outcome: Outcome, row: Mapping[str, Any]) -> str:
    if outcome.error is not None:
        return "failed"
    if outcome.result is None:
        return "kept"
    if not row["changed"]:
        return "unchanged"
    if outcome.planned.draft is not None:
        return "created"
    if outcome.planned.is_removal:
        return "removed"
    return "changed"


def _warnings(
    outcomes: Sequence[Outcome],
    rows: Sequence[Mapping[str, Any]],
    kept: int,
) -> tuple[str, ...]:
    """Return the warnings of all VMs; one for several VMs that wait for a reboot."""
    lines: list[str] = []
    waiting: list[str] = []
    for outcome in outcomes:
        if outcome.result is None:
            continue
        for line in outcome.result.warnings:
            group = waiting if line.endswith(WAITS_FOR_STOP) else lines
            group.append(line)
    if len(waiting) > 1:
        pending = [row for row in rows if row["pending"]]
        number = len(pending)
        state = "have changes that wait for their next stop or reboot"
        waiting = [f"{number} VMs {state}; reboot=if_needed applies them"]
    lines += waiting
    if kept:
        lines.append(f"{kept} VMs that are not in the list were not removed, because others failed")
    return tuple(dict.fromkeys(lines))


def _headed(outcome: Outcome, result: Result) -> dict[str, Any]:
    """Return the diff of a VM with a headline."""
    label = outcome.planned.item.desired.label
    diff: Mapping[str, Any] = {"before": {}, "after": {}}
    if isinstance(result.diff, Mapping):
        diff = result.diff
    return {"before_header": label, "after_header": label, **diff}


def _failure(
    errors: Sequence[FleetError],
    messages: Sequence[str],
    number: int,
) -> FleetError:
    """Return the error of the run: that of its only VM, or one for all that failed of `number`."""
    if number == 1:
        return errors[0]
    causes = list(messages[:_SHOWN])
    if len(messages) > _SHOWN:
        causes.append(f"And {len(messages) - _SHOWN} more.")
    return failure_of_several(errors, " ".join(causes), number)


def _cause(outcome: Outcome, error: FleetError) -> str:
    """Return the message of an error, after the VM's label where the message lacks it."""
    label = outcome.planned.item.desired.label
    message = str(error)
    if label in message:
        return message
    return f"{label}: {message}"
