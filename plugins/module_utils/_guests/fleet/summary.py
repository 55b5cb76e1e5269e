# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines that report a run to a person (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._foundation.core.errors import FleetError
from ..._foundation.core.failures.several import FailedGuest, by_cause
from ..._foundation.core.formatting import first_of
from ..guest.plan.origin import origins
from ..guest.registry import list_of_key

ACTIONS = ("created", "changed", "removed", "unchanged", "failed", "kept")
# Number of lines that are shown of the end of a task's log.
_LOG_LINES = 10
# This many failures are explained; the line with all failed VMs has the category of each.
_EXPLAINED = 20
_NAMES = 20

Row = Mapping[str, Any]


def lines_of(
    rows: Sequence[Row], failures: Mapping[int, FailedGuest], *, check_mode: bool
) -> list[str]:
    """Return the lines; VMs without a change are only counted, and each cause is explained once.

    `failures` has the index of a row as its key.
    """
    lines = [_counts(rows, check_mode)]
    named: dict[str, list[str]] = {action: [] for action in ACTIONS}
    for row in rows:
        named[row["action"]].append(_named(row))
    del named["unchanged"]
    for action, names in named.items():
        lines += _line(action, names)
    lines += _waiting(rows)
    lines += _older(rows)
    rebooted = [_label(row) for row in rows if row["rebooted"]]
    lines += _line("rebooted", rebooted)
    return lines + _failures(rows, failures)


def _line(what: str, names: Sequence[str]) -> list[str]:
    """Return one line with the names, or no line without names."""
    if not names:
        return []
    return [f"{what}: {', '.join(names)}"]


def _counts(rows: Sequence[Row], check_mode: bool) -> str:
    """Return the number of VMs of each action."""
    number_of = dict.fromkeys(ACTIONS, 0)
    number_of["waiting for a reboot"] = 0
    for row in rows:
        number_of[row["action"]] += 1
        if row["pending"]:
            number_of["waiting for a reboot"] += 1
    counts = [f"{what} {number}" for what, number in number_of.items() if number]
    total = ", ".join(counts) or "there is no guest to work on"
    if check_mode:
        return f"Preview: {total}"
    return total


def _waiting(rows: Sequence[Row]) -> list[str]:
    """Return a line for each set of options that waits for a reboot, with its VMs."""
    by_options: dict[str, list[str]] = {}
    for row in rows:
        options = ", ".join(row["pending"])
        if options:
            by_options.setdefault(options, []).append(_label(row))
    lines: list[str] = []
    for options, labels in by_options.items():
        lines += _line(f"waiting for a reboot ({options})", labels)
    return lines


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
    lines: list[str] = []
    for images, labels in by_images.items():
        lines += _line(f"of an older image ({images})", labels)
    return lines


def _failures(rows: Sequence[Row], failures: Mapping[int, FailedGuest]) -> list[str]:
    """Return the lines that explain the failures."""
    groups = by_cause(list(failures.values()))
    row_of = {id(failed): rows[at] for at, failed in failures.items()}
    lines: list[str] = []
    for first, *same in groups[:_EXPLAINED]:
        lines += _failure(row_of[id(first)], first.error)
        if same:
            others = [_label(row_of[id(failed)]) for failed in same]
            shortened = first_of(others, _NAMES)
            lines.append(f"    the same: {shortened}")
    rest = sum(map(len, groups[_EXPLAINED:]))
    if rest:
        lines.append(f"{rest} more failed for other causes: see the msg of each VM in vms")
    return lines


def _failure(row: Row, error: FleetError) -> list[str]:
    """Return the lines that help to repair one VM: place, cause, end of the log, next step."""
    place = "no VMID"
    if row["vmid"]:
        place = f"VMID {row['vmid']}"
    if row["node"]:
        place += f" on node {row['node']}"
    parts = filter(None, (error.attempted, error.answer or error.reason))
    cause = _one_line(": ".join(parts)) or error.message
    lines = [f"{_label(row)} ({place}) failed with {error.category}", f"    cause: {cause}"]
    if error.upid:
        lines.append(f"    task: {error.upid}")
    lines += [f"    log: {line}" for line in error.log[-_LOG_LINES:]]
    lines += _line("    done before", row.get("done", ()))
    if error.next_step:
        lines.append(f"    next step: {_one_line(error.next_step)}")
    return lines


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _label(row: Row) -> str:
    name = row["name"] or f"{list_of_key(row['kind']).kind.noun} {row['vmid']}"
    if row["tenant"]:
        return f"{row['tenant']}/{name}"
    return str(name)


def _named(row: Row) -> str:
    """Return the label of a VM with the category of its failure, or else with its place."""
    places: list[str] = []
    if row.get("error"):
        places.append(row["error"]["category"])
    elif row["vmid"]:
        places.append(_place(row))
    if row.get("site"):
        places.append(f"site {row['site']}")
    label = _label(row)
    if not places:
        return label
    return f"{label} ({', '.join(places)})"


def _place(row: Row) -> str:
    if row["node"]:
        return f"{row['vmid']} on {row['node']}"
    return str(row["vmid"])
