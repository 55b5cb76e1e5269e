# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An orphan: the empty guest that a failed restore leaves. Recognizes and removes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...._foundation.cluster.find.restoring import is_bare
from ...._foundation.core.errors import FleetError, NetworkError, NotFound, TaskTimeout
from ...._foundation.resource.plan import Step
from ...kinds.kind import Kind

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def has_task_failed(error: FleetError) -> bool:
    """Return whether the task of a step has failed, and therefore no longer runs (pure)."""
    is_unknown = isinstance(error, (NetworkError, TaskTimeout)) or error.method == "GET"
    return bool(error.upid) and not is_unknown


def is_orphan(client: Client, kind: Kind, vmid: int, node: str) -> bool:
    """Return whether a guest has the configuration that a failed restore leaves."""
    try:
        config = client.direct().get(*kind.path(node, vmid), "config")
    except NotFound:
        return False
    return is_bare(config) and not config.get("lock")


def removal_summary(kind: Kind, vmid: int, node: str) -> str:
    """Return the summary of the removal (pure)."""
    return f"Remove empty {kind.noun} {vmid} on node {node}, left by a failed restore"


def removal_step(kind: Kind, vmid: int, node: str) -> Step:
    """Return the step of the removal (pure)."""
    data = {"destroy-unreferenced-disks": 1}
    summary = removal_summary(kind, vmid, node)
    return Step("remove", summary, "DELETE", kind.path(node, vmid), data)


def remove_orphan(client: Client, kind: Kind, vmid: int, node: str, timeout: int) -> bool:
    """Remove the guest if it is empty, and return whether it was.

    Disks that the failed restore did not remove are removed too. PVE refuses the removal while
    another restore of the VMID holds the lock of the guest.
    """
    if not is_orphan(client, kind, vmid, node):
        return False
    step = removal_step(kind, vmid, node)
    client.task(
        step.method,
        *step.path,
        data=step.data,
        attempted=f"Could not remove the empty {kind.noun} {vmid} that a failed restore has left",
        timeout=timeout,
    )
    return True


def with_fate_of_guest(error: FleetError, label: str, *, removed: bool) -> FleetError:
    """Return the error of a failed restore with the fate of its guest (pure)."""
    if removed:
        return error.on(details={**error.details, "vm_exists": False})
    step = f"Run this again; if {label} is empty, an administrator removes it with module tidy"
    return error.on(next_step=step)
