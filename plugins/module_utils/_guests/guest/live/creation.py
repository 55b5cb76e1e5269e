# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""VMs that are being created: their future tenant, and waiting until they are complete.

Proxmox VE writes the configuration of a clone in three steps (qemu-server: PVE/API2/Qemu.pm,
clone_vm): first only the lock, then name and notes once the first disk is copied, then no lock.
After that the notes contain our marker until the run that creates the VM has finished it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn

from ...._foundation.cluster.find.restoring import (
    await_restored,
    is_bare,
    require_restore_succeeded,
)
from ...._foundation.cluster.find.visible import is_in_use, taken
from ...._foundation.cluster.state import (
    CREATION_LOCKS,
    ClusterState,
    VmRow,
    guest_row,
    pool_of,
    row_of_listing,
    with_vm,
)
from ...._foundation.cluster.tenant import owns, parse_tags
from ...._foundation.cluster.view import PATIENCE
from ...._foundation.core.clock import poll
from ...._foundation.core.errors import (
    Conflict,
    FleetError,
    NotFound,
    PermissionDenied,
    TaskTimeout,
)
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.quantities import whole_number
from ...kinds.kind import Kind
from ...kinds.marker import owner_tags, split_notes
from ...kinds.model import Actual, Guest
from .read import read_actual, read_wherever

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# Seconds without a task and without a change after which a VM with a marker counts as abandoned.
QUIET = 6.0
_LONGEST_PAUSE = 1.0


class Match(Enum):
    """The relation of a VM to the task that tried to use its VMID."""

    DESIRED = "the VM that the task describes"
    OTHER = "another VM"
    GONE = "no VM any more"


def is_being_created(actual: Actual) -> bool:
    """Return whether PVE, or a run of this collection, has not finished creating the VM."""
    return actual.lock in CREATION_LOCKS or has_creation_marker(actual)


def has_creation_marker(actual: Actual) -> bool:
    """Return whether the VM has the marker of a run that has not finished creating it."""
    return actual.marker.building


def is_finished(client: Client, kind: Kind, row: VmRow) -> bool:
    """Return whether a VM is still on its listed node, and no run has yet to finish it.

    Of a guest of another kind than `kind`, only the notes and the lock are read. Raises FleetError.
    """
    if row.type != kind.type:
        return _is_other_finished(client, row)
    try:
        actual = read_actual(client, kind, row.vmid, row.node, status=row.status)
    except NotFound:
        return False
    return not is_being_created(actual)


def _is_other_finished(client: Client, row: VmRow) -> bool:
    try:
        config = client.get(*row.path, "config")
    except NotFound:
        return False
    marker = split_notes(config.get("description"))[1]
    return config.get("lock") not in CREATION_LOCKS and not marker.building


def is_desired(config: Mapping[str, Any], desired: Guest) -> bool:
    """Return whether a VM of this configuration is the task's VM (pure)."""
    if desired.kind.name_in(config) != desired.name:
        return False
    _notes, marker = split_notes(config.get("description"))
    if marker.building:
        return desired.tenant_tag in (None, marker.tenant)
    tags = parse_tags(str(config.get("tags") or ""))
    return owns(desired.tenant_tag, tags, desired.tenant_prefix)


def match_desired(client: Client, desired: Guest, vmid: int, node: str, timeout: float) -> Match:
    """Compare the VM with that VMID with the desired VM, once its name can be read.

    Raises TaskTimeout if PVE creates the VM for longer than `timeout` seconds without writing its
    name, BeingRestored while a restore writes it, and RestoreFailed after a failed restore.
    """
    try:
        config = await_name(client, desired.kind, vmid, node, timeout)
    except Conflict:  # a guest of the other kind has the VMID
        return Match.OTHER
    if is_bare(config):
        attempted = f"{desired.label} was not created"
        seconds = min(timeout, PATIENCE)
        path = desired.kind.path(node, vmid)
        config = await_restored(client, path, seconds=seconds, attempted=attempted)
        require_restore_succeeded(config, attempted, vmid, node)
    if config is None:
        return Match.GONE
    if is_desired(config, desired):
        return Match.DESIRED
    return Match.OTHER


