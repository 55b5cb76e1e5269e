# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the present state of a VM, also when it was moved to another node or replaced by another
VM: configuration, pending changes and status become an `Actual`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.state import VmRow, node_of, power_of
from ...._foundation.core.errors import (
    Conflict,
    FleetError,
    NetworkError,
    NodeUnhealthy,
    NodeUnreachable,
    NotFound,
    PermissionDenied,
    UnknownVm,
)
from ...kinds.identity import require_name, require_same_creation, require_same_disks
from ...kinds.kind import Kind
from ...kinds.model import Actual, Guest

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_LOOKS = 3
"""How many times a guest is read that others move at the same time."""


def actual_of(
    kind: Kind,
    vmid: int,
    node: str,
    status: str,
    pending: Iterable[Mapping[str, Any]],
    *,
    pool: str | None = None,
) -> Actual:
    """Return the `Actual` for the rows of C(GET .../pending); a blank there is an empty value."""
    live: dict[str, str] = {}
    target: dict[str, str] = {}
    for row in pending:
        key = str(row["key"])
        current, pending_value = row.get("value"), row.get("pending")
        if current is not None:
            live[key] = _text(current)
            target[key] = live[key]
        if pending_value is not None:
            target[key] = _text(pending_value)
        if row.get("delete"):
            target.pop(key, None)
    digest = live.pop("digest", None)
    target.pop("digest", None)
    return Actual(
        kind=kind,
        vmid=vmid,
        node=node,
        status=_with_lock(status, live),
        live=live,
        target=target,
        digest=digest,
        pool=pool,
    )


def with_power(actual: Actual, current: Mapping[str, Any]) -> Actual:
    """Return the guest with the power state of C(GET .../status/current)."""
    status = _with_lock(power_of(current), actual.live)
    uptime = int(current.get("uptime") or 0)
    return replace(actual, status=status, uptime=uptime, listed=False)


def _with_lock(status: str, live: Mapping[str, str]) -> str:
    """Return the status; a stopped guest whose memory is on disk is hibernated."""
    is_saved = live.get("lock") == "suspended"
    if status == "stopped" and is_saved:
        return "hibernated"
    return status


def _text(value: Any) -> str:
    """Return a value of PVE's answer as text; PVE stores an empty one as a blank."""
    if isinstance(value, bool):
        return str(int(value))
    text = str(value)
    is_blank = not text.strip()
    return "" if is_blank else text.strip("\n")


def read_actual(
    client: Client,
    kind: Kind,
    vmid: int,
    node: str,
    *,
    status: str | None = None,
    pool: str | None = None,
) -> Actual:
    """Return the present state of the VM: one request, and a second for the power state unless
    `status` is given.

    Raises NotFound if the VM is not on that node.
    """
    path = kind.path(node, vmid)
    current: Mapping[str, Any] | None = None
    rows = client.get(*path, "pending")
    if status is None:
        current = client.get(*path, "status", "current")
    actual = actual_of(kind, vmid, node, status or "", rows, pool=pool)
    return actual if current is None else with_power(actual, current)


def is_elsewhere(error: FleetError) -> bool:
    """Return whether an error may mean that the VM is not on the node that was asked."""
    return isinstance(error, (UnknownVm, NodeUnreachable))


def read_wherever(
    client: Client,
    kind: Kind,
    vmid: int,
    node: str,
    *,
    status: str | None = None,
    pool: str | None = None,
) -> Actual:
    """Return the VM on that node, or on its new one if it was moved. Raises the node's error.

    The HA manager can move a guest again, also back, between the listing and the read.
    """
    looks = 0
    while True:
        try:
            return read_actual(client, kind, vmid, node, status=status, pool=pool)
        except (NotFound, NetworkError, NodeUnhealthy) as error:
            looks += 1
            if looks == _LOOKS or not is_elsewhere(error):
                raise
            now = node_of(client, vmid)
            came_back = now == node and isinstance(error, UnknownVm)
            if now is None or (now == node and not came_back):
                raise
            node = now


def read_source(client: Client, kind: Kind, row: VmRow, status: str | None = None) -> Actual:
    """Return the guest to clone. Raises Conflict for a guest that this run has yet to create."""
    try:
        return read_wherever(client, kind, row.vmid, row.node, status=status, pool=row.pool)
    except (NotFound, PermissionDenied):
        _require_created(kind, row)
        raise


def _require_created(kind: Kind, row: VmRow) -> None:
    """Raise Conflict for a source that this run has yet to create (pure)."""
    if row.planned:
        raise Conflict(
            f"{kind.noun} '{row.name}' was not cloned: the same list has yet to create it",
            "Create it in an earlier task",
            "source is planned",
        )


def require_same(
    desired: Guest, known: Actual, current: Actual, written: Collection[str] = ()
) -> None:
    """Raise Conflict if the VMID has been reused, or if the VM no longer has the name by which the
    task chose it.

    `written` are the options that the run itself changes.
    """
    identity = current.identity
    require_same_creation(known.label, known.identity, identity, written)
    is_by_name = desired.vmid is None or desired.state == "absent"
    if is_by_name and desired.name == known.name:
        require_name(known.label, identity, [known.name])


def require_named(
    desired: Guest, known: Actual, current: Actual, written: Collection[str] = ()
) -> None:
    """Raise Conflict if the VM is not the VM of the plan, or was renamed by someone else."""
    require_same(desired, known, current, written)
    require_name(known.label, current.identity, [known.name, desired.name])


def require_untouched(
    desired: Guest, known: Actual, current: Actual, written: Collection[str] = ()
) -> None:
    """Raise Conflict if the VM has changed since a plan to destroy was made: the VMID was reused,
    or the VM has another name or other disks. Disks that the run itself writes may differ.
    """
    require_named(desired, known, current, written)
    require_same_disks(known.label, known.identity, current.identity, written)
