# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the tasks of several nodes at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from ..._foundation.api.protocols import Reader
from ..._foundation.api.upid import Upid
from ..._foundation.core.errors import FleetError
from ..._foundation.core.parallel import side_by_side
from .query import TaskQuery
from .row import REMOVALS, TaskRow, newest_first, removals_of, task_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

# A node's list of tasks has at most about 2,000 tasks (pve-common, RESTEnvironment.pm,
# active_workers), and PVE reads the whole list for each request.
_PAGE = 500
# A node that does not answer must not hold up the others for long.
_TRIES = 2

TaskFilter = Callable[[TaskRow], bool]


def read_tasks(
    client: Client, nodes: Iterable[str], query: TaskQuery, wanted: TaskFilter | None = None
) -> dict[str, list[TaskRow] | FleetError]:
    """Return the matching tasks of each node, the newest first, or the error of the node.

    At least one request a node, and one more for each further 500 tasks, until `query.limit` tasks
    are found.
    """
    names = sorted(nodes)

    def matches(task: TaskRow) -> bool:
        return query.matches(task) and (wanted is None or wanted(task))

    read = partial(_tasks_of, client, query, matches)
    return dict(zip(names, side_by_side(read, names), strict=True))


def read_task(client: Reader, upid: Upid) -> TaskRow:
    """Return a task by its ID, without its end time; one request. Raises FleetError."""
    path = ("nodes", upid.node, "tasks", upid.text, "status")
    row = client.get(*path, attempted=f"Could not read the task {upid.text}")
    exitstatus = row.get("exitstatus")
    if row["status"] == "running":
        exitstatus = "RUNNING"
    return task_of({**row, "upid": upid.text, "status": exitstatus}, upid.node)


def read_removals(
    client: Client, nodes: Iterable[str], since: int | None = None, vmid: int | None = None
) -> dict[int, int]:
    """Return the time when the last guest of each VMID was removed, as far as nodes answer.

    Two requests a node, for VMs and for containers. Times are seconds since the epoch.
    """
    tasks: list[TaskRow] = []
    for kind in REMOVALS:
        query = TaskQuery(limit=_PAGE * 10, vmid=vmid, types=frozenset((kind,)), since=since)
        for answer in read_tasks(client, nodes, query, lambda task: task.removes).values():
            if not isinstance(answer, FleetError):
                tasks += answer
    return removals_of(tasks)


def found_in(answers: dict[str, list[TaskRow] | FleetError], limit: int) -> list[TaskRow]:
    """Return the newest tasks of all nodes, `limit` at most (pure)."""
    tasks: list[TaskRow] = []
    for answer in answers.values():
        if not isinstance(answer, FleetError):
            tasks += answer
    return newest_first(tasks)[:limit]


def _tasks_of(
    client: Client, query: TaskQuery, matches: TaskFilter, node: str
) -> list[TaskRow] | FleetError:
    found: list[TaskRow] = []
    start = 0
    try:
        while len(found) < query.limit:
            rows = client.get(
                "nodes",
                node,
                "tasks",
                params={**query.parameters(), "start": start, "limit": _PAGE},
                tries=_TRIES,
                attempted=f"Could not read the tasks of node {node}",
            )
            tasks = [task_of(row, node) for row in rows or ()]
            found += filter(matches, tasks)
            start += len(tasks)
            if len(tasks) < _PAGE:
                break
    except FleetError as error:
        return error
    return newest_first(found)[: query.limit]
