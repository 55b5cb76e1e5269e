# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Follow a rollback whose task cannot be seen, by its effects on the VM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core.errors import FleetError, Locked
from .._core.poll import poll
from .model import SnapshotVm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._api.client import Client

LOCK = "rollback"
# Seconds in which a task that was started has locked the VM: it waits for its lock file for ten.
_PATIENCE = 20.0


def is_rolled_back(client: Client, vm: SnapshotVm, snapshot: str, timeout: float) -> bool:
    """Return whether a rollback that was started has ended well; wait at most `timeout` seconds.

    `vm` is the VM as read before. PVE keeps the lock of a rollback that failed in the middle
    (pve-guest-common: AbstractConfig.pm, snapshot_rollback). Also False if the outcome is unknown.
    Raises FleetError.
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
    """Return whether a rollback of another run, of which no task is visible, ends in time.

    Before that, it is unknown whether the VM must run afterwards.
    """
    for _left in poll(client.clock, client.connection.lock_timeout, first=0.2):
        config = client.get(*vm.path, "config", params={"current": 1})
        if config.get("lock") != LOCK:
            return True
    return False


def locked(vm: SnapshotVm) -> Locked:
    """Return the error about a VM that keeps the lock of a rollback (pure)."""
    return Locked(
        attempted=f"{vm.label} was not rolled back",
        answer=f"VM is locked ({LOCK})",
        reason=f"locked ({LOCK})",
        dispatched=False,
    )


def with_restart_step(error: FleetError) -> FleetError:
    """Return the error of a rollback with the next step for a VM that ran before (pure).

    PVE stops it first, and starts it only after a rollback that ended well.
    """
    step = "It ran before: start it if it is stopped by now"
    if error.next_step:
        step = f"{error.next_step}. {step}"
    return error.on(next_step=step)
