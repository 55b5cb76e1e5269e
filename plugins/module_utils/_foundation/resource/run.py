# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of a module for a simple resource, and of its C(_info) twin: read, compare, plan,
execute, report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..api.access.listed import require_listed
from ..api.interface import Api
from ..core.errors import AuthenticationError, Conflict, NotFound, PermissionDenied
from ..core.parallel import side_by_side
from ..core.result import Result
from .decide import COMMIT, after, build_plan, commits, compare, read_desired, read_keys
from .engine import Execution, Resource, StepResult, apply_plan, attempted, result_of
from .own_loss import OwnLoss, require_allowed
from .plan import Plan, Step
from .table import DesiredResource, Table, Values


def run(
    table: Table,
    params: Mapping[str, Any],
    client: Api,
    check_mode: bool = False,
    reading: ResourceReading | None = None,
) -> Result:
    """Bring a resource to the desired state and return the result; check mode writes nothing.

    The first plan uses `reading` if the caller has one.
    """
    desired = table.resolve(client, read_desired(table, params))
    plan, actual = plan_resource(table, desired, client, reading)
    return apply_plan(TableResource(table, desired, client, plan, actual), check_mode)


class TableResource(Resource[Result]):
    """A simple resource with its table; `actual` are the values that were read for the plan."""

    stale_errors = (Conflict, NotFound)

    def __init__(
        self, table: Table, desired: DesiredResource, client: Api, plan: Plan, actual: Values | None
    ) -> None:
        self.table = table
        self.desired = desired
        self.client = client
        self.option_names = table.option_names
        self.plan = plan
        self.actual = self.latest = actual
        self.config = actual or {}
        self.verified = 0

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        """Return the plan of the remaining steps.

        After a step of a resource that settles, this waits so other runs can write it first.
        """
        verifies = self.table.settle_seconds > 0 and not uncertain
        if verifies:
            self.client.clock.sleep(self.table.settle_seconds)
            self.verified += 1
        plan, self.latest = plan_resource(self.table, self.desired, self.client)
        if verifies and self.verified > self.max_replans:
            return Plan()
        return plan

    def send(self, step: Step) -> StepResult:
        """Send a step; a step of a resource that settles is not sent again if another run has
        changed the resource in the meantime.

        PVE may refuse the step because of a lock for longer than other runs need to write and to
        verify.
        """
        if not self.table.settle_seconds:
            return super().send(step)
        answer = self.client.write(
            step.method,
            *step.path,
            data=step.data,
            attempted=attempted(step.summary),
            confirm=self.confirm_write(step),
            again=partial(self._require_same, step),
        )
        return StepResult(answer)

    def _require_same(self, step: Step) -> None:
        """Raise Conflict if the plan from a new reading does not contain the step."""
        rest = plan_resource(self.table, self.desired, self.client)[0]
        if step not in rest.steps:
            raise Conflict(
                f"{attempted(step.summary)}: another run has changed it since it was read",
                "Run this again",
                "changed since",
            )

    def confirm_write(self, step: Step) -> Callable[[], Any]:
        """Return the check after a lost answer: the step took effect if a new plan has no step with
        the same action.
        """

        def confirm() -> bool | None:
            try:
                rest = self.replan((), True)
            except AuthenticationError:
                if self.plan.blinds:
                    return True
                raise
            actions = {other.action for other in rest.steps}
            if step.action in actions:
                return None
            return True

        return confirm

    def preview(self) -> Result:
        values: Values | None = self.actual
        if self.plan.changed:
            values = after(self.table, self.desired, self.actual)
        return _report(self.table, self.desired, self.plan, values)

    def report(self, execution: Execution) -> Result:
        done = tuple(dict.fromkeys(execution.done))  # a step that did not last was repeated
        execution = replace(execution, done=done)
        if self.plan.blinds:
            return self._report_blind(execution)
        final = self.latest
        if not self.table.settle_seconds:
            final = read_values(self.table, self.client, self.desired.keys)
        _require_reached(self.table, self.desired, final)
        plan = execution.rest or Plan()  # empty if another run made all changes
        if done:
            plan = self.plan
        return _report(self.table, self.desired, plan, final, execution)

    def _report_blind(self, execution: Execution) -> Result:
        """Return the result if the login has lost rights: the values that PVE still shows, and for
        other options the values that PVE accepted.
        """
        label = self.table.label(self.desired.keys)
        try:
            final = read_values(self.table, self.client, self.desired.keys)
            is_reached = not compare(self.table, self.desired, final).visible
        except (AuthenticationError, PermissionDenied):
            is_reached = False
        if not is_reached:
            final = after(self.table, self.desired, self.actual)
            text = f"This login cannot verify {label}: the result is what Proxmox VE accepted"
            execution = replace(execution, warnings=(*execution.warnings, text))
        return _report(self.table, self.desired, self.plan, final, execution)


@dataclass(frozen=True)
class ResourceReading:
    """A reading of a resource: `values` is None if it does not exist."""

    values: dict[str, Any] | None = None
    digest: str = ""
    pending: bool = False  # whether it has a change that was not committed


