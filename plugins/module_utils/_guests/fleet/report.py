# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a fleet's run: a row per VM, counts, lines, differences, one failure (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..._foundation.core.errors import FleetError
from ..._foundation.core.failures.several import FailedGuest, failure_of
from ..._foundation.core.formatting import counted, first_of
from ..._foundation.core.result import Result
from ..._foundation.core.texts.plan_lines import ACTIONS, FAILED, plan_lines, with_lines
from ..guest.describe import WAITS_FOR_STOP, conditions_of_failure
from ..guest.plan.origin import find_hidden_source, find_older_image
from ..guest.registry import LISTS, ListKind
from .execute import VmOutcome
from .listed import read_tenants
from .pace import restarts
from .placement_rules import RulesOutcome
from .plan import PlannedGuest
from .summary import lines_of

# The row of a VM in a run that failed before any VM was worked on.
_NOT_WORKED_ON: Mapping[str, Any] = {
    "vmid": None,
    "node": None,
    "status": None,
    "template": False,
    "action": "failed",
    "changed": False,
    "failed": True,
    "pruned": False,
    "pending": [],
    "rebooted": False,
    "older_image": None,
}
_SHORT = ("kind", "name", "tenant", *_NOT_WORKED_ON)


def report(outcomes: list[VmOutcome], *, check_mode: bool = False, details: bool = True) -> Result:
    """Return the result of the run; without `details` a row has only the outcome of its VM."""
    rows: list[dict[str, Any]] = []
    failures: dict[int, FailedGuest] = {}
    diffs: dict[int, dict[str, Any]] = {}
    labels = [one.planned.item.desired.guest.label for one in outcomes]
    for index, outcome in enumerate(outcomes):
        rows.append(row_of(outcome))
        if outcome.error is not None:
            failures[index] = FailedGuest(labels[index], outcome.error)
        if outcome.result is not None and outcome.result.changed:
            label = outcome.planned.item.desired.guest.label
            diff: Mapping[str, Any] = {"before": {}, "after": {}}
            if isinstance(outcome.result.diff, Mapping):
                diff = outcome.result.diff
            diffs[index] = {"before_header": label, "after_header": label, **diff}
    counts = Counter(row["action"] for row in rows)
    lines = lines_of(rows, diffs, failures, check_mode=check_mode)
    warnings = _warnings(outcomes, rows, counts["kept"])
    failure = failure_of(list(failures.values()), labels)
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
    return Result(changed, values, list(diffs.values()) or nothing, warnings, failure)


def with_rules(result: Result, outcomes: Sequence[RulesOutcome]) -> Result:
    """Return the result of the guests, with the results of their HA rules added."""
    results = [one for outcome in outcomes for one in outcome.results]
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    plan = [step for one in results for step in one.values["plan"]]
    done = [step for one in results for step in one.values["done"]]
    lines = [f"  placement: {step}" for step in plan]
    for error in errors:
        done += error.details.get("done", ())
        lines.append(f"! placement failed with {error.category}: {error.message}")
    values = {
        **result.values,
        "report": with_lines(result.values["report"], lines),
        "placement_rules": {"plan": plan, "done": done},
    }
    warnings = [*result.warnings, *(text for outcome in outcomes for text in outcome.warnings)]
    if errors and result.failure is not None:
        warnings.append(errors[0].message)
    return replace(
        result,
        changed=result.changed or bool(plan or done),
        values=values,
        diff=_joined_diffs(result.diff, [one.diff for one in results]),
        warnings=tuple(dict.fromkeys(warnings)),
        failure=result.failure or next(iter(errors), None),
    )


def _joined_diffs(first: Any, more: Sequence[Any]) -> Any:
    """Return the diffs of guests and of HA rules as one list; without rules, the guests' diff."""
    if not more:
        return first
    guests = [] if isinstance(first, Mapping) else list(first or ())
    return [*guests, *more]


