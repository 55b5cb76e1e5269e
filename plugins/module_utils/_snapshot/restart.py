# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until a VM runs again after a rollback, whose task only starts it by another task."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from .._api.upid import parse_upid
from .._core.errors import AlreadyRunning, FleetError, PowerChanged, TaskTimeout
from .._core.poll import poll
from .model import START, SnapshotVm
from .read import new_task, running_task

if TYPE_CHECKING:
    from .._api.client import Client


def wait_for_start(client: Client, vm: SnapshotVm, rollback: str, timeout: int) -> tuple[str, ...]:
    """Return the warnings of the start that the task `rollback` (a UPID) began, once the VM runs.

    A VM under HA is started by the HA manager, so the VM's state decides. Raises the error of the
    start's task, or TaskTimeout after `timeout` seconds.
    """
    attempted = f"{vm.label} was rolled back, but could not be started again"
    warnings: tuple[str, ...] = ()
    task = vm.task_of(START)
    upid = running_task(client, vm.node, vm.vmid, task)
    if upid is None and rollback:
        since = parse_upid(rollback).starttime
        upid = new_task(client, vm.node, vm.vmid, task, since, known=set())
    if upid is not None:
        try:
            warnings = client.wait(upid, timeout=timeout, attempted=attempted).warnings
        except AlreadyRunning:
            pass
        except FleetError as error:
            raise error.on(attempted=attempted) from error
    for _left in poll(client.clock, timeout, first=0.2):
        if _runs(client, vm):
            return warnings
    _raise_timeout(attempted, timeout, upid or "")


def _raise_timeout(attempted: str, timeout: int, upid: str) -> NoReturn:
    """Raise TaskTimeout for a VM that does not run in time; `upid` is the task of its start
    (pure).
    """
    raise TaskTimeout(
        attempted=attempted,
        answer=f"it does not run after {timeout} s",
        next_step="Look at the VM's tasks and at the HA manager, then start it",
        reason="not running",
        upid=upid,
    )


def runs_or_starts(client: Client, vm: SnapshotVm) -> bool:
    """Return whether the VM runs or is being started, in at most two requests.

    The tasks are read first: a start that ends between the two readings has left a running VM.
    """
    if running_task(client, vm.node, vm.vmid, vm.task_of(START)) is not None:
        return True
    return _runs(client, vm)


def require_same_power(vm: SnapshotVm, now: bool) -> None:
    """Raise PowerChanged if another run has started or stopped the VM since it was read; `now` is
    whether it runs (pure).

    A rollback stops the VM, and whether it starts it again was planned from that reading.
    """
    if now == vm.tree.running:
        return
    verb = "started" if now else "stopped"
    raise PowerChanged(
        attempted=f"{vm.label} was not rolled back",
        answer=f"another run has {verb} it since it was read",
        next_step="Run this again",
        reason="power changed",
    )


def _runs(client: Client, vm: SnapshotVm) -> bool:
    current = client.get(*vm.path, "status", "current") or {}
    return current.get("status") == "running"
