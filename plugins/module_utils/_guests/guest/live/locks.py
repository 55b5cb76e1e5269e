# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waits for the task that holds the lock of a guest, such as the migration of a killed run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...._foundation.api.tasks import Holder, find_holder
from ...._foundation.core.errors import FleetError, TaskTimeout
from ...kinds.model import Actual

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# Locks that do not refuse every change: of a state that is kept as long as a user wants, and of a
# backup, during which PVE starts and stops a VM (qemu-server: API2/Qemu.pm, vm_start).
_NOT_AWAITED = frozenset(("suspended", "backup"))


def await_unlocked(client: Client, actual: Actual, timeout: float) -> Holder:
    """Wait for the task that holds the lock of a guest, and return it: if it has ended, the guest
    must be read again. One or two requests for a locked guest.
    """
    if not actual.lock or actual.lock in _NOT_AWAITED:
        return Holder()
    try:
        holder = find_holder(client.get, actual.node, actual.vmid, actual.lock)
    except FleetError:
        return Holder()
    if not holder.upid:
        return Holder()
    return replace(holder, has_ended=has_ended(client, holder.upid, timeout))


def require_unlocked(holder: Holder, actual: Actual) -> None:
    """Raise Locked for a guest on which a task still works (pure)."""
    if holder.upid and not holder.has_ended:
        raise holder.refusal(f"{actual.label} was not changed", actual.node, actual.lock or "")


def has_ended(client: Client, upid: str, timeout: float) -> bool:
    """Wait for a task of another run, and return whether it ended, well or not."""
    try:
        client.wait(upid, timeout=timeout)
    except TaskTimeout:
        return False
    except FleetError:
        return True
    return True
