# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for the tasks of Proxmox VE: adaptive polling, warnings and the end of the log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ..core.clock import Clock
from ..core.errors import FleetError, Locked, NetworkError, NotFound, TaskTimeout
from ..core.failures.classify import LOG_LINES, classify_task, lock_in
from ..core.retry import TimeBudget
from .generated.guests import GUEST_TYPES
from .protocols import Notes, Progress, Reader, Sender, Waiter
from .request import Request
from .task_poller import TaskPoller
from .upid import TaskResult, Upid, is_upid, parse_upid

# Seconds between two polls: a twentieth of the wait so far, so an end is noticed with at most that
# delay.
SHORTEST_PAUSE, LONGEST_PAUSE, PAUSE_SHARE = 0.08, 2.0, 0.05
# Minimum seconds without an answer that a wait tolerates: giving up would abandon a running task.
OUTAGE = 120.0
# Lines that end a warning: the end of the task, the next guest of a bulk action, progress.
_NOT_OF_A_WARNING = re.compile(
    r"TASK |(?:\w+ ){1,2}(?:guests|VM|CT)\b|drive-|transferred |\d", re.IGNORECASE
)
# Lines that certainly continue a warning; any other line can be the next message of the task.
_MIDDLE_OF_A_TEXT = re.compile(r"\s|https?://")
# The warning that is followed by sentences on how to enroll certificates (QemuServer.pm,
# check_efi_vars).
_EXPLAINED = re.compile(r"EFI disk without 'ms-cert")
_LOG_PAGE, _LOG_PAGES = 500, 20
_WELL = "OK"  # the exit status of a task without errors and warnings


Get = Callable[..., Any]
"""Returns the data of a GET on a path, as `Client.get` does."""

# Tasks of people who use a console: they hold no lock.
CONSOLE_TASKS = frozenset(("vncproxy", "vncshell", "termproxy", "spiceproxy", "spiceshell"))
_AUDIT = "Sys.Audit"
_HOLDER = "holder"
_UNSEEN = (
    "Wait until the running task is over: the tasks of other users are visible with {audit} on"
    " /nodes/{node} only"
)
_RUNS = "Wait until task {upid} has ended, then run this again"


class NoNotes:
    """Records nothing."""

    def began(self, upid: str) -> None:
        """Keep no note."""

    def ended(self, upid: str) -> None:
        """Keep no note."""

    def step(self, summary: str) -> None:
        """Keep no note."""

    def about(self, label: str) -> Notes:
        """Return the notes about one of several VMs, which record nothing either."""
        return self

    def complete(self) -> None:
        """Keep no note."""


@dataclass(frozen=True)
class TaskWaiter:
    """Waits for tasks by polling them.

    A network failure is tolerated for `outage` seconds; the request that started the task is never
    sent again. If several tasks are awaited, `task_poller` is asked first.
    """

    reader: Reader
    outage: float = OUTAGE
    progress: Progress | None = None
    task_poller: TaskPoller | None = None
    notes: Notes = NoNotes()

    def wait(
        self, upid: str, timeout: float, attempted: str, progress: Progress | None = None
    ) -> TaskResult:
        """Return the result of the task once it has succeeded.

        Raises the error of its exit status (TaskFailed, Locked, Conflict ...) with the end of the
        log, or TaskTimeout after `timeout` seconds.
        """
        task = parse_upid(upid)
        progress = progress or self.progress
        self.notes.began(task.text)
        if self.task_poller is None:
            return self._follow(task, timeout, attempted, progress)
        self.task_poller.joins(task)
        try:
            return self._follow(task, timeout, attempted, progress)
        finally:
            self.task_poller.leaves(task)

    def _follow(
        self, task: Upid, timeout: float, attempted: str, progress: Progress | None
    ) -> TaskResult:
        clock = self.reader.clock
        outage = TimeBudget(clock, self.outage, first=0.5, factor=2.0, cap=10.0)
        began = clock.monotonic()
        while True:
            try:
                status = self._status(task)
                outage.reset()
            except (NetworkError, Locked) as error:
                is_over = clock.monotonic() - began >= timeout or not error.retryable
                if is_over or not outage.again():
                    raise _out_of_sight(error, task, attempted) from error
                continue
            except NotFound as error:
                raise error.on(attempted=attempted or error.attempted, upid=task.text) from error
            except FleetError as error:
                raise _out_of_sight(error, task, attempted) from error
            waited = clock.monotonic() - began
            if status.get("status") == "stopped":
                exitstatus = str(status.get("exitstatus") or "")
                self.notes.ended(task.text)
                log: list[str] = []
                if exitstatus != _WELL:
                    log = task_log(self.reader, task.text)
                return _result_of(task, exitstatus, log, attempted)
            if progress is not None:
                progress(task.text, waited, str(status.get("status") or ""))
            if waited >= timeout:
                raise _still_runs(task, timeout, attempted)
            clock.sleep(min(_pause(waited), max(0.0, timeout - waited)))

    def _status(self, task: Upid) -> dict[str, Any]:
        """Return the status of a task from PVE, or as running if its node lists it as running."""
        if self.task_poller is not None and self.task_poller.still_runs(task):
            return {"status": "running"}
        path = ("nodes", task.node, "tasks", task.text, "status")
        return self.reader.get(*path, tries=1) or {}