def with_hidden_creations(
    client: Client, kind: Kind, cluster: ClusterState, vmid: int | None = None
) -> ClusterState:
    """Return the cluster state with the guests that this login is creating and cannot see yet, as
    guests without a name; one request for each node.

    Proxmox VE adds a guest to its pool when it is complete (qemu-server: PVE/API2/Qemu.pm;
    pve-container: PVE/API2/LXC.pm; create_vm, clone_vm). Until then, a login with rights on the
    pool sees only its own task. The task of a clone has the VMID of its source: `vmid` is the VMID
    that the clone may have.
    """

    def read(node: str) -> list[Mapping[str, Any]]:
        try:
            return _running_tasks(client, node)
        except FleetError:
            return []

    nodes = sorted(name for name, node in cluster.nodes.items() if node.online)
    answers = side_by_side(read, nodes)
    for node, tasks in zip(nodes, answers, strict=True):
        for task in tasks:
            created = _created_vmid(kind, task, vmid)
            if created is None or created in cluster.taken or not is_in_use(client, created):
                continue
            row = {"type": kind.type, "vmid": created, "node": node, "lock": "create"}
            cluster = with_vm(cluster, row_of_listing(row))
    return cluster


def _created_vmid(kind: Kind, task: Mapping[str, Any], of_clone: int | None) -> int | None:
    """Return the VMID of the guest that a task creates, None for another task; `of_clone` is the
    answer for a clone (pure).
    """
    if task["type"] not in kind.creation_tasks:
        return None
    if str(task["type"]).endswith("clone"):
        return of_clone
    return whole_number(str(task["id"]))


def read_other_kind(client: Client, desired: Guest, vmid: int, timeout: float) -> VmRow | None:
    """Return the row of a guest of the other kind, with name and tags from its configuration, once
    it has a name.

    None for a guest of the desired kind, and for a guest that is gone or cannot be read. Until a
    run has finished a guest, its notes name the tenant. Raises TaskTimeout for a guest that is
    being created and stays nameless.
    """
    config: Mapping[str, Any] = {}
    for _remaining in poll(client.clock, min(timeout, PATIENCE), longest=_LONGEST_PAUSE):
        listed = guest_row(client, vmid)
        if not listed or listed["type"] == desired.kind.type:
            return None
        path = ("nodes", str(listed["node"]), str(listed["type"]), vmid, "config")
        try:
            config = client.direct().get(*path)
        except FleetError:
            continue
        name = str(config.get(desired.kind.other.name_option) or "")
        if name:
            tags = owner_tags(config, desired.tenant_prefix)
            return row_of_listing({**listed, "name": name, "tags": ";".join(tags)})
    _require_no_creation(desired, vmid, config)
    return None


def _require_no_creation(desired: Guest, vmid: int, config: Mapping[str, Any]) -> None:
    """Raise TaskTimeout for a nameless guest that is being created (pure)."""
    if config.get("lock") in CREATION_LOCKS:
        raise TaskTimeout(
            f"{desired.label} was not created: {desired.kind.other.noun} {vmid} is being created "
            "and may get that name",
            "Run this again when it is complete",
            "task still runs",
        )


def await_name(
    client: Client, kind: Kind, vmid: int, node: str, timeout: float, *, complete: bool = False
) -> dict[str, Any] | None:
    """Wait until a VM that is being created has a name, or with `complete` until PVE has created
    it; return its configuration.

    None if it is gone. The configuration of a VM that a restore writes is returned at once.

    PVE creates a clone on the node of its source and moves it to its own node at the end: it is
    read on its present node. Raises TaskTimeout after `timeout` seconds, Conflict for a guest of
    the other kind, PermissionDenied for a guest that this login may not see and does not create.
    """
    for _remaining in poll(client.clock, timeout, longest=_LONGEST_PAUSE):
        config = _read_visible(client, kind, node, vmid)
        if config is not None:
            is_created = is_bare(config) or config.get("lock") not in CREATION_LOCKS
            has_name = bool(kind.name_in(config))
            if is_created or (has_name and not complete):
                return config
            continue
        row = guest_row(client, vmid)
        if not row:
            return None
        _require_kind(row, kind, vmid)
        node = str(row["node"])
    _raise_in_creation(kind, node, vmid, timeout, _creation_tasks(client, kind, node))


def _require_kind(row: Mapping[str, Any], kind: Kind, vmid: int) -> None:
    """Raise Conflict for a VMID of a guest of the other kind (pure)."""
    if row.get("type") == kind.type:
        return
    raise taken(f"{kind.noun} {vmid} could not be read", f"a {kind.other.noun} has that number")


