# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waits until the HA manager has carried out a step.

For a VM that it manages, PVE answers start, stop, shutdown and migrate with a task that ends at
once (qemu-server: API2/Qemu.pm). The manager starts its work in its next round, within some 20
seconds, with tasks of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from ...._foundation.api.tasks import find_task
from ...._foundation.api.upid import TaskResult, parse_upid
from ...._foundation.cluster.state import node_of
from ...._foundation.core.clock import Clock, poll
from ...._foundation.core.errors import FleetError, NotFound, TaskFailed, TaskTimeout
from ...._foundation.resource.engine import attempted
from ...._foundation.resource.plan import Step
from ...kinds.kind import Kind
from .read import is_elsewhere

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0  # seconds
# Seconds. A VM is frozen for less while the HA services of its node restart.
_LONGEST_FREEZE = 60.0


def await_manager(
    client: Client, kind: Kind, step: Step, result: TaskResult, timeout: float
) -> None:
    """Return once the effect of a step is reached, also if its task only asked the HA manager.

    Raises the error of the manager's own task, or TaskTimeout after `timeout` seconds.
    """
    if result.type not in ("hastart", "hastop", "hamigrate"):
        return
    began = attempted(step.summary)
    wait = _await_arrival if result.type == "hamigrate" else _await_power
    wait(client, kind, step, result, timeout=timeout, began=began)


def _tasks_for(kind: Kind, result: TaskResult) -> Collection[str]:
    """Return the types of the tasks that the HA manager may start for a task that asked it."""
    prefix = kind.task_prefix
    tasks = {
        "hastart": (f"{prefix}start",),
        "hastop": (f"{prefix}stop", f"{prefix}shutdown"),
        "hamigrate": (kind.migration_task,),
    }
    return tasks[result.type]


def _await_power(
    client: Client, kind: Kind, step: Step, result: TaskResult, *, timeout: float, began: str
) -> None:
    """Wait until the VM runs, on any node on which the manager starts it, or is stopped."""
    node = str(step.path[1])
    vmid = int(step.path[3])
    wanted = "running" if result.type == "hastart" else "stopped"
    current: Mapping[str, Any] = {}
    effort = _Effort(client.clock)
    for _remaining in poll(client.clock, timeout, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE):
        node, current = _find_current(client, kind, node, vmid)
        if current.get("status") == wanted:
            return
        if effort.is_finished(current):
            break
    started = find_task(
        client,
        node,
        type=_tasks_for(kind, result),
        vmid=vmid,
        since=parse_upid(result.upid).starttime,
    )
    if started is not None:
        client.wait(started, timeout=0, attempted=began)  # raises the error of the task
    _require_effort(current, began, result)
    _raise_timeout(began, wanted, timeout, result)


class _Effort:
    """Decides from the states of a VM whether the HA manager still works on it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._not_frozen = clock.monotonic()  # the last time that the VM was not frozen

    def is_finished(self, current: Mapping[str, Any]) -> bool:
        """Return whether the VM is in state error, or has been frozen for too long."""
        now = self._clock.monotonic()
        state = _managed_state(current)
        if state != "freeze":
            self._not_frozen = now
        return state == "error" or now - self._not_frozen > _LONGEST_FREEZE


def _managed_state(current: Mapping[str, Any]) -> str:
    """Return the state of a VM in the HA manager, from its status (pure)."""
    managed = current.get("ha") or {}
    return managed.get("state") or ""


def _find_current(
    client: Client, kind: Kind, node: str, vmid: int
) -> tuple[str, Mapping[str, Any]]:
    """Return the node of the VM, and its status there."""
    try:
        return node, _current(client, kind, node, vmid)
    except FleetError as error:
        if not is_elsewhere(error):
            raise
        now = node_of(client, vmid)
        if now is None or now == node:
            raise
        return now, _current(client, kind, now, vmid)


def _current(client: Client, kind: Kind, node: str, vmid: int) -> Mapping[str, Any]:
    path = kind.path(node, vmid, "status", "current")
    current: Mapping[str, Any] = client.get(*path)
    return current


def _await_arrival(
    client: Client, kind: Kind, step: Step, result: TaskResult, *, timeout: float, began: str
) -> None:
    """Wait until the VM of a migrate step is on its target."""
    source = str(step.path[1])
    vmid = int(step.path[3])
    target = str(step.data["target"])
    since = parse_upid(result.upid).starttime
    followed: str | None = None
    current: Mapping[str, Any] = {}
    effort = _Effort(client.clock)
    for remaining in poll(client.clock, timeout, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE):
        if _arrived(client, kind, vmid, target):
            return
        if remaining <= 0:
            break
        started = find_task(client, source, type=_tasks_for(kind, result), vmid=vmid, since=since)
        if started is None or started == followed:
            current = _at_source(client, kind, source, vmid)
            if effort.is_finished(current):
                break
            continue
        followed = started
        client.wait(started, timeout=remaining, attempted=began)
        if _arrived(client, kind, vmid, target):
            return
    _require_effort(current, began, result)
    _raise_timeout(began, "there", timeout, result)


def _at_source(client: Client, kind: Kind, node: str, vmid: int) -> Mapping[str, Any]:
    """Return the status of a VM on the node that it leaves; empty once the VM has left."""
    try:
        return _current(client, kind, node, vmid)
    except NotFound:
        return {}


def _arrived(client: Client, kind: Kind, vmid: int, node: str) -> bool:
    try:
        config = client.get(*kind.path(node, vmid, "config"))
    except NotFound:
        return False
    return not config.get("lock")


def _raise_timeout(began: str, wanted: str, timeout: float, result: TaskResult) -> NoReturn:
    """Raise TaskTimeout for work of the HA manager that took too long (pure)."""
    raise TaskTimeout(
        f"{began}: the HA manager took the request, but the VM is not {wanted} after {timeout:g} s",
        "Look at the HA manager's status, then run this again: it continues from there",
        "HA has not done it",
        upid=result.upid,
    )


def _require_effort(current: Mapping[str, Any], began: str, result: TaskResult) -> None:
    """Raise TaskFailed if HA has put the VM into state error, TaskTimeout if frozen (pure)."""
    state = _managed_state(current)
    if state == "error":
        raise TaskFailed(
            f"{began}: the HA manager has the VM in state error and does nothing with it",
            (
                "Repair what its tasks failed at, set it to disabled in the HA manager, then run"
                " this again"
            ),
            "HA error",
            upid=result.upid,
        )
    if state == "freeze":
        raise TaskTimeout(
            f"{began}: the HA manager took the request, but has the VM in state freeze: it is "
            "disarmed with resource mode freeze, or the HA services of the node do not run",
            "Arm the HA manager with pve.fleet.ha_state, then run this again",
            "HA frozen",
            upid=result.upid,
        )