@dataclass(frozen=True)
class Tasks:
    """Starts tasks and waits for them.

    A task that failed because of a lock did nothing, so the whole operation is sent again within
    `lock_timeout` seconds.
    """

    sender: Sender
    waiter: Waiter
    clock: Clock
    lock_timeout: float

    def run(self, request: Request, timeout: float) -> TaskResult:
        """Return the result of the task; if there is no task (some versions answer null), at once.

        `timeout` is in seconds. Raises FleetError.
        """
        budget = TimeBudget(self.clock, self.lock_timeout)
        request = replace(request, lock_budget=budget)
        while True:
            answer = self.sender.send(request)
            if not is_upid(answer):
                return TaskResult("", "", "", _WELL)
            try:
                return self.waiter.wait(answer, timeout, request.attempted)
            except Locked as error:
                if not budget.again():
                    failed = request.of_try(budget.tries).failure(error)
                    raise with_holder(self.sender, request, failed) from error


def _pause(waited: float) -> float:
    """Return the seconds until the next poll of a task that was awaited for `waited` seconds."""
    return min(LONGEST_PAUSE, max(SHORTEST_PAUSE, waited * PAUSE_SHARE))


def find_task(
    client: Reader, node: str, *, type: str | Iterable[str], vmid: int | str, since: float
) -> str | None:
    """Return the UPID of the newest task of that type for that VM which began at `since` or later.

    Used to check the state after a lost answer. `since` is in seconds since the epoch, by the
    clock of the server: allow some seconds.
    """
    types = {type} if isinstance(type, str) else set(type)
    rows = client.get("nodes", node, "tasks", vmid=vmid, source="all", limit=50) or []
    return _newest([row for row in rows if row.get("type") in types], since)


def find_worker(client: Reader, node: str, type: str, ident: str, since: float) -> str | None:
    """Return the same for a task of another object, such as a service or a disk."""
    rows = client.get("nodes", node, "tasks", typefilter=type, source="all", limit=50) or []
    return _newest([row for row in rows if row.get("id") == ident], since)


def _newest(rows: Sequence[Mapping[str, Any]], since: float) -> str | None:
    """Return the UPID of the newest of these tasks which began at `since` or later (pure)."""
    newest = int(since)
    found = None
    for row in rows:
        started = int(row.get("starttime") or 0)
        if started < newest:
            continue
        if found is None or started > newest:
            newest = started
            found = row["upid"]
    return found


def task_log(client: Reader, upid: str) -> list[str]:
    """Return the lines of a task's log that can be read: an error here must not hide the error of
    the task.
    """
    lines: list[str] = []
    with suppress(FleetError):
        for line in _log_lines(client, upid):
            lines.append(line)
    return lines


def read_task_log(client: Reader, upid: str) -> list[str]:
    """Return the lines of a task's log, 10,000 at most. Raises FleetError."""
    return list(_log_lines(client, upid))


def _log_lines(client: Reader, upid: str) -> Iterator[str]:
    task = parse_upid(upid)
    path = ("nodes", task.node, "tasks", task.text, "log")
    for page in range(_LOG_PAGES):
        rows = client.get(*path, start=page * _LOG_PAGE, limit=_LOG_PAGE, tries=1) or []
        for row in rows:
            line = str(row.get("t") or "")
            if line not in ("", "no content"):
                yield line
        if len(rows) < _LOG_PAGE:
            return


def _result_of(task: Upid, exitstatus: str, log: list[str], attempted: str) -> TaskResult:
    """Return the result of a task, with its warnings. Raises the error of its exit status (pure).

    `log` is needed for every exit status but OK.
    """
    if exitstatus == _WELL:
        return TaskResult(task.text, task.node, task.type, exitstatus)
    if exitstatus.startswith("WARNINGS"):
        return TaskResult(
            upid=task.text,
            node=task.node,
            type=task.type,
            exitstatus=exitstatus,
            warnings=task_warnings(log) or (exitstatus,),
            log=tuple(log[-LOG_LINES:]),
        )
    path = f"/nodes/{task.node}/tasks/{task.text}"
    error = classify_task(exitstatus, log, upid=task.text, path=path)
    subject = task.id or task.node
    plain = f"Task {task.type} of {subject} on node {task.node} failed"
    raise error.on(attempted=attempted or plain)


