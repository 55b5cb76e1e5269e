# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the copies of drills, and removes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.access.listed import require_listed
from ...._foundation.cluster.drill.copies import CopyNotes, copy_name, find_copy, is_marked
from ...._foundation.cluster.find.owner import OwnerScope
from ...._foundation.cluster.find.restoring import (
    await_restored,
    find_restored,
    suspects,
    with_bare_queried,
)
from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.cluster.view import ClusterView
from ...._foundation.cluster.vmids import comes_early
from ...._foundation.core.errors import Conflict, NotFound
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.result import Result
from ...._guests.fleet.items import removal_of
from ...._guests.guest.context import RunContext
from ...._guests.guest.flow.existing import RemovedGuest, apply_to_guest
from ...._guests.guest.live.creation import await_name, with_hidden_creations
from ...._guests.guest.live.read import read_wherever
from ...._guests.guest.plan.removal import plan_absent
from ...._guests.guest.registry import LISTS, list_of
from ...._guests.kinds.model import LIKELY, Actual
from ..interrupted import candidates, find_orphans
from .desired import CopyOptions

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


@dataclass(frozen=True)
class FoundCopy:
    """A copy of a drill, with the data of the drill from its notes."""

    actual: Actual
    notes: CopyNotes


class RemovedCopy(RemovedGuest[Any]):
    """A copy with the plan of its removal."""

    def _reread(self, node: str, status: str | None = None) -> Actual:
        """Return the present copy. Raises Conflict if it is not a copy of the same drill."""
        current = super()._reread(node, status)
        if notes_of(current) == notes_of(self.actual):
            return current
        raise Conflict(
            f"{current.label} was not removed: it is not a copy of this drill any more",
            "Look at it, and remove it by hand if it is one",
            "not a copy",
        )


def notes_of(actual: Actual) -> CopyNotes | None:
    """Return the drill data in the notes of a guest, or None if it is not a copy (pure)."""
    return find_copy(actual.target, actual.name, actual.notes, actual.marker.origin)


def find_copies(client: Client, cluster: ClusterState) -> list[FoundCopy]:
    """Return the copies of drills, sorted by VMID; one request for each guest with the copy tag."""
    rows = [row for row in cluster.guests if is_marked(row.tags)]

    def read(row: VmRow) -> FoundCopy | None:
        kind = list_of(row.type).kind
        try:
            actual = read_wherever(client, kind, row.vmid, row.node, pool=row.pool)
        except NotFound:
            return None
        notes = notes_of(actual)
        return None if notes is None else FoundCopy(actual, notes)

    found = side_by_side(read, sorted(rows, key=lambda row: row.vmid))
    return list(filter(None, found))


def await_copies(
    client: Client, cluster: ClusterState, run: str, options: CopyOptions
) -> tuple[str, ...]:
    """Wait for the copies of a drill that are still being restored: until then they have neither
    name nor tags. Return a sentence about each other restore to a VMID of copies.

    Raises BeingRestored or TaskTimeout if a restore takes longer than the time limit of the tasks.
    """
    notes: list[str] = []
    attempted = f"The copies of drill {run} were not removed"
    cluster = with_bare_queried(client, cluster, None, "")
    first, last = options.vmid_range
    for row in suspects(cluster, None, ""):
        if is_vmid_of_copy(cluster, row.vmid, run, options.vmid_range):
            await_restored(client, row.path, seconds=options.timeout, attempted=attempted)
        elif first <= row.vmid <= last:
            notes += find_restored(client, [row]).values()
    for of in LISTS:
        hidden = with_hidden_creations(client, of.kind, cluster).vms
        for vmid in hidden.keys() - cluster.vms.keys():
            if is_vmid_of_copy(cluster, vmid, run, options.vmid_range):
                await_name(client, of.kind, vmid, hidden[vmid].node, options.timeout)
    return tuple(notes)


def find_empty_copies(
    client: Client, cluster: ClusterState, run: str, vmid_range: tuple[int, int]
) -> list[VmRow]:
    """Return the empty VMs that failed restores of a drill have left; two requests for each."""
    owner = OwnerScope(None, "")
    rows = {
        row.vmid: row
        for row in candidates(cluster, owner, ())
        if is_vmid_of_copy(cluster, row.vmid, run, vmid_range)
    }
    return find_orphans(client, replace(cluster, vms=rows), owner, ())


def require_visible_copies(privileges: Mapping[str, Mapping[str, int]], run: str) -> None:
    """Raise PermissionDenied if the caller sees no guest at all (pure)."""
    if not any("VM.Audit" in held for held in privileges.values()):
        require_listed(privileges, f"the copies of drill {run}", (("/vms", "VM.Audit"),))


def is_vmid_of_copy(
    cluster: ClusterState, vmid: int, run: str, vmid_range: tuple[int, int]
) -> bool:
    """Return whether a drill chooses the VMID for the copy of one of these guests (pure)."""
    names = [copy_name(row.vmid, row.own_name, run) for row in cluster.guests if row.own_name]
    return any(comes_early(vmid, vmid_range, "", name, LIKELY) for name in names)


def is_to_remove(one: FoundCopy, runs: Collection[str], now: float, abandoned: int) -> bool:
    """Return whether a copy belongs to one of these drills, or to a drill that began more than
    `abandoned` seconds ago and was therefore interrupted (pure).
    """
    return one.notes.run in runs or now - one.notes.began > abandoned


def remove_copy(client: Client, actual: Actual, *, timeout: int, check_mode: bool) -> Result:
    """Stop a copy and remove it with its disks; in check mode return the plan."""
    of = list_of(actual.kind.type)
    params = {"task_timeout": timeout}
    options = of.read(removal_of(params, actual.vmid, actual.name, of))
    view = ClusterView(client, {actual.kind.type})
    context: RunContext[Any] = RunContext(
        client, options.desired, options.settings, check_mode, view
    )
    plan = plan_absent(options.desired, actual)
    return apply_to_guest(RemovedCopy(of.flow, context, plan, actual))
