# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a whole tenant from the plans of its resources, and its execution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..._foundation.core.errors import FleetError
from ..._foundation.core.result import Result
from ..._foundation.resource.engine import after_writes, apply_plan
from ..._foundation.resource.plan import Plan
from ..._foundation.resource.run import TableResource, plan_resource
from ..._foundation.resource.table import Precheck
from ..access.login.credentials import LoginFileRepair
from .facts import TenantFacts, read_facts
from .tenant_resources import TenantResource

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass(frozen=True)
class PlannedResource:
    """A resource of a tenant with its plan."""

    resource: TenantResource
    plan: Plan

    @property
    def kind(self) -> str:
        return self.resource.table.kind


@dataclass
class TenantProgress:
    """The steps done so far, with the warnings of all resources.

    `blinds`: the login may be unable to read the written objects.
    """

    blinds: bool = False
    done: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def run(self, work: Callable[[], Result]) -> Result:
        """Run one part of the work and record its result.

        Raises FleetError with all steps that were done before it.
        """
        with after_writes(self.done):
            result = work()
        self.done += result.values.get("done", [])
        self.warnings += result.warnings
        return result


def read_result(
    client: Client, report: TenantProgress, login: Mapping[str, Any] | None
) -> TenantFacts | None:
    """Return the facts after the work. Raises FleetError with everything that was done.

    A failed read is only a warning, and the result is None, in two cases: an error would lose the
    `login`, which only this result contains, or the task took rights away from its own login.
    """
    try:
        with after_writes(report.done):
            return read_facts(client)
    except FleetError as error:
        if login is None and not report.blinds:
            raise
        report.warnings.append(error.message)
        return None


def plan_resources(resources: Sequence[TenantResource], reader: Client) -> list[PlannedResource]:
    """Return the resources that differ, with their plans. Raises any refusal; writes nothing."""
    planned: list[PlannedResource] = []
    for resource in resources:
        plan, _actual = plan_resource(replace(resource.reads, guard=None), resource.desired, reader)
        if plan.changed:
            planned.append(PlannedResource(resource, plan))
    return planned


def keep_plans(client: Client, plans: Iterable[Plan]) -> None:
    """Show the plans of the parts of a tenant to the plan book."""
    for plan in plans:
        client.plan_book.keep(plan)


def execute_resources(
    planned: Sequence[PlannedResource], client: Client, report: TenantProgress
) -> None:
    """Write the resources in order, each replanned from a fresh reading."""
    for one in planned:
        report.run(partial(_write, one.resource, client, blinds=report.blinds))


def _write(resource: TenantResource, client: Client, *, blinds: bool) -> Result:
    # The guard has already checked the whole plan, see own_loss.py.
    table = replace(resource.table, guard=None)
    plan, actual = plan_resource(table, resource.desired, client)
    plan = replace(plan, blinds=blinds)
    steps = TableResource(table, resource.desired, client, plan, actual)
    return apply_plan(steps, False)


def summaries(planned: Sequence[PlannedResource]) -> list[str]:
    """Return the steps of all resources, in words."""
    lines: list[str] = []
    for one in planned:
        lines += one.plan.summaries
    return lines


def warnings_of(planned: Sequence[PlannedResource]) -> list[str]:
    """Return the warnings of all plans."""
    lines: list[str] = []
    for one in planned:
        lines += one.plan.warnings
    return lines


def diff_of(planned: Sequence[PlannedResource]) -> dict[str, dict[str, Any]]:
    """Return the diff of the resources, by their labels in messages."""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for one in planned:
        label = one.resource.table.label(one.resource.desired.keys)
        _note(before, label, one.plan.before)
        _note(after, label, one.plan.after)
    return {"before": before, "after": after}


def with_repair(
    diff: Mapping[str, Mapping[str, Any]], label: str, repair: LoginFileRepair | None
) -> dict[str, dict[str, Any]]:
    """Return the diff with the repair of the login file, if there is one."""
    before, after = dict(diff["before"]), dict(diff["after"])
    if repair is not None:
        before[label] = repair.before
        after[label] = repair.after
    return {"before": before, "after": after}


def _note(side: dict[str, Any], label: str, values: Mapping[str, Any]) -> None:
    """Add the values of a resource; several can share a label, such as rights on a path."""
    if values:
        side[label] = {**side.get(label, {}), **values}


def with_precheck(resources: Iterable[TenantResource], check: Precheck) -> list[TenantResource]:
    """Return the resources with this precheck in their plans."""
    return [
        replace(resource, reads=replace(resource.reads, precheck=check)) for resource in resources
    ]
