# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.core.errors import FleetError
from ..._foundation.core.result import Result
from ..._foundation.core.texts.plan_lines import (
    CHANGED,
    CREATED,
    REMOVED,
    UNCHANGED,
    PlanLine,
    describe_change,
    plan_lines,
)
from ..._foundation.resource.decide import after, compare, read_desired
from ..._foundation.resource.engine import after_writes
from ..._foundation.resource.table import DesiredResource
from .desired import DeclaredItem, read_exact, read_items
from .generated.sections import SECTIONS
from .planned import PlannedReader, edits_of
from .read import SectionReading, read_section, undeclared
from .sections import Section


@dataclass(frozen=True)
class PlannedItem:
    """A resource of the file with the result of its module. `exists`: the cluster has it now."""

    item: DeclaredItem
    preview: Result
    exists: bool = True

    @property
    def steps(self) -> list[str]:
        steps: list[str] = self.preview.values["plan"]
        return steps


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring a cluster to the state of its file; check mode writes nothing.

    Every resource is planned before the first write. Raises FleetError.
    """
    planned = plan_file(params, PlannedReader(client))
    changes = [one for one in planned if one.preview.changed]
    if check_mode or not changes:
        return _result(planned, [one.preview for one in planned], check_mode=check_mode)
    return _result(planned, list(_carried_out(changes, client)), check_mode=False)


def plan_file(params: Mapping[str, Any], client: PlannedReader) -> list[PlannedItem]:
    """Return the plan of each resource, in the order of the writes."""
    planned: list[PlannedItem] = []
    for item, known in items_in_order(params, client):
        if isinstance(known, FleetError):
            raise known
        planned.append(plan_item(item, known, client))
    return planned


def items_in_order(
    params: Mapping[str, Any], client: PlannedReader
) -> Iterator[tuple[DeclaredItem, SectionReading | FleetError]]:
    """Yield each resource with the reading of its section, in the order of the writes.

    A section is read after the resources of earlier sections were planned. The reading is an error
    if the section cannot be read. Raises ValidationFailed.
    """
    items = read_items(params)
    exact = read_exact(params)
    removals: list[tuple[DeclaredItem, SectionReading | FleetError]] = []
    for section in SECTIONS:
        declared = [item for item in items if item.section is section]
        if not declared and section not in exact:
            continue
        known = _reading(section, declared, client, section in exact)
        for item in declared:
            if item.is_removed:
                removals.append((item, known))
            else:
                yield item, known
        if isinstance(known, FleetError):
            if not declared:
                removals.append((DeclaredItem(section, {}), known))
        elif section in exact:
            removals += [(item, known) for item in undeclared(section, declared, known)]
    yield from reversed(removals)


def _reading(
    section: Section, declared: Sequence[DeclaredItem], client: PlannedReader, whole: bool
) -> SectionReading | FleetError:
    try:
        return read_section(section, declared, client, whole=whole)
    except FleetError as error:
        return error


_UNCHANGED = Result(False, {"plan": [], "done": []})


def plan_item(item: DeclaredItem, known: SectionReading, client: PlannedReader) -> PlannedItem:
    """Return the plan of a resource; a resource that equals its row in the listing is not read.

    Raises FleetError.
    """
    section, table = item.section, item.section.table
    if table is None:
        preview = section.run(dict(item.params), client, True)
        client.plan(section.edits(item.params))
        return PlannedItem(item, preview)
    desired: DesiredResource = table.resolve(client, read_desired(table, item.params))
    actual = known.values.get(tuple(desired.keys.values()))
    exists = actual is not None or table.permanent
    if actual is None and table.permanent:
        actual = table.values(table.pick([], desired.keys) or {})
    if not compare(table, desired, actual):
        return PlannedItem(item, _UNCHANGED)
    is_left = desired.present or table.permanent
    edits = edits_of(table, desired.keys, after(table, desired, actual) if is_left else None)
    preview = section.run(dict(item.params), client, True)
    client.plan(edits)
    return PlannedItem(item, preview, exists)


def _carried_out(changes: Sequence[PlannedItem], client: Client) -> Iterator[Result]:
    """Yield the result of each change; an error contains the steps of the changes before it."""
    done: list[str] = []
    for one in changes:
        with after_writes(done):
            result = one.item.section.run(dict(one.item.params), client, False)
        done += result.values.get("done") or result.values["plan"]
        yield result


def _result(
    planned: Sequence[PlannedItem], results: Sequence[Result], *, check_mode: bool
) -> Result:
    """Return the result of the file; `results` are the results of the changes, or all previews."""
    changes = [one for one in planned if one.preview.changed]
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for one in changes:
        diff = one.preview.diff
        if isinstance(diff, Mapping):
            before.setdefault(one.item.section.name, {})[one.item.name] = diff["before"]
            after.setdefault(one.item.section.name, {})[one.item.name] = diff["after"]
    values = {
        "resources": [
            {
                "section": one.item.section.name,
                "name": one.item.name,
                "changed": one.preview.changed,
                "plan": one.steps,
            }
            for one in planned
        ],
        "report": plan_lines([_line(one) for one in planned], check_mode=check_mode),
        "plan": [step for one in changes for step in one.steps],
        "done": [step for result in results for step in result.values.get("done") or ()],
    }
    warnings = tuple(dict.fromkeys(text for result in results for text in result.warnings))
    return Result(bool(changes), values, {"before": before, "after": after}, warnings)


def _line(one: PlannedItem) -> PlanLine:
    """Return the line of a resource: its difference, or its steps if its section has no table."""
    section, diff = one.item.section, one.preview.diff
    label = f"{section.name.removesuffix('s').replace('_', ' ')} {one.item.name}".rstrip()
    if not one.preview.changed:
        return PlanLine(UNCHANGED, label)
    if section.table is None or not isinstance(diff, Mapping):
        return PlanLine(CHANGED, label, "; ".join(one.steps))
    if not one.exists:
        return PlanLine(CREATED, label)
    if not diff["after"]:
        return PlanLine(REMOVED, label)
    return PlanLine(CHANGED, label, ", ".join(describe_change(diff["before"], diff["after"])))
