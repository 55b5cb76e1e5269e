# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waits until a VM runs again after a rollback. The rollback's task only begins the start, as a task of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._api.upid import parse_upid
from .._core.errors import Conflict, FleetError, TaskTimeout
from .._core.retry import TimeBudget
from .model import Machine
from .read import new_task, running_task

if TYPE_CHECKING:
    from .._api.client import Client

START = "qmstart"


def wait_for_start(client: Client, machine: Machine, rollback: str, timeout: int) -> tuple[str, ...]:
    """Return the warnings of the start that the rollback's task (a UPID) began, once the VM runs.

    A VM under HA is started by the HA manager, so its state is what counts in the end. Raises the error of the start's
    task, or TaskTimeout after `timeout` seconds.
    """
    attempted = f"{machine.label} was rolled back, but could not be started again"
    warnings: tuple[str, ...] = ()
    upid = running_task(client, machine.node, machine.vmid, START)
    if upid is None and rollback:
        upid = new_task(client, machine.node, machine.vmid, START, parse_upid(rollback).starttime, set())
    if upid is not None:
        try:
            warnings = client.wait(upid, timeout=timeout, attempted=attempted).warnings
        except Conflict as error:
            if error.reason != "already running":
                raise error.on(attempted=attempted) from error
        except FleetError as error:
            raise error.on(attempted=attempted) from error
    budget = TimeBudget(client.clock, timeout, first=0.2, cap=2.0)
    while not _runs(client, machine):
        if not budget.again():
            raise TaskTimeout(
                attempted=attempted,
                answer=f"it does not run after {timeout} s",
                next_step="Look at the VM's tasks and at the HA manager, then start it",
                reason="not running",
                upid=upid or "",
            )
    return warnings


def _runs(client: Client, machine: Machine) -> bool:
    current = client.get("nodes", machine.node, "qemu", machine.vmid, "status", "current") or {}
    return current.get("status") == "running"