def read_values(table: Table, client: Api, keys: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the canonical values of a resource, or None if it does not exist; one request."""
    return read_resource(table, client, keys).values


def read_resource(table: Table, client: Api, keys: Mapping[str, str]) -> ResourceReading:
    """Return the present state of a resource; one request. Raises FleetError."""
    try:
        answer = client.get(
            *table.read_call.path_for(keys),
            params=table.read_call.data_for(keys),
            attempted=f"Could not read {table.label(keys)}",
        )
    except NotFound:
        return ResourceReading()
    pending = table.is_pending is not None and table.is_pending(answer, keys)
    found = table.pick(answer, keys)
    if found is None:
        return ResourceReading(pending=pending)
    return ResourceReading(table.values(found), str(found.get("digest") or ""), pending)


def plan_resource(
    table: Table, desired: DesiredResource, client: Api, reading: ResourceReading | None = None
) -> tuple[Plan, dict[str, Any] | None]:
    """Return the plan, and the present values of the resource; without `reading` they are read.

    Raises every refusal before the first write.
    """
    if reading is None:
        reading = read_resource(table, client, desired.keys)
    actual = reading.values
    change = compare(table, desired, actual)
    is_removal = desired.exact or not desired.present
    if table.listed is not None and is_removal and not change:
        require_listed(client.privileges(), table.label(desired.keys), *table.listed(desired.keys))
    plan = build_plan(table, desired, actual, change)
    if reading.pending and not plan.steps:
        plan = replace(plan, steps=tuple(commits(table, desired)))
    if reading.digest and table.digest:
        plan = replace(plan, steps=_with_digest(table, plan.steps, reading.digest))
    if table.settle_seconds:
        plan = replace(plan, steps=tuple(replace(step, reread=True) for step in plan.steps))
    if table.precheck is not None and change:
        plan = replace(plan, warnings=table.precheck(client, desired, change))
    if table.guard is not None and change and (actual is not None or change.adds):
        loss = table.guard(client, desired, change, actual or {})
        plan = _guarded(table, desired, plan, client, loss)
    return replace(plan, label=table.label(desired.keys)), actual


def _with_digest(table: Table, steps: Sequence[Step], digest: str) -> tuple[Step, ...]:
    """Return the steps with the digest in the first step that accepts it.

    The write changes the digest, so later steps are planned again from a new reading.
    """
    for place, step in enumerate(steps):
        if step.method in table.digest and step.action != COMMIT:
            is_last = place == len(steps) - 1
            data = {**step.data, "digest": digest}
            checked = replace(step, data=data, reread=not is_last)
            return (*steps[:place], checked, *steps[place + 1 :])
    return tuple(steps)


def _guarded(
    table: Table, desired: DesiredResource, plan: Plan, client: Api, loss: OwnLoss | None
) -> Plan:
    """Return the plan with a warning about the rights that the login of the task loses.

    Raises Conflict unless the task allows it.
    """
    if loss is None:
        return plan
    label = table.label(desired.keys)
    verb = "change" if desired.present or table.permanent else "delete"
    warning = require_allowed(
        loss, client.login, f"Refused to {verb} {label}", allow_self=desired.allow_self
    )
    return replace(plan, warnings=(*plan.warnings, warning), blinds=True)


def run_info(
    table: Table, params: Mapping[str, Any], client: Api, check_mode: bool = False
) -> Result:
    """Return all resources, or the named one, sorted by their keys.

    Nothing is written.
    """
    keys = read_keys(table, params)
    if len(keys) == len(table.keys):
        values = read_values(table, client, keys)
        if table.keys:
            return _result(table, [(keys, values)])
        described = table.show(keys, values or table.values({}))
        return Result(False, {table.kind: described})
    return _result(table, list_values(table, client, keys))


def list_values(
    table: Table, client: Api, keys: Mapping[str, str]
) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Return the keys and the canonical values of all resources, sorted by their keys; `keys` are
    the keys in the request for the listing.

    One request, and one for each resource if the listing does not contain all values.
    """
    listed = list_rows(table, client, keys)
    if table.list_is_whole:
        return listed
    names = [one for one, _values in listed]
    read = side_by_side(partial(read_values, table, client), names)
    pairs = zip(names, read, strict=True)
    return [(one, values) for one, values in pairs if values is not None]


def list_rows(
    table: Table, client: Api, keys: Mapping[str, str]
) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Return the same with only the values in the listing. One request."""
    answer = client.get(
        *table.list_call.path_for(keys),
        params=table.list_call.data_for(keys),
        attempted=f"Could not list the {table.plural}",
    )
    rows: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for row in table.rows(answer, keys):
        names = table.keys_of(row)
        rows[tuple(names.values())] = row
    listed = [rows[names] for names in sorted(rows)]
    return [(table.keys_of(row), table.values(row)) for row in listed]


def _result(table: Table, found: Iterable[tuple[Mapping[str, str], Values | None]]) -> Result:
    """Return the resources that exist."""
    described = [table.show(keys, values) for keys, values in found if values is not None]
    return Result(False, {table.plural: described})


def _require_reached(
    table: Table, desired: DesiredResource, final: Mapping[str, Any] | None
) -> None:
    """Raise Conflict if the resource differs from the task although every step was accepted."""
    difference = compare(table, desired, final)
    if not difference.visible:
        return
    different = sorted({*difference.sets, *difference.adds, *difference.removes, *difference.fixed})
    if not different:
        different = list(desired.keys.values())
    raise Conflict(
        f"The changes of {table.label(desired.keys)} did not last: Proxmox VE accepted them, but "
        f"these still differ: {', '.join(different)}",
        "Another run may have changed it at the same time: run this again",
        "changed since",
    )


def _report(
    table: Table,
    desired: DesiredResource,
    plan: Plan,
    values: Values | None,
    execution: Execution | None = None,
) -> Result:
    remains = desired.present or table.permanent
    described: Values | None = None
    if values is not None and remains:
        described = table.show(desired.keys, values)
    header = table.label(desired.keys)
    return result_of(plan, {table.kind: described}, execution, header=header)
