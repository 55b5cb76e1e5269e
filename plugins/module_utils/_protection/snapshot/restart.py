# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Follows a rollback until the VM runs again, by its effects if its task is not visible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..._foundation.api.upid import parse_upid
from ..._foundation.core.errors import AlreadyRunning, FleetError, Locked, PowerChanged, TaskTimeout
from ..._foundation.core.poll import poll
from .model import START, SnapshotVm
from .read import new_task, running_task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..._foundation.api.client import Client


def wait_for_start(client: Client, vm: SnapshotVm, rollback: str, timeout: int) -> tuple[str, ...]:
    """Wait until the VM runs, and return the warnings of the start that task `rollback` began.

    `rollback` is a UPID. The HA manager starts a VM under HA, so the VM's state decides. Raises the
    error of the start task, or TaskTimeout after `timeout` seconds.
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
    for _remaining in poll(client.clock, timeout, first=0.2):
        if _runs(client, vm):
            return warnings
    _raise_timeout(attempted, timeout, upid or "")


def _raise_timeout(attempted: str, timeout: int, upid: str) -> NoReturn:
    """Raise TaskTimeout for a VM that does not run in time; `upid` started it (pure)."""
    raise TaskTimeout(
        attempted=attempted,
        answer=f"it does not run after {timeout} s",
        next_step="Look at the VM's tasks and at the HA manager, then start it",
        reason="not running",
        upid=upid,
    )


def runs_or_starts(client: Client, vm: SnapshotVm) -> bool:
    """Return whether the VM runs or is being started, in at most two requests.

    The tasks are read first: if a start ends between the two requests, the VM already runs.
    """
    if running_task(client, vm.node, vm.vmid, vm.task_of(START)) is not None:
        return True
    return _runs(client, vm)


def require_same_power(vm: SnapshotVm, now: bool) -> None:
    """Raise PowerChanged if another run has started or stopped the VM since it was read; `now` is
    whether it runs (pure).

    A rollback stops the VM; the plan to start it again depends on its state when it was read.
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


LOCK = "rollback"
# In seconds: the time by which a started task has locked the VM. It waits ten for the lock file.
_PATIENCE = 20.0


def is_rolled_back(client: Client, vm: SnapshotVm, snapshot: str, timeout: float) -> bool:
    """Return whether a started rollback succeeded; wait at most `timeout` seconds.

    `vm` is the VM as read before the rollback. PVE keeps the lock of a rollback that failed halfway
    (pve-guest-common: AbstractConfig.pm, snapshot_rollback). Return False if the outcome is
    unknown. Raises FleetError.
    """
    was_locked = False
    for remaining in poll(client.clock, timeout, first=0.2):
        config = client.get(*vm.path, "config", params={"current": 1})
        if config.get("lock") == LOCK:
            was_locked = True
            continue
        if was_locked or _has_changed(vm, config):
            return config.get("parent") == snapshot
        if remaining < timeout - _PATIENCE:
            return False
    return False


def _has_changed(vm: SnapshotVm, config: Mapping[str, Any]) -> bool:
    """Return whether the VM shows a sign of a rollback since it was read (pure)."""
    if config.get("vmgenid", "") != vm.generation:
        return True
    return config.get("parent") != vm.tree.parent


def wait_for_unlocked(client: Client, vm: SnapshotVm) -> bool:
    """Return whether another run's rollback, whose task is not visible, ends in time.

    Until it ends, it is unknown whether the VM must run afterwards.
    """
    for _remaining in poll(client.clock, client.connection.lock_timeout, first=0.2):
        config = client.get(*vm.path, "config", params={"current": 1})
        if config.get("lock") != LOCK:
            return True
    return False


def locked(vm: SnapshotVm) -> Locked:
    """Return the error for a VM that keeps the lock of a rollback (pure)."""
    return Locked(
        attempted=f"{vm.label} was not rolled back",
        answer=f"VM is locked ({LOCK})",
        reason=f"locked ({LOCK})",
        dispatched=False,
    )


def with_restart_step(error: FleetError) -> FleetError:
    """Return the error of a rollback with the next step for a VM that ran before (pure).

    PVE stops the VM first, and starts it again only after a successful rollback.
    """
    step = "It ran before: start it if it is stopped by now"
    if error.next_step:
        step = f"{error.next_step}. {step}"
    return error.on(next_step=step)
