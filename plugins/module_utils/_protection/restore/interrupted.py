# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restores that failed or were interrupted: the empty VMs that they left behind, and whether their
guests ran before.

An empty VM has no name, tags or disks, and blocks its VMID. It is removed only if this login
started the last restore of its VMID, if that restore failed, and if the VMID has no archive. A VM
with an archive existed before the restore, so the restore is repeated instead.

The restore notes in a guest that it runs, before it stops the guest: the run that completes the
restore starts it. The archive of the state before the restore contains the note too: it is read if
the restore has left the guest empty. If no archive was made, the tasks of the node show that the
guest was stopped for the failed restore: PVE destroys the configuration, and with it every note
(qemu-server: QemuServer.pm, restore_vma_archive; pve-container: API2/LXC.pm, create_vm).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..._foundation.api.tasks import CONSOLE_TASKS
from ..._foundation.cluster.find.owner import OwnerScope
from ..._foundation.cluster.find.restoring import RESTORE_TASKS, is_bare, suspects
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.core.errors import FleetError
from ..._guests.guest.create.orphan import is_orphan
from ..._guests.guest.flow.reads import read_archive
from ..._guests.kinds.kind import Kind
from ..._guests.kinds.marker import split_notes
from ..._guests.kinds.model import Actual
from ..._guests.kinds.words import VM
from ..._operation.tasks.read import TaskQuery, read_tasks
from ..._operation.tasks.row import FAILED, OK, UNKNOWN, WARNING, TaskRow, newest_first
from ..backup.archive import Archive
from ..backup.archive import newest_first as newest_archive
from .choose import is_state_before

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_STARTS = 10  # tasks to read
_CHAIN = 50  # tasks to read: every restore that failed is one of them
_STOPS = frozenset(("shutdown", "stop"))
# Maximum seconds between two steps of one run, which are sent one after the other.
_PAUSE = 30


def find_orphans(
    client: Client,
    cluster: ClusterState,
    owner: OwnerScope,
    archives: Iterable[Archive],
    login: str = "",
) -> list[VmRow]:
    """Return the empty VMs that failed restores of a login, by default the own one, have left; two
    requests for each VM that seems empty.
    """
    archived = {one.vmid for one in archives}
    found: list[VmRow] = []
    for row in candidates(cluster, owner, archived):
        if row.type != VM.type or row.lock or not has_failed(restores_of(client, row, login)):
            continue
        if is_orphan(client, VM, row.vmid, row.node):
            found.append(row)
    return found


def find_locked(
    client: Client, cluster: ClusterState, owner: OwnerScope, archives: Iterable[Archive]
) -> list[str]:
    """Return a sentence about each empty VM that an interrupted restore of this login left locked;
    only root can remove the lock.
    """
    archived = {one.vmid for one in archives}
    found: list[str] = []
    for row in candidates(cluster, owner, archived):
        if row.lock and has_failed(restores_of(client, row)):
            command = f"{VM.tool} unlock {row.vmid}"
            found.append(
                f"{VM.noun} {row.vmid} on node {row.node} is empty and has the lock {row.lock}: an"
                f" interrupted restore has left it. Run '{command}' there; the next restore of"
                " this login then removes it"
            )
    return found


def candidates(
    cluster: ClusterState, owner: OwnerScope, archived: Collection[int | None]
) -> list[VmRow]:
    """Return the VMs that seem empty and have no archive (pure)."""
    rows = suspects(cluster, owner.tag, owner.prefix)
    return [row for row in rows if row.vmid not in archived]


def has_failed(tasks: Sequence[TaskRow]) -> bool:
    """Return whether the newest of these restores has failed (pure)."""
    return bool(tasks) and bool(tasks[0].ended) and tasks[0].status in (FAILED, UNKNOWN)


def restores_of(client: Client, row: VmRow, login: str = "") -> Sequence[TaskRow]:
    """Return the last restore of a VMID, if the login, by default the own one, started it."""
    query = TaskQuery(limit=1, vmid=row.vmid, types=RESTORE_TASKS)
    tasks = read_tasks(client, [row.node], query)[row.node]
    if isinstance(tasks, FleetError):
        return ()
    return [task for task in tasks if is_of(login or client.login, task)]


def is_of(login: str, task: TaskRow) -> bool:
    """Return whether this user or token has started a task (pure)."""
    return login in (task.user, f"{task.user}!{task.token}")


def find_ran(client: Client, actual: Actual, archives: Iterable[Archive]) -> int | None:
    """Return the last start of a guest that runs, or ran before an interrupted restore; None if it
    was off. Up to two requests.
    """
    if actual.running:
        return _last_start(client, actual.kind, actual.vmid, actual.node)
    if is_bare(actual.live):
        return find_ran_before_failure(client, actual.kind, actual.vmid, actual.node, archives)
    return _find_noted(client, actual.kind, actual.vmid, actual.node, actual.live)


def find_ran_before_failure(
    client: Client, kind: Kind, vmid: int, node: str, archives: Iterable[Archive]
) -> int | None:
    """Return the last start of a guest that ran before a failed restore left it empty or removed
    it; None if it was off. Up to three requests.
    """
    own = [one for one in archives if one.vmid == vmid and is_state_before(one)]
    if own:
        newest = min(own, key=newest_archive)
        config = read_archive(client, newest.volume, newest.node)
        ran = _find_noted(client, kind, vmid, node, config)
        if ran is not None:
            return ran
    tasks = read_tasks(client, [node], TaskQuery(limit=_CHAIN, vmid=vmid))[node]
    if isinstance(tasks, FleetError) or not was_stopped_for_restore(client.login, kind, tasks):
        return None
    return _last_start(client, kind, vmid, node)


def was_stopped_for_restore(login: str, kind: Kind, tasks: Iterable[TaskRow]) -> bool:
    """Return whether the last restores of a guest have failed, and the same login stopped the guest
    right before the first of them, or before the clone that keeps its state (pure).
    """
    rows = [task for task in newest_first(tasks) if task.type not in CONSOLE_TASKS]
    count = 0
    while count < len(rows) and has_failed(rows[count:]) and rows[count].type in RESTORE_TASKS:
        count += 1
    if count == 0:
        return False
    later = rows[count - 1]
    for task in rows[count:]:
        is_own = is_of(login, task) and is_of(login, later)
        if not is_own or later.started - task.ended > _PAUSE:
            return False
        action = task.type.removeprefix(kind.task_prefix)
        if action != "clone":
            return action in _STOPS
        later = task
    return False


def _find_noted(
    client: Client, kind: Kind, vmid: int, node: str, config: Mapping[str, str]
) -> int | None:
    """Return the start in the note of a configuration; None without a note, or if the guest was
    started again since.
    """
    ran = split_notes(config.get("description"))[1].ran
    if ran is None or _last_start(client, kind, vmid, node) > ran:
        return None
    return ran


def _last_start(client: Client, kind: Kind, vmid: int, node: str) -> int:
    """Return the time of the last start in the tasks of the node, 1 if they have none. Starts that
    have failed are ignored.
    """
    types = frozenset((f"{kind.task_prefix}start",))
    tasks = read_tasks(client, [node], TaskQuery(limit=_STARTS, vmid=vmid, types=types))[node]
    if isinstance(tasks, FleetError):
        return 1
    return max((task.started for task in tasks if task.status in (OK, WARNING)), default=1)
