# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines that report a run to a person (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._foundation.core.errors import FleetError
from ..._foundation.core.failures.several import FailedGuest, by_cause
from ..._foundation.core.formatting import counted, first_of
from ..._foundation.core.quantities import render_size
from ..._foundation.core.texts.plan_lines import (
    CHANGED,
    CREATED,
    FAILED,
    KEPT,
    REMOVED,
    PlanLine,
    describe_change,
    describe_new,
    disk_sizes,
    plan_lines,
)
from ..guest.plan.origin import origins
from ..guest.registry import list_of_key

# Number of lines that are shown of the end of a task's log.
_LOG_LINES = 10
# This many causes of failures are explained.
_EXPLAINED = 20
_NAMES = 20

Row = Mapping[str, Any]


def lines_of(
    rows: Sequence[Row],
    diffs: Mapping[int, Mapping[str, Any]],
    failures: Mapping[int, FailedGuest],
    *,
    check_mode: bool,
) -> list[str]:
    """Return the lines; guests without a change are only counted, and each cause is explained once.

    `diffs` and `failures` have the index of a row as their key.
    """
    explained = _explained(rows, failures)
    lines: list[PlanLine] = []
    for at, row in enumerate(rows):
        reason = ""
        if row["action"] == KEPT:
            reason = "not removed, because other guests failed"
        elif at in diffs:
            reason = _reason(row, diffs[at])
        if row["action"] != FAILED:
            lines.append(PlanLine(row["action"], _label(row), reason, reboots=row["rebooted"]))
        elif at in explained:
            lines.append(explained[at])
    more, uncounted = [*_waiting(rows), *_older(rows)], len(failures) - len(explained)
    return plan_lines(lines, check_mode=check_mode, more=more, unlisted_failures=uncounted)


def _reason(row: Row, diff: Mapping[str, Any]) -> str:
    """Return the change of a guest in a few words."""
    before, after = diff["before"], diff["after"]
    if row["action"] == CREATED:
        return describe_new(after)
    if row["action"] == CHANGED:
        return ", ".join(describe_change(before, after, row["pending"]))
    if row["action"] == REMOVED:
        parts = [str(before.get("status") or "")]
        if row["node"]:
            parts[0] = f"{parts[0]} on {row['node']}".strip()
        sizes = disk_sizes(before)
        if sizes:
            parts.append(f"{counted(len(sizes), 'disk')} of {render_size(sum(sizes))}")
        if row["pruned"]:
            parts.append("not in the estate")
        return ", ".join(part for part in parts if part)
    return ""


def _waiting(rows: Sequence[Row]) -> list[str]:
    """Return a line for each set of options of unchanged guests that waits for a reboot."""
    by_options: dict[str, list[str]] = {}
    for row in rows:
        options = ", ".join(row["pending"])
        if options and row["action"] != CHANGED:
            by_options.setdefault(options, []).append(_label(row))
    return [
        f"  waiting for a reboot ({options}): {first_of(labels, _NAMES)}"
        for options, labels in by_options.items()
    ]


def _older(rows: Sequence[Row]) -> list[str]:
    """Return a line for each outdated image and its current one, with the guests made from it."""
    by_images: dict[str, list[str]] = {}
    for row in rows:
        older = row.get("older_image")
        if older:
            images = (
                f"from {origins(older['actual'])}, the source is {origins(older['wanted'])} now"
            )
            by_images.setdefault(images, []).append(_label(row))
    return [
        f"  of an older image ({images}): {first_of(labels, _NAMES)}"
        for images, labels in by_images.items()
    ]


def _explained(rows: Sequence[Row], failures: Mapping[int, FailedGuest]) -> dict[int, PlanLine]:
    """Return the line of the first guest of each cause, by the index of its row."""
    index_of = {id(failed): at for at, failed in failures.items()}
    found: dict[int, PlanLine] = {}
    for first, *same in by_cause(list(failures.values()))[:_EXPLAINED]:
        at = index_of[id(first)]
        details = [f"category: {first.error.category}"]
        if first.error.upid:
            details.append(f"task: {first.error.upid}")
        details += [f"log: {line}" for line in first.error.log[-_LOG_LINES:]]
        done = rows[at].get("done")
        if done:
            details.append(f"done before: {', '.join(done)}")
        if first.error.next_step:
            details.append(f"next step: {first.error.next_step}")
        if same:
            others = [_label(rows[index_of[id(failed)]]) for failed in same]
            details.append(f"the same: {first_of(others, _NAMES)}")
        found[at] = PlanLine(
            FAILED, _label(rows[at]), _cause(rows[at], first.error), tuple(details)
        )
    return found


def _cause(row: Row, error: FleetError) -> str:
    """Return the reason why a guest failed, with its place if it was changed before."""
    parts = filter(None, (error.attempted, error.answer or error.reason))
    cause = ": ".join(parts) or error.message
    if not row["changed"]:
        return f"not changed: {cause}"
    place = f"VMID {row['vmid']}" if row["vmid"] else "no VMID"
    if row["node"]:
        place += f" on {row['node']}"
    return f"not finished ({place}): {cause}"


def _label(row: Row) -> str:
    name = row["name"] or f"{list_of_key(row['kind']).kind.noun} {row['vmid']}"
    label = f"{row['tenant']}/{name}" if row["tenant"] else str(name)
    return f"{label} (site {row['site']})" if row.get("site") else label
