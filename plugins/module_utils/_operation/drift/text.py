# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on drift as lines for people (pure): the lines of the plan that removes the drift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._foundation.cluster.quota import format_figures
from ..._foundation.core.texts.plan_lines import (
    CHANGED,
    CREATED,
    FAILED,
    KEPT,
    REMOVED,
    PlanLine,
    change_lines,
    describe_change,
    short_value,
)
from ..._guests.guest.plan.origin import origins
from ..._guests.kinds.words import CT
from .model import DRIFTED, IN_SYNC, MISSING, PENDING, SOURCE, UNKNOWN, UNWANTED

Row = Mapping[str, Any]
_ACTIONS = {
    MISSING: CREATED,
    DRIFTED: CHANGED,
    PENDING: CHANGED,
    UNWANTED: REMOVED,
    UNKNOWN: FAILED,
}


def lines_of(document: Row) -> list[str]:
    """Return the lines of a report; VMs in sync without a reason are only counted."""
    changes = [line for _row, line in differences(document)]
    quotas = map(_quota, document["quotas"])
    return [_headline(document), *change_lines(changes), *quotas, *map(_login, document["logins"])]


def differences(document: Row) -> Iterator[tuple[Row, PlanLine]]:
    """Yield each row of a report that is not in sync, with its line."""
    for row in (*document["sites"], *document["nodes"]):
        if row["reason"]:
            yield row, PlanLine(FAILED, _place(row), f"unknown: {row['reason']}")
    for row in document["vms"]:
        if row["status"] != IN_SYNC or row["reason"]:
            yield row, _difference(_label(row), row)
    for row in document["unlisted"]:
        yield row, PlanLine(KEPT, _label(row), "not in the estate", _last_task(row))
    for row in document["cluster"]:
        if row["status"] != IN_SYNC:
            yield row, _difference(_label_of_resource(row), row)


def _headline(document: Row) -> str:
    """Return the finding of the run, with the number of VMs by status."""
    word = "No drift"
    if not document["complete"]:
        word = "Unknown"
    if document["drift"]:
        word = "Drift"
    counts = [f"{name} {number}" for name, number in document["summary"].items() if number]
    nothing = "there is no VM to compare"
    if document["cluster"]:
        nothing = "as in the cluster file"
    return f"{word}: {', '.join(counts) or nothing}"


def _place(row: Row) -> str:
    names = [f"{key} {row[key]}" for key in ("node", "site") if row.get(key)]
    return ", ".join(names) or "the cluster"


def _difference(label: str, row: Row) -> PlanLine:
    """Return the line about a guest or a resource: its differences, or else the steps of a run."""
    options = {one["option"]: one for one in row["options"]}
    source = options.pop(SOURCE, None)
    actual = {name: one["actual"] for name, one in options.items()}
    wanted = {name: one["wanted"] for name, one in options.items()}
    waiting = [name for name, one in options.items() if one["pending"] == {"value": one["wanted"]}]
    changes = describe_change(actual, wanted, waiting)
    for name, one in options.items():
        if one["pending"] is not None and name not in waiting:
            changes.append(
                f"{name} {short_value(name, one['pending']['value'])} waits for a reboot"
            )
    details = [row["reason"]] if row["reason"] else []
    if source is not None:
        details.append(_image(source))
    if not options:
        details += row["steps"]
    action = _ACTIONS.get(row["status"], KEPT)
    reason = ", ".join(changes) or row["status"]
    return PlanLine(action, label, reason, (*details, *_last_task(row)))


def _image(source: Row) -> str:
    actual, wanted = origins(source["actual"]), origins(source["wanted"])
    noun = "image" if "@" in actual else "template"
    fact = f"it was cloned from {noun} {actual}, and the source is {wanted} now"
    return f"source: {fact}; a run does not replace the VM"


def _label_of_resource(row: Row) -> str:
    label = f"{row['section']} {row['name']}".rstrip()
    return f"{label} ({row['site']})" if row["site"] else label


def _login(row: Row) -> str:
    place = f" at {row['site']}" if row["site"] else ""
    return f"logged in{place}: {row['user']} at {row['last']}"


def _label(row: Row) -> str:
    label = row["name"] or ("container" if row["kind"] == CT else "VM")
    if row["tenant"]:
        label = f"{row['tenant']}/{label}"
    places = [str(row[key]) for key in ("vmid", "node", "site") if row[key]]
    if not places:
        return label
    return f"{label} ({', '.join(places)})"


def _last_task(row: Row) -> tuple[str, ...]:
    """Return who started the last task of a guest or resource, and when."""
    task = row["last_task"]
    if task is None:
        return ()
    who = f"{task['user']}!{task['token']}" if task["token"] else task["user"]
    return (f"last task {task['type']} by {who} at {task['started']}, {task['status']}",)


def _quota(row: Row) -> str:
    used, limit = format_figures(row["kind"], row["used"], row["limit"])
    text = f"quota of {row['tenant']}: {row['kind']} {used} of {limit}"
    if row["site"]:
        text = f"{text} at {row['site']}"
    if row["sites"]:
        text = f"{text} over the sites {', '.join(row['sites'])}"
    if row["exceeded"]:
        text = f"{text}, exceeded"
    return text
