# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters for tasks, and the tasks of several nodes, which are read at the same time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._foundation.api.protocols import Reader
from ..._foundation.api.upid import Upid, is_upid, parse_upid
from ..._foundation.core import validate
from ..._foundation.core.errors import FleetError
from ..._foundation.core.parallel import side_by_side
from ..._foundation.core.times import seconds
from .row import FAILED, REMOVALS, UNKNOWN, TaskRow, newest_first, removals_of, task_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


MAX_TASKS = 10000
_AGE = re.compile(r"([0-9]{1,6})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_USER = re.compile(r"[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+(?:![A-Za-z][A-Za-z0-9.\-_]*)?")


@dataclass(frozen=True)
class TaskQuery:
    """The filters for tasks; a filter that is None or empty matches all tasks. Times are seconds
    since the epoch; `limit` is the maximum number of tasks.
    """

    limit: int
    vmid: int | None = None
    user: str | None = None
    types: frozenset[str] = frozenset()
    failed: bool = False
    since: int | None = None
    until: int | None = None

    def parameters(self) -> dict[str, Any]:
        """Return the filters that the node itself applies.

        PVE's own filter C(errors) also matches tasks with warnings (API2/Tasks.pm).
        """
        found: dict[str, Any] = {
            "source": "all",
            "vmid": self.vmid,
            "since": self.since,
            "until": self.until,
        }
        if self.user:
            found["userfilter"] = self.user.partition("!")[0]
        if len(self.types) == 1:
            found["typefilter"] = min(self.types)
        if self.failed:
            found["statusfilter"] = "error,unknown"
        return {name: value for name, value in found.items() if value is not None}

    def matches(self, task: TaskRow) -> bool:
        """Return whether a task passes every filter.

        PVE also matches parts of the names of users, and filters by one type only.
        """
        if self.types and task.type not in self.types:
            return False
        if self.failed and task.status not in (FAILED, UNKNOWN):
            return False
        return self.user in (None, task.user, f"{task.user}!{task.token}")


def read_query(params: Mapping[str, Any], now: float) -> TaskQuery:
    """Return the query that the options describe; `now` is in seconds since the epoch.

    Raises ValidationFailed.
    """
    user = params.get("started_by")
    if user is not None and not _USER.fullmatch(user):
        raise validate.refused(
            "started_by",
            user,
            "is not a user with its realm",
            "Write it as alice@pve, or with a token as alice@pve!deploy",
        )
    since = _moment(params, "since", now)
    until = _moment(params, "until", now)
    if since is not None and until is not None and since > until:
        raise validate.refused("since", params["since"], "is after until", "Exchange the two")
    vmid = params.get("vmid")
    if params.get("node") is not None:
        validate.node(params["node"])
    if params.get("name") is not None:
        validate.dns_name(params["name"])
    return TaskQuery(
        limit=validate.number(params.get("limit") or 0, 1, MAX_TASKS, "limit"),
        vmid=None if vmid is None else validate.vmid(vmid),
        user=user,
        types=frozenset(params.get("types") or ()),
        failed=bool(params.get("failed")),
        since=since,
        until=until,
    )


def read_upid(text: str) -> Upid:
    """Return the task that the option names. Raises ValidationFailed."""
    try:
        if is_upid(text):
            return parse_upid(text)
    except FleetError:
        pass
    raise validate.refused(
        "upid", text, "is not the ID of a task", "Copy it from the result of a task, UPID: included"
    )


def _moment(params: Mapping[str, Any], option: str, now: float) -> int | None:
    """Return a time or an age as seconds since the epoch."""
    text = params.get(option)
    if text is None:
        return None
    age = _AGE.fullmatch(text)
    if age:
        number, unit = age.groups()
        return max(0, int(now) - int(number) * _SECONDS[unit])
    found = seconds(text)
    if found is None:
        raise validate.refused(
            option,
            text,
            "is neither a time nor an age",
            "Write it as 2026-11-20, 2026-11-20T20:15:33Z or 24h",
        )
    return found


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

    def read(node: str) -> list[TaskRow] | FleetError:
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
