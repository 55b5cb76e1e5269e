# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads a VM as it is now, also when it was moved to another node or replaced by another VM."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ..._cluster.state import node_of, power_of
from ..._core.errors import (
    FleetError,
    NetworkError,
    NodeUnhealthy,
    NodeUnreachable,
    NotFound,
    UnknownVm,
)
from ..._guest.identity import require_name, require_same_creation, require_same_disks
from ..config.actual import actual_of, identity_of
from ..model import Actual, Desired

if TYPE_CHECKING:
    from ..._api.client import Client


def read_actual(
    client: Client, vmid: int, node: str, *, status: str | None = None, pool: str | None = None
) -> Actual:
    """Return the VM as it is now: one request, and a second for the power state unless `status` is
    given.

    Raises NotFound where the VM is not on that node.
    """
    rows = client.get("nodes", node, "qemu", vmid, "pending")
    uptime = 0
    if status is None:
        current = client.get("nodes", node, "qemu", vmid, "status", "current")
        status, uptime = power_of(current), int(current.get("uptime") or 0)
    return actual_of(vmid, node, status, rows, pool=pool, uptime=uptime)


def is_elsewhere(error: FleetError) -> bool:
    """Return whether an error may mean that the VM is not, or no longer, on the node that was
    asked.
    """
    return isinstance(error, (UnknownVm, NodeUnreachable))


def read_wherever(
    client: Client, vmid: int, node: str, *, status: str | None = None, pool: str | None = None
) -> Actual:
    """Return the VM as it is, on that node or on the one it was moved to since then.

    Raises what the node said.
    """
    try:
        return read_actual(client, vmid, node, status=status, pool=pool)
    except (NotFound, NetworkError, NodeUnhealthy) as error:
        if not is_elsewhere(error):
            raise
        now = node_of(client, vmid)
        if now is None or now == node:
            raise
        return read_actual(client, vmid, now, status=status, pool=pool)


def require_same(
    desired: Desired, known: Actual, seen: Actual, written: Collection[str] = ()
) -> None:
    """Raise Conflict where the VM of that number is another one by now, or has another name than
    the one by which the task chose it.

    `written` are the options that the run itself changes.
    """
    identity = identity_of(seen)
    require_same_creation(known.label, identity_of(known), identity, written)
    is_by_name = desired.vmid is None or desired.state == "absent"
    if is_by_name and desired.name == known.name:
        require_name(known.label, identity, [known.name])


def require_named(
    desired: Desired, known: Actual, seen: Actual, written: Collection[str] = ()
) -> None:
    """Raise Conflict where the VM is another one than that of the plan, or was renamed by someone
    else.
    """
    require_same(desired, known, seen, written)
    require_name(known.label, identity_of(seen), [known.name, desired.name])


def require_untouched(
    desired: Desired, known: Actual, seen: Actual, written: Collection[str] = ()
) -> None:
    """Raise Conflict where the VM is not what it was when a plan to destroy was made: another one,
    renamed, or with other disks than those that the run itself writes.
    """
    require_named(desired, known, seen, written)
    require_same_disks(known.label, identity_of(known), identity_of(seen), written)
