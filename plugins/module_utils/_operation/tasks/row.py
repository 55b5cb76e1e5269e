# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One task of Proxmox VE as its node lists it (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.api.upid import parse_upid
from ..._foundation.core.quantities import whole_number
from ..._foundation.core.times import iso

RUNNING, OK, WARNING, FAILED, UNKNOWN = "running", "ok", "warning", "failed", "unknown"
# Types of tasks that remove a guest; afterwards, another guest can have its VMID.
REMOVALS = ("qmdestroy", "vzdestroy")
# Fields that the ID of a task also contains.
_PARTS = frozenset(("user", "type", "id", "starttime"))
_STATUS = {"RUNNING": RUNNING, "OK": OK, "unexpected status": UNKNOWN, None: UNKNOWN}


@dataclass(frozen=True)
class TaskRow:
    """One task. Times are seconds since the epoch, by the clock of its node; 0 if unknown.

    `id` is the object of the task, often a VMID. `user` has the realm and no token.
    """

    upid: str
    node: str
    type: str
    id: str
    user: str
    token: str | None
    started: int
    ended: int
    status: str
    exitstatus: str | None

    @property
    def vmid(self) -> int | None:
        """The VMID of the guest that the task concerns, or None."""
        return whole_number(self.id)

    @property
    def removes(self) -> bool:
        """Whether the task removed a guest."""
        return self.type in REMOVALS and self.status in (OK, WARNING)


def task_of(row: Mapping[str, Any], node: str) -> TaskRow:
    """Return the task of a row that this node lists.

    The token is part of the user in a running task, and a separate field in a finished task
    (pve-manager, API2/Tasks.pm, node_tasks). The ID of the task provides fields that the row lacks.
    """
    if not row.keys() >= _PARTS:
        upid = parse_upid(row["upid"])
        row = {**{part: getattr(upid, part) for part in _PARTS}, **row}
    user, _mark, token = str(row["user"]).partition("!")
    exitstatus = row.get("status")
    status = status_of(exitstatus)
    if status == RUNNING:
        exitstatus = None
    return TaskRow(
        upid=str(row["upid"]),
        node=node,
        type=str(row["type"]),
        id=str(row["id"]),
        user=user,
        token=str(row.get("tokenid") or token) or None,
        started=int(row["starttime"]),
        ended=int(row.get("endtime", 0)),
        status=status,
        exitstatus=exitstatus,
    )


def status_of(exitstatus: str | None) -> str:
    """Return the status of a task by its exit status (pve-common, Tools.pm,
    upid_normalize_status_type).

    A task whose worker was killed has no exit status, or C(unexpected status).
    """
    if exitstatus is not None and exitstatus.startswith("WARNINGS: "):
        return WARNING
    return _STATUS.get(exitstatus, FAILED)


def newest_first(tasks: Iterable[TaskRow]) -> list[TaskRow]:
    """Return each task once, the latest start first."""
    by_upid = {task.upid: task for task in tasks}
    return sorted(by_upid.values(), key=lambda task: (task.started, task.upid), reverse=True)


def removals_of(tasks: Iterable[TaskRow]) -> dict[int, int]:
    """Return the time when the last guest of each VMID was removed, in seconds since the epoch."""
    found: dict[int, int] = {}
    for task in tasks:
        if task.removes and task.vmid is not None:
            found[task.vmid] = max(task.ended, found.get(task.vmid, 0))
    return found


def is_of_earlier_guest(task: TaskRow, removals: Mapping[int, int]) -> bool:
    """Return whether a task concerns a removed guest whose VMID may have been reused.

    Times are whole seconds: a task in the second of the removal counts as earlier.
    """
    if task.removes:
        return True
    return task.vmid is not None and task.started <= removals.get(task.vmid, -1)


def describe_task(task: TaskRow) -> dict[str, Any]:
    """Return a task as modules report it; a duration is in seconds."""
    duration = max(0, task.ended - task.started) if task.ended else None
    return {
        "upid": task.upid,
        "node": task.node,
        "type": task.type,
        "id": task.id,
        "vmid": task.vmid,
        "user": task.user,
        "token": task.token,
        "status": task.status,
        "exitstatus": task.exitstatus,
        "started": iso(task.started),
        "ended": iso(task.ended),
        "duration": duration,
    }