def refused_values(arguments: Mapping[str, Any], error: FleetError) -> dict[str, Any]:
    """Return the values of a run that failed before any VM was worked on.

    The message of the task contains the cause. With details, a row has an error only if its own VM
    has a mistake; if any row has an error, only the rows with errors are returned, so that a typing
    error is easy to find. Without details, all VMs are returned with an error. `arguments` may be
    invalid and have any shape.
    """
    own: dict[tuple[str, int], Mapping[str, Any]] = {}
    for one in error.details.get("vms", ()):
        own[one["list"], one["index"]] = {"msg": one["msg"], "error": one["error"]}
    rows = _refused_rows(arguments, own)
    summary = dict.fromkeys(ACTIONS, 0)
    summary[FAILED] = len(rows)
    lines = plan_lines([], check_mode=True, unlisted_failures=len(rows))
    if arguments.get("details") is False:
        whole = error.as_result()
        rows = [{**_NOT_WORKED_ON, **whole, **row} for row in rows]
    else:
        reported = [row for row in rows if "error" in row] or rows
        rows = [{**_NOT_WORKED_ON, **row} for row in reported]
    return {"vms": rows, "refused": True, "summary": summary, "report": lines}


def _refused_rows(
    arguments: Mapping[str, Any], own: Mapping[tuple[str, int], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return name and tenant of each guest of the run, with the guest's own cause if it has one."""
    rows: list[dict[str, Any]] = []
    for of in LISTS:
        for index, item in enumerate(arguments.get(of.option) or ()):
            row = _refused_row(of, item, arguments)
            if row is not None:
                rows.append({**row, **own.get((of.option, index), {})})
    return rows


def _refused_row(of: ListKind, item: Any, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the identity of an unchecked item, or None if its tenant is not selected."""
    given: Mapping[str, Any] = item if isinstance(item, Mapping) else {}
    defaults = arguments.get("defaults")
    tenant = ""
    for layer in (arguments, defaults, given):
        if isinstance(layer, Mapping):
            tenant = str(layer.get("tenant") or tenant)
    if not _is_chosen(tenant, arguments):
        return None
    return {"kind": of.flow.key, "name": str(given.get("name") or ""), "tenant": tenant}


def _is_chosen(tenant: str, arguments: Mapping[str, Any]) -> bool:
    try:
        tenants = read_tenants(arguments)
    except FleetError:
        return True
    return not tenants or tenant in tenants


def short(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with only the outcome, without the VM itself and its plan."""
    found = {key: row[key] for key in _SHORT}
    found["tenant"] = found["tenant"] or ""
    if "site" in row:
        found["site"] = row["site"]
    if row["failed"]:
        found["msg"] = row["msg"]
        found["error"] = row["error"]
    return found


def row_of(outcome: VmOutcome) -> dict[str, Any]:
    """Return the report on one VM: its identity, and the values that module vm returns."""
    item = outcome.planned.item
    vm_plan = outcome.planned.vm_plan
    actual = outcome.planned.actual
    desired = item.desired
    key = item.kind.flow.key
    row: dict[str, Any] = {
        "kind": key,
        "name": desired.guest.name,
        "vmid": desired.guest.vmid,
        "node": None,
        "tenant": desired.guest.tenant,
        "template": actual is not None and actual.template,
        "pruned": item.pruned,
        "changed": False,
        "failed": outcome.error is not None,
        key: None,
        "plan": [],
        "done": [],
        "conditions": None,
        "pending": [],
        "rebooted": False,
        "older_image": _older_image(outcome.planned),
    }
    if item.site:
        row["site"] = item.site
    if item.site_choice is not None:
        row["site_placement"] = item.site_choice.as_dict()
    if vm_plan is not None:
        row["plan"] = vm_plan.plan.summaries
    if actual is not None:
        row["vmid"] = actual.vmid
        row["node"] = actual.node
        row["name"] = desired.guest.name or actual.name
    if outcome.result is not None:
        _add_result(row, outcome, outcome.result)
    if outcome.error is not None:
        _add_error(row, outcome, outcome.error)
    row["action"] = _action(outcome, row)
    row["status"] = _status(row)
    return row


def _older_image(planned: PlannedGuest) -> dict[str, Any] | None:
    """Return the image of a guest and the current image of its source, or None if equal."""
    actual, vm_plan = planned.actual, planned.vm_plan
    guest = planned.item.desired.guest
    if actual is None or vm_plan is None or guest.state == "absent":
        return None
    older = find_older_image(guest.source, actual, vm_plan.cluster)
    return None if older is None else {"wanted": older.wanted, "actual": older.actual}


def _add_result(row: dict[str, Any], outcome: VmOutcome, result: Result) -> None:
    """Add the result of a VM, with its VMID, node, name and template flag if known."""
    vm_plan = outcome.planned.vm_plan
    row.update(result.values)
    vm = row[row["kind"]] or {}
    for key in ("vmid", "node", "name", "template"):
        if vm.get(key) is not None:
            row[key] = vm[key]
    row["changed"] = result.changed
    if result.changed and vm_plan is not None:
        row["rebooted"] = restarts(vm_plan.actual, vm_plan.plan)


def _add_error(row: dict[str, Any], outcome: VmOutcome, error: FleetError) -> None:
    """Add the error of a VM. A new VM that failed after its creation also gets VMID and node."""
    done = list(error.details.get("done", []))
    row.update(error.as_result())
    row["done"] = done
    row["changed"] = error.came_after_changes
    row["conditions"] = conditions_of_failure(error)
    vm_plan = outcome.planned.vm_plan
    if row["changed"] and vm_plan is not None and vm_plan.new is not None:
        vmid, node = vm_plan.place
        row["vmid"] = outcome.vmid or vmid
        row["node"] = row["node"] or node


def _status(row: Mapping[str, Any]) -> str | None:
    vm = row[row["kind"]] or {}
    status = vm.get("status")
    if status is not None:
        return str(status)
    if row["action"] in ("failed", "kept"):
        return None
    return "absent"


def _action(outcome: VmOutcome, row: Mapping[str, Any]) -> str:
    if outcome.error is not None:
        return "failed"
    if outcome.result is None:
        return "kept"
    if not row["changed"]:
        return "unchanged"
    if outcome.planned.creates:
        return "created"
    if outcome.planned.is_removal:
        return "removed"
    return "changed"


def _warnings(
    outcomes: Sequence[VmOutcome], rows: Sequence[Mapping[str, Any]], kept: int
) -> tuple[str, ...]:
    """Return the warnings of all VMs; VMs that wait for a reboot share one warning."""
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
        state = "have changes that wait for their next stop or reboot"
        nouns = _counted_kinds([row["kind"] for row in pending])
        waiting = [f"{nouns} {state}; reboot=if_needed applies them"]
    lines += [*waiting, *_hidden_sources([outcome.planned for outcome in outcomes])]
    if kept:
        nouns = _counted_kinds([row["kind"] for row in rows if row["action"] == "kept"])
        lines.append(f"Not removed, because others failed: {nouns} that the list does not have")
    return tuple(dict.fromkeys(lines))


def _hidden_sources(planned: Sequence[PlannedGuest]) -> list[str]:
    """Return a warning for each source of existing guests that is not visible."""
    by_source: dict[str, list[str]] = {}
    for one in planned:
        guest, actual, vm_plan = one.item.desired.guest, one.actual, one.vm_plan
        if actual is None or vm_plan is None or guest.state == "absent":
            continue
        hidden = find_hidden_source(guest.source, actual, vm_plan.cluster)
        if hidden is not None:
            by_source.setdefault(hidden, []).append(actual.name)
    return [
        f"The {hidden}. Existing guests with it: {first_of(names, 10)}"
        for hidden, names in by_source.items()
    ]


def _counted_kinds(kinds: Sequence[str]) -> str:
    """Return how many guests of each kind there are, such as C(2 VMs and 1 container)."""
    number_of = Counter(kinds)
    counts: list[str] = []
    for of in LISTS:
        number = number_of[of.flow.key]
        if number:
            counts.append(counted(number, of.kind.noun))
    return " and ".join(counts)
