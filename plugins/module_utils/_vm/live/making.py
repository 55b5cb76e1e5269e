# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""VMs that are being made: whose they will be, and waiting until they are complete.

Proxmox VE writes the configuration of a clone in three steps (qemu-server: PVE/API2/Qemu.pm,
clone_vm): the lock alone, then name and notes once the first disk is copied, then no lock any more.
Behind that the notes have our marker until the run that makes the VM is done with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from ..._cluster.state import VmRow, guest_row
from ..._cluster.tenant import owns, parse_tags, tenants_of
from ..._core.errors import Conflict, FleetError, NotFound, TaskTimeout, VmidTaken
from ..._core.poll import poll
from ..._guest.marker import split_notes
from ..model import Actual, Desired
from .read import read_actual, read_wherever

if TYPE_CHECKING:
    from ..._api.client import Client

# The locks that PVE sets while it makes a VM.
MAKING = frozenset(("clone", "create"))
_MAKING_TASKS = frozenset(("qmclone", "qmcreate", "qmrestore", "imgcopy"))
# Seconds without a task and without a change after which a VM with a marker counts as left behind.
QUIET = 6.0
_LONGEST_PAUSE = 1.0


class Identity(Enum):
    """What a VM that has a number is to the task that wanted this number."""

    MEANT = "the VM that the task means"
    OTHER = "another VM"
    GONE = "no VM any more"


def is_being_made(actual: Actual) -> bool:
    """Return whether PVE, or a run of this collection, has not finished making the VM."""
    return actual.lock in MAKING or is_unfinished(actual)


def is_unfinished(actual: Actual) -> bool:
    """Return whether the VM has the marker of a run that has not finished making it."""
    return actual.marker.building


def is_finished(client: Client, row: VmRow) -> bool:
    """Return whether a VM is still where it is listed, and the run that made it is done with it.

    Raises FleetError.
    """
    try:
        actual = read_actual(client, row.vmid, row.node, status=row.status)
    except NotFound:
        return False
    return not is_being_made(actual)


def is_meant(config: Mapping[str, Any], desired: Desired) -> bool:
    """Return whether a VM of this configuration is the one that the task names (pure)."""
    if str(config.get("name") or "") != desired.name:
        return False
    _notes, marker = split_notes(config.get("description"))
    if marker.building:
        return desired.tenant_tag in (None, marker.tenant)
    tags = parse_tags(str(config.get("tags") or ""))
    return owns(desired.tenant_tag, tags, desired.tenant_prefix)


def owner_tags(config: Mapping[str, Any], prefix: str) -> tuple[str, ...]:
    """Return the tags of a VM, one of which names its tenant (pure).

    An unfinished clone has those of its source; its marker names the tenant that it will have.
    """
    tags = parse_tags(str(config.get("tags") or ""))
    marker = split_notes(config.get("description"))[1]
    if not marker.building or not marker.tenant:
        return tags
    own = tuple(tag for tag in tags if tag.lower() not in marker.inherited_tags)
    if tenants_of(own, prefix):
        return own
    return (*own, marker.tenant)


def identify(client: Client, desired: Desired, vmid: int, node: str, timeout: float) -> Identity:
    """Return what the VM of that number is, once its name can be read.

    Raises TaskTimeout where PVE makes it for longer than `timeout` seconds without giving it a
    name.
    """
    try:
        config = await_name(client, vmid, node, timeout)
    except Conflict:  # the number is a container's
        return Identity.OTHER
    if config is None:
        return Identity.GONE
    if is_meant(config, desired):
        return Identity.MEANT
    return Identity.OTHER