def await_creation(client: Client, actual: Actual, timeout: float) -> Actual | None:
    """Return the VM once it is complete, or once no run works on it; None if it is gone.

    If a VM with a marker has no task and no change for QUIET seconds, its run ended early: the VM
    is returned with the marker. A VM that a restore writes is returned too. Its pool is read again:
    PVE adds a VM to its pool when it is complete. Raises TaskTimeout after `timeout` seconds.
    """
    clock = client.clock
    last = actual.digest
    since = clock.monotonic()
    for _remaining in poll(clock, timeout, longest=_LONGEST_PAUSE):
        try:
            actual = read_wherever(client, actual.kind, actual.vmid, actual.node, pool=actual.pool)
        except NotFound:
            return None
        if is_bare(actual.live) or not is_being_created(actual):
            return replace(actual, pool=pool_of(client, actual.vmid))
        if _is_worked_on(client, actual) or actual.digest != last:
            last = actual.digest
            since = clock.monotonic()
            continue
        quiet = clock.monotonic() - since
        if quiet >= QUIET:
            return replace(actual, pool=pool_of(client, actual.vmid))
    tasks = _creation_tasks(client, actual.kind, actual.node)
    _raise_in_creation(actual.kind, actual.node, actual.vmid, timeout, tasks)


def _is_worked_on(client: Client, actual: Actual) -> bool:
    """Return whether PVE is creating the VM, as far as the user may see its tasks."""
    if actual.lock in CREATION_LOCKS:
        return True
    tasks = _running_tasks(client, actual.node, vmid=actual.vmid)
    return bool(tasks)


def _read_visible(client: Client, kind: Kind, node: str, vmid: int) -> dict[str, Any] | None:
    """Return the configuration of a guest, None if it is gone. While this login creates the guest
    and cannot see it yet, the configuration has only a lock. Raises PermissionDenied.
    """
    try:
        return _read_config(client, kind, node, vmid)
    except PermissionDenied:
        for task in _running_tasks(client, node):
            if _created_vmid(kind, task, vmid) == vmid:
                return {"lock": "create"}
    return _read_config(client, kind, node, vmid)  # the task may have ended


def _read_config(client: Client, kind: Kind, node: str, vmid: int) -> dict[str, Any] | None:
    try:
        config: dict[str, Any] = client.get(*kind.path(node, vmid, "config"))
    except NotFound:
        return None
    return config


def _running_tasks(client: Client, node: str, **filters: Any) -> list[Mapping[str, Any]]:
    """Return the tasks of a node that run now, as far as the user may see them."""
    rows = client.get("nodes", node, "tasks", **filters, source="active")
    return [row for row in rows or () if not row.get("endtime")]


def tasks_on(client: Client, actual: Actual) -> list[str]:
    """Return the UPIDs of the tasks that work on a VM now, as far as the user may see them.

    The task of a clone has the VMID of its source.
    """
    rows = _running_tasks(client, actual.node, vmid=actual.vmid)
    tasks = [str(row["upid"]) for row in rows]
    if actual.lock in CREATION_LOCKS:
        tasks += _creation_tasks(client, actual.kind, actual.node)
    return list(dict.fromkeys(tasks))


def _creation_tasks(client: Client, kind: Kind, node: str) -> list[str]:
    """Return the UPIDs of the tasks of a node that create a VM; none if they cannot be read."""
    try:
        rows = _running_tasks(client, node)
    except FleetError:
        return []
    return [str(row["upid"]) for row in rows if row.get("type") in kind.creation_tasks]


def _raise_in_creation(
    kind: Kind, node: str, vmid: int, timeout: float, tasks: Sequence[str]
) -> NoReturn:
    """Raise TaskTimeout for a VM that `tasks` of its node still create (pure)."""
    running = f"; tasks that run there: {', '.join(tasks)}" if tasks else ""
    upid = tasks[0] if len(tasks) == 1 else ""
    raise TaskTimeout(
        f"{kind.noun} {vmid} on node {node} could not be used yet: it is still being made after "
        f"{timeout:g} s{running}",
        "Run this again when it is complete, or raise task_timeout",
        "task still runs",
        upid=upid,
    )
