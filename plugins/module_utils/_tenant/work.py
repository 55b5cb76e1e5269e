# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a whole tenant from the plans of its parts, and how it is carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .._core.errors import FleetError
from .._core.result import Result
from .._resource.engine import apply_plan
from .._resource.execute import with_done
from .._resource.plan import Plan
from .._resource.run import TableResource, plan_resource
from .._resource.table import Precheck
from .parts import Part

if TYPE_CHECKING:
    from .._api.client import Client


@dataclass(frozen=True)
class PlannedPart:
    """A part with its plan."""

    part: Part
    plan: Plan

    @property
    def kind(self) -> str:
        return self.part.table.kind


@dataclass
class Report:
    """What was done so far, with the warnings of all parts."""

    done: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def run(self, work: Callable[[], Result]) -> Result:
        """Do one part and note what came of it.

        Raises FleetError with everything that was done before it.
        """
        try:
            result = work()
        except FleetError as error:
            done = [*self.done, *error.details.get("done", [])]
            raise with_done(error, done) from error
        self.done += result.values.get("done", [])
        self.warnings += result.warnings
        return result


def plan_parts(parts: Sequence[Part], reader: Client) -> list[PlannedPart]:
    """Return the parts that differ, each with its plan. Raises what is refused before any write."""
    planned: list[PlannedPart] = []
    for part in parts:
        plan, _actual = plan_resource(part.reads, part.desired, reader)
        if plan.changed:
            planned.append(PlannedPart(part, plan))
    return planned


def carry_out(planned: Sequence[PlannedPart], client: Client, report: Report) -> None:
    """Write the parts in order, each planned again from a fresh reading of itself."""
    for one in planned:
        report.run(partial(_write, one.part, client))


def _write(part: Part, client: Client) -> Result:
    plan, actual = plan_resource(part.table, part.desired, client)
    resource = TableResource(part.table, part.desired, client, plan, actual)
    return apply_plan(resource, False)


def summaries(planned: Sequence[PlannedPart]) -> list[str]:
    """Return the steps of all parts, in words."""
    lines: list[str] = []
    for one in planned:
        lines += one.plan.summaries
    return lines


def warnings_of(planned: Sequence[PlannedPart]) -> list[str]:
    """Return the warnings of all plans."""
    lines: list[str] = []
    for one in planned:
        lines += one.plan.warnings
    return lines


def diff_of(planned: Sequence[PlannedPart]) -> dict[str, dict[str, Any]]:
    """Return what the parts change, by what messages call each."""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for one in planned:
        label = one.part.table.label(one.part.desired.keys)
        _note(before, label, one.plan.before)
        _note(after, label, one.plan.after)
    return {"before": before, "after": after}


def _note(side: dict[str, Any], label: str, values: Mapping[str, Any]) -> None:
    """Add the values of a part; two parts may be about one resource, such as rights on a path."""
    if values:
        side[label] = {**side.get(label, {}), **values}


def with_precheck(parts: Iterable[Part], check: Precheck) -> list[Part]:
    """Return parts whose plans are checked by this function."""
    return [replace(part, reads=replace(part.reads, precheck=check)) for part in parts]
