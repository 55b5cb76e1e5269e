# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""New and ended tasks of a node, and failed backups (pure).

PVE lists the tasks of a node by their start: a task that began before the last reading and ended
after it is found only by its start. So each request begins at the start of the oldest running task,
or some time before the newest task if that is earlier, and known tasks are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..._foundation.core.times import iso
from ..events import kinds
from ..tasks.row import FAILED, RUNNING, UNKNOWN, TaskRow, describe_task
from .event import Event, event_of
from .model import EventReading, NodeAnswers, NodeTasks, SitePosition

# Seconds before the newest task in which an older task can still appear: a worker is registered
# only after its start, and clocks are set back.
OVERLAP = 900
_BACKUP = "vzdump"


def task_events(
    before: SitePosition, reading: EventReading
) -> tuple[dict[str, NodeTasks], list[Event]]:
    """Return the known tasks of each node, and the events.

    The first reading of a node gives no events. A node whose tasks could not be read keeps its
    known tasks: the next reading finds the rest.
    """
    known = {node: tasks for node, tasks in before.tasks.items() if node in reading.online}
    events: list[Event] = []
    for node, answer in reading.tasks.items():
        if not isinstance(answer, list):
            continue
        if node in before.tasks:
            events += _events_of_node(before.tasks[node], node, answer, reading)
        known[node] = _known_tasks(before.tasks.get(node), answer, reading.taken)
    return known, events


def _known_tasks(before: NodeTasks | None, tasks: Iterable[TaskRow], taken: float) -> NodeTasks:
    """Return the tasks that the next reading finds again."""
    running: dict[str, int] = {}
    ended: dict[str, int] = {}
    newest = before.since + OVERLAP if before else 0
    for task in tasks:
        newest = max(newest, task.started)
        if task.status == RUNNING:
            running[task.upid] = task.started
        else:
            ended[task.upid] = task.ended
    starts = {task.upid: task.started for task in tasks}
    if before is not None:
        for upid, started in _vanished(before, starts).items():
            ended[upid] = 0
            starts[upid] = started
    # If the node's clock was ahead for a while, later tasks must still be found.
    since = min([min(newest, int(taken)) - OVERLAP, *running.values()])
    recent = {upid: end for upid, end in ended.items() if starts[upid] >= since}
    return NodeTasks(max(0, since), running, recent)


def _vanished(before: NodeTasks, listed: Mapping[str, int]) -> dict[str, int]:
    """Return the running tasks that the node no longer lists, with their start."""
    return {upid: start for upid, start in before.running.items() if upid not in listed}


def _events_of_node(
    before: NodeTasks, node: str, tasks: list[TaskRow], reading: EventReading
) -> list[Event]:
    site = reading.site
    events: list[Event] = []
    values: dict[str, object]
    if _is_cut(before, tasks):
        values = {"node": node, "since": iso(before.since)}
        events.append(event_of(kinds.TASKS_LOST, site, reading.taken, values))
    for task in sorted(tasks, key=lambda one: (one.started, one.upid)):
        if task.upid in before.ended:
            continue
        if task.upid not in before.running:
            values = {**_values(task), "status": RUNNING}
            events.append(event_of(kinds.TASK_STARTED, site, task.started, values))
        if task.status != RUNNING:
            events += _finished_event(site, task, reading)
    gone = _vanished(before, {task.upid: task.started for task in tasks})
    for upid in sorted(gone):
        values = {"node": node, "upid": upid, "status": UNKNOWN, "started": iso(gone[upid])}
        parts = upid.split(":")
        if len(parts) > 6:
            values["task"] = parts[5]
        events.append(event_of(kinds.TASK_ENDED, site, reading.taken, values))
    return events


def _is_cut(before: NodeTasks, tasks: Iterable[TaskRow]) -> bool:
    """Return whether the list of the node no longer reaches back to the last reading.

    PVE writes a task to its list when it ends, and drops the first tasks of a full list
    (pve-common: RESTEnvironment.pm, active_workers). If all known tasks are gone, later tasks may
    be gone too.
    """
    known = {upid for upid, end in before.ended.items() if end}
    return bool(known) and known.isdisjoint(task.upid for task in tasks)


def _finished_event(site: str, task: TaskRow, reading: EventReading) -> list[Event]:
    when = task.ended or reading.taken
    events = [event_of(kinds.TASK_ENDED, site, when, _values(task))]
    if task.type == _BACKUP and task.status in (FAILED, UNKNOWN):
        # The guests in its log, or its only guest.
        guests = list(reading.failed_guests.get(task.upid, ()))
        if not guests and task.vmid is not None:
            guests = [task.vmid]
        values = {**_values(task), "vmids": guests}
        events.append(event_of(kinds.BACKUP_FAILED, site, when, values))
    return events


def _values(task: TaskRow) -> dict[str, object]:
    """Return a task in the form of module results, with its type under the key of events."""
    return {**describe_task(task), "task": task.type}


def new_failed_backups(before: SitePosition, tasks: NodeAnswers) -> list[TaskRow]:
    """Return the failed backups without an event so far; their logs name the guests."""
    found: list[TaskRow] = []
    for node, answer in tasks.items():
        known = before.tasks.get(node)
        if known is None or not isinstance(answer, list):
            continue
        for task in answer:
            is_failed = task.type == _BACKUP and task.status in (FAILED, UNKNOWN)
            if is_failed and task.upid not in known.ended:
                found.append(task)
    return found
