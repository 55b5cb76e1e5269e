# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A container that a failed restore in place removed: it is restored with its VMID.

PVE destroys the old volumes first; if the restore then fails, PVE also destroys the configuration
(pve-container: PVE/API2/LXC.pm, create_vm). Pool membership and rights on the VMID remain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..._foundation.cluster.state import ClusterState
from ..._foundation.core.errors import FleetError, ValidationFailed
from ..._guests.kinds.words import CONTAINER
from ..._operation.tasks.query import TaskQuery
from ..._operation.tasks.read import read_removals, read_tasks
from ..._operation.tasks.row import TaskRow, newest_first
from .choose import ChosenArchive
from .desired import DesiredRestore
from .orphans import has_failed

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_TASK = "vzrestore"


def find_completion(
    client: Client, cluster: ClusterState, desired: DesiredRestore, chosen: ChosenArchive
) -> DesiredRestore | None:
    """Return the restore that completes a failed one: a new guest with the name, VMID and node of
    the container. Return None if the VMID is in use, or if no failed restore removed the container.
    Three requests for each node.

    Raises ValidationFailed if `confirm` differs from the name in the archive.
    """
    vmid = chosen.archive.vmid
    if chosen.kind is not CONTAINER or vmid is None or vmid in cluster.vms:
        return None
    nodes = [name for name, node in cluster.nodes.items() if node.online]
    query = TaskQuery(limit=1, vmid=vmid, types=frozenset((_TASK,)))
    restores: list[TaskRow] = []
    for answer in read_tasks(client, nodes, query).values():
        if not isinstance(answer, FleetError):
            restores += answer
    removals = read_removals(client, nodes, vmid=vmid)
    failed = failed_restore(restores, removals)
    if failed is None or not is_of_removed(desired, chosen, removals):
        return None
    _require_confirmed(desired, chosen)
    return completion_of(desired, chosen, failed.node)


def failed_restore(restores: Sequence[TaskRow], removals: Mapping[int, int]) -> TaskRow | None:
    """Return the newest restore if it failed and no guest was removed after it (pure)."""
    newest = newest_first(restores)[:1]
    if not has_failed(newest):
        return None
    removed = removals.get(newest[0].vmid or 0, -1)
    return None if removed >= newest[0].started else newest[0]


def is_of_removed(
    desired: DesiredRestore, chosen: ChosenArchive, removals: Mapping[int, int]
) -> bool:
    """Return whether the archive is of the container and not of an earlier guest with its VMID; an
    archive that the task names is always accepted (pure).
    """
    removed = removals.get(chosen.archive.vmid or 0, -1)
    return desired.volume is not None or chosen.archive.time > removed


def completion_of(desired: DesiredRestore, chosen: ChosenArchive, node: str) -> DesiredRestore:
    """Return the restore of the container as a new guest with its VMID (pure)."""
    place = {"vmid": chosen.archive.vmid, "node": node}
    options = {**desired.options, **place}
    return replace(desired, new_name=chosen.name, confirm="", options=options, completes=True)


def _require_confirmed(desired: DesiredRestore, chosen: ChosenArchive) -> None:
    if desired.confirm == chosen.name:
        return
    raise ValidationFailed(
        attempted=f"Container {chosen.archive.vmid} was not restored",
        answer=f"confirm is '{desired.confirm}', and its name in the archive is '{chosen.name}'",
        next_step="Correct confirm if this container is meant",
        reason="confirm",
    )
