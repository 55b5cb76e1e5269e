# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for the tasks of Proxmox VE: adaptive polling, warnings and the end of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._core.classify import LOG_LINES, classify_task
from .._core.errors import FleetError, Locked, NetworkError, NotFound, TaskTimeout
from .._core.retry import TimeBudget
from .upid import Upid, parse_upid

if TYPE_CHECKING:
    from .board import TaskBoard
    from .reader import Reader

# Seconds between two looks: a twentieth of what was waited so far, so that an end is seen late by no more than that.
SHORTEST_PAUSE, LONGEST_PAUSE, PAUSE_SHARE = 0.1, 2.0, 0.05
OUTAGE = 120.0  # seconds without an answer that a wait bears
_LOG_PAGE, _LOG_PAGES = 500, 20

Progress = Callable[[str, float, str], None]
"""Called as `progress(upid, seconds waited, last known status)` after every look at a running task."""


@dataclass(frozen=True)
class TaskResult:
    """A task that ended well. `warnings` are the lines PVE marked so, `log` its last lines (only with warnings)."""

    upid: str
    node: str
    type: str
    exitstatus: str
    warnings: tuple[str, ...] = ()
    log: tuple[str, ...] = ()


def wait_for_task(
    client: Reader,
    upid: str,
    *,
    timeout: float = 300.0,
    attempted: str = "",
    progress: Progress | None = None,
    board: TaskBoard | None = None,
) -> TaskResult:
    """Return how the task ended, as soon as it has ended well.

    Raises what its exit status means (TaskFailed, Locked, Conflict ...) with the end of the log, or TaskTimeout after
    `timeout` seconds. A broken network is borne for two minutes; the request that began the task is never sent again.
    `board` tells of many tasks at once whether they still run.
    """
    task = parse_upid(upid)
    if board is None:
        return _wait(client, task, timeout, attempted, progress, None)
    board.joins(task)
    try:
        return _wait(client, task, timeout, attempted, progress, board)
    finally:
        board.leaves(task)


def _wait(
    client: Reader, task: Upid, timeout: float, attempted: str, progress: Progress | None, board: TaskBoard | None
) -> TaskResult:
    clock = client.clock
    outage = TimeBudget(clock, OUTAGE, first=0.5, factor=2.0, cap=10.0)
    began = clock.monotonic()
    while True:
        status: dict[str, Any] = {"status": "running"}
        try:
            if board is None or not board.still_runs(task):
                status = client.get("nodes", task.node, "tasks", task.text, "status", tries=1) or {}
            outage.reset()
        except (NetworkError, Locked) as error:
            waited = clock.monotonic() - began
            if waited >= timeout or not error.retryable or not outage.again():
                raise _out_of_sight(error, task, attempted) from error
            continue
        except NotFound as error:
            raise error.on(attempted=attempted or error.attempted, upid=task.text) from error
        waited = clock.monotonic() - began
        if status.get("status") == "stopped":
            return _ended(client, task, str(status.get("exitstatus") or ""), attempted)
        if progress is not None:
            progress(task.text, waited, str(status.get("status") or ""))
        if waited >= timeout:
            raise _still_runs(task, timeout, attempted)
        pause = min(LONGEST_PAUSE, max(SHORTEST_PAUSE, waited * PAUSE_SHARE))
        clock.sleep(min(pause, max(0.0, timeout - waited)))


def find_task(client: Reader, node: str, *, type: str | Iterable[str], vmid: int | str, since: float) -> str | None:
    """Return the UPID of the newest task of that type for that VM which began at `since` (epoch, seconds) or later.

    For a look after a lost answer. The clock of the server counts: give it some seconds of leeway.
    """
    types = {type} if isinstance(type, str) else set(type)
    tasks = client.get("nodes", node, "tasks", vmid=vmid, source="all", limit=50) or []
    fitting = [task for task in tasks if task.get("type") in types and int(task.get("starttime") or 0) >= int(since)]
    return max(fitting, key=lambda task: int(task["starttime"]))["upid"] if fitting else None


def task_log(client: Reader, upid: str) -> list[str]:
    """Return the lines of a task's log, or what can be had of them: an error here never hides the task's own."""
    task = parse_upid(upid)
    lines: list[str] = []
    try:
        for _page in range(_LOG_PAGES):
            found = client.get(
                "nodes", task.node, "tasks", task.text, "log", start=len(lines), limit=_LOG_PAGE, tries=1
            )
            lines.extend(str(line.get("t") or "") for line in found or [])
            if len(found or []) < _LOG_PAGE:
                break
    except FleetError:
        pass
    return [line for line in lines if line and line != "no content"]


def _ended(client: Reader, task: Upid, exitstatus: str, attempted: str) -> TaskResult:
    if exitstatus == "OK":
        return TaskResult(task.text, task.node, task.type, exitstatus)
    log = task_log(client, task.text)
    if exitstatus.startswith("WARNINGS"):
        warnings = tuple(
            line.split(":", 1)[1].strip()
            for line in log
            if line.lower().startswith(("warn:", "warning:", "task warnings:")) and not line.startswith("TASK WARNINGS")
        )
        return TaskResult(
            task.text, task.node, task.type, exitstatus, warnings or (exitstatus,), tuple(log[-LOG_LINES:])
        )
    error = classify_task(exitstatus, log, upid=task.text, path=f"/nodes/{task.node}/tasks/{task.text}")
    raise error.on(attempted=attempted or f"Task {task.type} of {task.id or task.node} on node {task.node} failed")


def _out_of_sight(error: FleetError, task: Upid, attempted: str) -> FleetError:
    return error.on(
        attempted=attempted or f"Could not follow the task {task.type} on node {task.node}",
        next_step=f"The task was started and may still run or have ended: look at {task.text} on node {task.node}",
        upid=task.text,
        retryable=False,
        dispatched=True,
    )


def _still_runs(task: Upid, timeout: float, attempted: str) -> TaskTimeout:
    return TaskTimeout(
        attempted=attempted or f"Task {task.type} on node {task.node} did not end",
        answer=f"the task still runs after {timeout:g} s",
        next_step=f"It goes on: follow {task.text} on node {task.node}, or raise the timeout",
        reason="task still runs",
        path=f"/nodes/{task.node}/tasks/{task.text}",
        upid=task.text,
        dispatched=True,
    )
