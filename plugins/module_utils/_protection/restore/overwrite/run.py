# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Overwrites the guest of an archive: reads it, plans, and executes or previews the plan."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.tasks import Holder, find_holder
from ...._foundation.cluster.find.restoring import await_restored, is_bare, seems_bare
from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.cluster.storages.allocation import with_allocations
from ...._foundation.core.errors import NotFound
from ...._foundation.core.result import Result
from ...._guests.fleet.plan import after_plan
from ...._guests.guest.container.plan.decide import require_restorable
from ...._guests.guest.create.quota_race import gather_usage, growth_of, require_quota
from ...._guests.guest.flow.existing import apply_to_guest
from ...._guests.guest.flow.flow import GuestFlow
from ...._guests.guest.flow.reads import GuestReads
from ...._guests.guest.live.find import require_own
from ...._guests.guest.live.read import read_wherever
from ...._guests.kinds.model import Actual
from ...._guests.kinds.words import CONTAINER
from ...backup.archive import Archive
from ..choose import ChosenArchive
from ..desired import DesiredRestore
from ..orphans import has_failed, restores_of
from ..ran import find_ran
from .copy import is_present, plan_copy, require_clonable, require_present
from .plan import Overwrite, archived_guest, plan_overwrite, require_possible, require_space
from .resource import OverwrittenGuest

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def overwrite(
    flow: GuestFlow[Any],
    context: Any,
    desired: DesiredRestore,
    chosen: ChosenArchive,
    cluster: ClusterState,
    archives: Sequence[Archive],
) -> Result:
    """Restore the archive over its guest and return the result; in check mode write nothing."""
    client = context.client
    actual = read_guest(client, desired, chosen, cluster)
    ran = None
    if context.desired.guest.state == "present":
        ran = find_ran(client, actual, archives)
    context = replace(context, desired=_desired(context.desired, actual, ran=ran))
    if not is_bare(actual.live):
        require_own(context.desired.guest, actual)
    run = os.urandom(6).hex()
    storage = flow.planner.restore_storage(context.desired, chosen.config)
    task = Overwrite(desired, chosen, context.desired, actual, run, storage, ran=ran)
    names = () if task.is_empty else GuestReads(client).snapshot_names(actual)
    status = client.get(*actual.path, "status", "current")
    require_possible(task, names, status)
    if actual.kind is CONTAINER:
        attempted = f"{actual.label} was not overwritten"
        require_restorable(attempted, chosen.config, client.connection.login)
    if task.copies:
        guest = context.desired.guest
        copy = plan_copy(client, desired, guest, actual, cluster)
        require_present(copy, is_present(client, actual, copy.actual), actual)
        require_clonable(client, copy, actual)
        task = replace(task, copy=copy)
        cluster = after_plan(client, cluster, copy)
    sized = with_allocations(client, cluster, _room_of(task), actual.kind.content)
    require_space(flow.planner, task, sized)
    plan = plan_overwrite(flow.planner, task)
    _require_quota(client, flow, task, sized)
    return apply_to_guest(OverwrittenGuest(flow, context, plan, task))


def read_guest(
    client: Client, desired: DesiredRestore, chosen: ChosenArchive, cluster: ClusterState
) -> Actual:
    """Return the guest to overwrite. Raises NotFound if it is gone, and BeingRestored while a
    restore writes it.
    """
    row = chosen.row or _empty_row(chosen, cluster)
    if row is None:
        raise NotFound(
            attempted=f"{chosen.archive.volume} was not restored",
            answer=f"there is no {chosen.kind.noun} {chosen.archive.vmid} to overwrite",
            next_step="Give new_name instead of confirm",
            reason="no guest to overwrite",
        )
    actual = read_wherever(client, chosen.kind, row.vmid, row.node, pool=row.pool)
    if is_bare(actual.live) and actual.lock:
        holder = find_holder(client.get, actual.node, actual.vmid, actual.lock)
        _require_no_holder(holder, actual)
    if is_bare(actual.live) and not has_failed(restores_of(client, row)):
        attempted = f"{chosen.kind.noun} {row.vmid} was not overwritten"
        await_restored(client, actual.path, seconds=0, attempted=attempted)
        actual = read_wherever(client, chosen.kind, row.vmid, row.node, pool=row.pool)
    return actual


def _require_no_holder(holder: Holder, actual: Actual) -> None:
    """Raise Locked for an empty guest on which a task may still work (pure)."""
    if holder.upid or holder.is_hidden:
        attempted = f"{actual.label} was not overwritten"
        raise holder.refusal(attempted, actual.node, actual.lock or "")


def _empty_row(chosen: ChosenArchive, cluster: ClusterState) -> VmRow | None:
    """Return the row of the guest if a failed restore has left it empty (pure)."""
    row = cluster.vms.get(chosen.archive.vmid or 0)
    if row is not None and seems_bare(row) and row.type == chosen.archive.type:
        return row
    return None


def _desired(desired: Any, actual: Actual, *, ran: int | None) -> Any:
    """Return the desired guest at the present VMID; a guest that ran is started again (pure)."""
    state = "started" if ran is not None else desired.guest.state
    return desired.with_guest(vmid=actual.vmid, node=None, state=state)


def _room_of(task: Overwrite) -> dict[str, int]:
    """Return the storages for which the type of allocation must be read (pure)."""
    storages = {task.storage} if task.storage else set()
    storages |= set(task.actual.kind.storages_in(task.chosen.config))
    return {storage: 1 for storage in storages if storage}


def _require_quota(
    client: Client, flow: GuestFlow[Any], task: Overwrite, cluster: ClusterState
) -> None:
    """Raise QuotaExceeded if the restored guest would break the quota of its tenant."""
    guest, actual = task.desired.guest, task.actual
    if guest.limits is None:
        return
    target = archived_guest(task).target
    after = flow.planner.applied(flow.planner.changes(task.desired, target), target)
    growth = growth_of(guest, actual, after)
    usage = gather_usage(client, guest, cluster) if growth.is_limited(guest) else None
    require_quota(guest, actual.label, growth, usage, cluster, actual.vmid)