def await_name(
    client: Client, vmid: int, node: str, timeout: float, *, complete: bool = False
) -> dict[str, Any] | None:
    """Return the configuration of a VM that is being made once it has a name; with `complete` once
    PVE has made it.

    None where it is gone.

    PVE makes a clone on the node of its source and moves it to its own node at the end: it is
    looked for where it is by now. Raises TaskTimeout after `timeout` seconds, Conflict for a
    container.
    """
    for _left in poll(client.clock, timeout, longest=_LONGEST_PAUSE):
        config = _read_config(client, node, vmid)
        if config is None:
            row = guest_row(client, vmid)
            if not row:
                return None
            if row.get("type") != "qemu":
                raise _is_container(vmid)
            node = str(row["node"])
            continue
        is_made = config.get("lock") not in MAKING
        has_name = bool(config.get("name"))
        if is_made or (has_name and not complete):
            return config
    raise _still_made(client, node, vmid, timeout)


def _is_container(vmid: int) -> VmidTaken:
    return VmidTaken(
        attempted=f"VM {vmid} could not be read",
        answer="a container has that number",
        next_step="Choose another vmid, or leave it out",
        reason="taken vmid",
    )


def await_made(client: Client, actual: Actual, timeout: float) -> Actual | None:
    """Return the VM once it is complete, or no one works on it any more; None where it is gone.

    A marker without a task and without a change for QUIET seconds was left by a run that ended
    early: the VM is returned with it. Raises TaskTimeout after `timeout` seconds.
    """
    clock = client.clock
    last = actual.digest
    since = clock.monotonic()
    for _left in poll(clock, timeout, longest=_LONGEST_PAUSE):
        try:
            actual = read_wherever(client, actual.vmid, actual.node, pool=actual.pool)
        except NotFound:
            return None
        if not is_being_made(actual):
            return actual
        if _is_worked_on(client, actual) or actual.digest != last:
            last = actual.digest
            since = clock.monotonic()
            continue
        quiet = clock.monotonic() - since
        if quiet >= QUIET:
            return actual
    raise _still_made(client, actual.node, actual.vmid, timeout)


def _is_worked_on(client: Client, actual: Actual) -> bool:
    """Return whether PVE makes the VM now, as far as the user may see its tasks."""
    if actual.lock in MAKING:
        return True
    tasks = _running_tasks(client, actual.node, vmid=actual.vmid)
    return bool(tasks)


def _read_config(client: Client, node: str, vmid: int) -> dict[str, Any] | None:
    try:
        config: dict[str, Any] = client.get("nodes", node, "qemu", vmid, "config")
    except NotFound:
        return None
    return config


def _running_tasks(client: Client, node: str, **filters: Any) -> list[Mapping[str, Any]]:
    """Return the tasks of a node that run now, as far as the user may see them."""
    rows = client.get(
        "nodes",
        node,
        "tasks",
        **filters,
        source="active",
    )
    return [row for row in rows or () if not row.get("endtime")]


def tasks_on(client: Client, actual: Actual) -> list[str]:
    """Return the UPIDs of the tasks that work on a VM now, as far as the user may see them.

    The task of a clone has the number of its source.
    """
    rows = _running_tasks(client, actual.node, vmid=actual.vmid)
    tasks = [str(row["upid"]) for row in rows]
    if actual.lock in MAKING:
        tasks += _making_tasks(client, actual.node)
    return list(dict.fromkeys(tasks))


def _making_tasks(client: Client, node: str) -> list[str]:
    """Return the UPIDs of the tasks of a node that make a VM; none where they cannot be read."""
    try:
        rows = _running_tasks(client, node)
    except FleetError:
        return []
    upids: list[str] = []
    for row in rows:
        if row.get("type") in _MAKING_TASKS:
            upids.append(str(row["upid"]))
    return upids


def _still_made(client: Client, node: str, vmid: int, timeout: float) -> TaskTimeout:
    tasks = _making_tasks(client, node)
    running = ""
    if tasks:
        running = f"; tasks that run there: {', '.join(tasks)}"
    upid = ""
    if len(tasks) == 1:
        upid = tasks[0]
    return TaskTimeout(
        attempted=f"VM {vmid} on node {node} could not be used yet",
        answer=f"it is still being made after {timeout:g} s{running}",
        next_step="Run this again when it is complete, or raise task_timeout",
        reason="task still runs",
        upid=upid,
    )
