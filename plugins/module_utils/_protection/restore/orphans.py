# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Empty VMs that failed restores of the same login left behind, and that block their VMIDs.

Such a VM has no name, tags or disks. It is removed only if this login started the last restore of
its VMID, if that restore failed, and if the VMID has no archive. A VM with an archive existed
before the restore, so the restore is repeated instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from ..._foundation.cluster.find.owner import OwnerScope
from ..._foundation.cluster.find.restoring import RESTORE_TASKS, suspects
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.core.errors import FleetError
from ..._guests.guest.create.orphan import is_orphan
from ..._guests.kinds.words import VM
from ..._operation.tasks.query import TaskQuery
from ..._operation.tasks.read import read_tasks
from ..._operation.tasks.row import FAILED, UNKNOWN, TaskRow
from ..backup.archive import Archive

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def find_orphans(
    client: Client, cluster: ClusterState, owner: OwnerScope, archives: Iterable[Archive]
) -> list[VmRow]:
    """Return the empty VMs to remove; two requests for each VM that seems empty."""
    archived = {one.vmid for one in archives}
    found: list[VmRow] = []
    for row in candidates(cluster, owner, archived):
        if row.type != VM.type or row.lock or not has_failed(restores_of(client, row)):
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


def restores_of(client: Client, row: VmRow) -> Sequence[TaskRow]:
    """Return the last restore of a VMID, if this login started it."""
    query = TaskQuery(limit=1, vmid=row.vmid, types=RESTORE_TASKS)
    tasks = read_tasks(client, [row.node], query)[row.node]
    if isinstance(tasks, FleetError):
        return ()
    return [task for task in tasks if is_of(client.login, task)]


def is_of(login: str, task: TaskRow) -> bool:
    """Return whether this user or token has started a task (pure)."""
    return login in (task.user, f"{task.user}!{task.token}")