def task_warnings(log: Iterable[str]) -> tuple[str, ...]:
    """Return the warnings in the log of a task, each joined with the lines below that belong to it
    (pure).

    PVE marks only the first line of a warning (RESTEnvironment.pm, warn).
    """
    found: list[list[str]] = []
    is_open = False
    for line in log:
        kind, _colon, text = line.partition(":")
        if kind.lower() in ("warn", "warning"):
            found.append([text.strip()])
            is_open = True
            continue
        is_open = is_open and _continues(found[-1], line)
        if is_open:
            found[-1].append(line.strip())
    return tuple(" ".join(lines) for lines in found)


def _continues(warning: list[str], line: str) -> bool:
    """Return whether a line of a log still belongs to a warning, as its text or an explanation
    (pure).
    """
    if _NOT_OF_A_WARNING.match(line):
        return False
    if _EXPLAINED.match(warning[0]):
        return True
    return _MIDDLE_OF_A_TEXT.match(line) is not None


def _out_of_sight(error: FleetError, task: Upid, attempted: str) -> FleetError:
    return error.on(
        attempted=attempted or f"Could not follow the task {task.type} on node {task.node}",
        next_step=(
            f"The task was started and may still run or have ended: look at {task.text} on node"
            f" {task.node}"
        ),
        upid=task.text,
        retryable=False,
        dispatched=True,
    )


def _still_runs(task: Upid, timeout: float, attempted: str) -> TaskTimeout:
    attempted = attempted or f"Task {task.type} on node {task.node} did not end"
    return TaskTimeout(
        f"{attempted}: the task still runs after {timeout:g} s",
        f"It continues: follow {task.text} on node {task.node}, or raise task_timeout",
        "task still runs",
        path=f"/nodes/{task.node}/tasks/{task.text}",
        upid=task.text,
    )


@dataclass(frozen=True)
class Holder:
    """The task that holds a lock; without a UPID, `is_hidden` if the login may not see it."""

    upid: str = ""
    is_hidden: bool = False
    has_ended: bool = False

    def next_step(self, node: str) -> str:
        """Return the next step while the task runs or may run, otherwise an empty text."""
        if self.upid:
            return _RUNS.format(upid=self.upid)
        return _UNSEEN.format(audit=_AUDIT, node=node) if self.is_hidden else ""

    def refusal(self, attempted: str, node: str, lock: str) -> Locked:
        """Return the error for a guest on which the task still works, or may work."""
        return Locked(
            f"{attempted}: it is locked ({lock})",
            self.next_step(node),
            f"locked ({lock})",
            upid=self.upid,
        )


def find_holder(get: Get, node: str, vmid: str | int, lock: str | None) -> Holder:
    """Return the task that works on a locked guest; one or two requests. Raises FleetError.

    A login without Sys.Audit on the node sees only its own tasks (pve-manager: API2/Tasks.pm,
    node_tasks). A backup of several guests has no VMID (API2/VZDump.pm, vzdump), and a clone has
    that of its source (qemu-server: API2/Qemu.pm, clone_vm).
    """
    tasks = get("nodes", node, "tasks", source="active")
    for task in tasks or ():
        if not task.get("endtime") and _may_hold(task, str(vmid), lock or ""):
            return Holder(str(task["upid"]))
    path = f"/nodes/{node}"
    held = get("access", "permissions", path=path)
    return Holder(is_hidden=_AUDIT not in (held or {}).get(path, {}))


def _may_hold(task: Mapping[str, Any], vmid: str, lock: str) -> bool:
    """Return whether a running task can hold this lock of a guest (pure)."""
    kind = str(task.get("type") or "")
    if str(task.get("id") or "") == vmid:
        return kind not in CONSOLE_TASKS
    if lock == "backup":
        return kind == "vzdump" and not task.get("id")
    return lock in ("clone", "create") and kind.endswith("clone")


def with_holder(sender: Sender, request: Request, error: FleetError) -> FleetError:
    """Return a final refusal because of a lock, with the task that still runs on the guest: its
    lock must stay. Without such a task, or if it cannot be read, the error is unchanged.
    """
    path = request.path
    is_of_guest = len(path) > 3 and path[2] in GUEST_TYPES
    if not isinstance(error, Locked) or not is_of_guest:
        return error

    def get(*segments: str, **values: str) -> Any:
        return sender.send(Request("GET", segments, values, tries=1))

    try:
        holder = find_holder(get, path[1], path[3], lock_in(error))
    except FleetError:
        return error
    next_step = holder.next_step(path[1])
    if not next_step:
        return error
    return error.on(next_step=next_step, details={**error.details, _HOLDER: holder.upid})


def holder_of(error: FleetError) -> str:
    """Return the task that `with_holder` found, or an empty text (pure)."""
    return str(error.details.get(_HOLDER) or "")


def may_be_held(error: FleetError) -> bool:
    """Return whether a task works on the guest of this error, or may work on it (pure)."""
    return _HOLDER in error.details
