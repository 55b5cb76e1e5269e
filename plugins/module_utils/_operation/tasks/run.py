# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module task: waits for a task of Proxmox VE, or stops it.

Source: pve-manager, PVE/API2/Tasks.pm, stop_task: users can stop their own tasks, and all tasks if
they have Sys.Modify on the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..._foundation.api.protocols import Reader
from ..._foundation.api.tasks import task_log, task_warnings
from ..._foundation.api.upid import Upid
from ..._foundation.core import validate
from ..._foundation.core.errors import FleetError, TaskTimeout
from ..._foundation.core.failures.classify import LOG_LINES
from ..._foundation.core.result import Result
from ..._foundation.resource.engine import Execution, result_of
from ..._foundation.resource.manage import Hooks, manage
from ..._foundation.resource.plan import Plan, Step
from .read import read_task, read_upid
from .row import RUNNING, TaskRow, describe_task

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

STOPPED = "stopped"
_UNKNOWN_YET = ("ended", "duration")  # only the list of the node has them


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Wait for a task or stop it, and return its result. Check mode neither stops a task nor waits
    for it.

    Raises the error of a failed task, except with C(state=stopped).
    """
    upid = read_upid(params["upid"])
    timeout = validate.count(params.get("task_timeout"), 300, "task_timeout")
    if params["state"] == STOPPED:
        return _stop(client, upid, timeout, check_mode)
    task = read_task(client, upid)
    if check_mode and task.status == RUNNING:
        return _result(client, Plan(), task)
    client.wait(upid.text, timeout=timeout)
    return _result(client, Plan(), read_task(client, upid))


def _stop(client: Client, upid: Upid, timeout: int, check_mode: bool) -> Result:
    """Stop a task and wait for its end. Raises TaskTimeout."""

    def report(plan: Plan, task: TaskRow, execution: Execution | None) -> Result:
        return _result(client, plan, task, execution.done if execution else ())

    def timed_out(_task: TaskRow) -> FleetError:
        return TaskTimeout(
            f"Timed out after {timeout} s waiting for the end of {upid.text}: it still runs after "
            "the request to stop it",
            "Run this again, or look at the processes of its node",
            "task still runs",
            upid=upid.text,
        )

    hooks = Hooks[TaskRow](timeout, (), lambda task: task.status != RUNNING, timed_out)
    read = partial(read_task, client, upid)
    return manage(client, read, plan_stop, report, check_mode=check_mode, hooks=hooks)


def plan_stop(task: TaskRow) -> Plan:
    """Return the step that stops a task, none if it has ended (pure)."""
    if task.status != RUNNING:
        return Plan()
    about = f" of {task.id}" if task.id else ""
    summary = f"Stop task {task.type}{about} on node {task.node}"
    path = ("nodes", task.node, "tasks", task.upid)
    step = Step("stop", summary, "DELETE", path, is_task=False)
    return Plan((step,), {"status": task.status}, {"status": STOPPED})


def _result(client: Reader, plan: Plan, task: TaskRow, done: Sequence[str] = ()) -> Result:
    """Return a task with its warnings and the end of its log, as far as the log can be read."""
    log = task_log(client, task.upid)
    row = {name: value for name, value in describe_task(task).items() if name not in _UNKNOWN_YET}
    warnings = list(task_warnings(log))
    described = {**row, "warnings": warnings, "log": log[-LOG_LINES:]}
    header = f"task {task.upid}"
    execution = Execution(tuple(done), tuple(warnings))
    return result_of(plan, {"task": described}, execution, header=header)
