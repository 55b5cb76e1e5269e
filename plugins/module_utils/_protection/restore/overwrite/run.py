# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Overwrites the guest of an archive: reads it, plans its copy and the steps, and executes or
previews the plan.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.tasks import Holder, find_holder
from ...._foundation.cluster.bridges import KnownBridges
from ...._foundation.cluster.find.restoring import await_restored, is_bare, seems_bare
from ...._foundation.cluster.placement import PlacementNeeds, require_hardware
from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.cluster.storages.allocation import with_allocations
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.errors import Conflict, FleetError, NotFound, PermissionDenied
from ...._foundation.core.result import Result
from ...._foundation.spec.clone import clone_spec
from ...._foundation.spec.fleet import with_defaults
from ...._guests.fleet.plan import after_plan
from ...._guests.guest.clone.options import read_clone_as
from ...._guests.guest.clone.run import plan_clone_of
from ...._guests.guest.container.plan.decide import require_restorable
from ...._guests.guest.context import RunContext
from ...._guests.guest.create.quota_race import gather_usage, growth_of, require_quota
from ...._guests.guest.create.total_use import require_total
from ...._guests.guest.desired.guest import require_allowed
from ...._guests.guest.flow.apply import require_permitted
from ...._guests.guest.flow.existing import apply_to_guest
from ...._guests.guest.flow.flow import GuestFlow, GuestPlan
from ...._guests.guest.flow.reads import GuestReads
from ...._guests.guest.live.find import require_own
from ...._guests.guest.live.read import read_wherever
from ...._guests.guest.plan.intent import Source
from ...._guests.guest.registry import list_of
from ...._guests.kinds.model import Actual, Guest
from ...._guests.kinds.words import CONTAINER
from ...._operation.tasks.read import TaskQuery, read_tasks
from ...._operation.tasks.row import newest_first
from ...backup.archive import Archive
from ..choose import ChosenArchive
from ..desired import DesiredRestore
from ..interrupted import find_ran, has_failed, restores_of
from .plan import Overwrite, archived_guest, plan_overwrite, require_possible, require_space
from .resource import OverwrittenGuest

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


# PVE's types of tasks that clone a guest (the ID is the VMID of the source), and that restore one.
_CLONES, _RESTORES = (["qmclone"], ["vzclone"]), ("qmrestore", "vzrestore")
_TASKS = 10  # tasks of a guest to read
_LIMITS = ("quota", "quotas", "quota_sites", "site_quotas")


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
    # A guest that ran is started again.
    state = "started" if ran is not None else context.desired.guest.state
    at_place = context.desired.with_guest(vmid=actual.vmid, node=None, state=state)
    context = replace(context, desired=at_place)
    if not is_bare(actual.live):
        require_own(context.desired.guest, actual)
    run = os.urandom(6).hex()
    source = Source(volume=chosen.archive.volume, archived=chosen.config)
    storage = flow.planner.restore_data(context.desired, source).get("storage")
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
        is_same_state = is_present(client, actual, copy.actual)
        require_present(copy, actual, is_same_state=is_same_state)
        require_clonable(client, copy, actual)
        task = replace(task, copy=copy)
        cluster = after_plan(client, cluster, copy)
    storages = {task.storage, *actual.kind.storages_in(chosen.config)}
    sized = with_allocations(
        client, cluster, {one: 1 for one in storages if one}, actual.kind.content
    )
    restored = require_space(flow.planner, task, sized)
    _require_devices(client, flow, task, restored, sized)
    plan = plan_overwrite(flow.planner, task)
    _require_of_tenant(client, flow, task, sized)
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
            f"{chosen.archive.volume} was not restored: there is no {chosen.kind.noun} "
            f"{chosen.archive.vmid} to overwrite",
            "Give new_name instead of confirm",
            "no guest to overwrite",
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


def _require_devices(
    client: Client,
    flow: GuestFlow[Any],
    task: Overwrite,
    restored: Mapping[str, str],
    cluster: ClusterState,
) -> None:
    """Raise FleetError if the guest will start and its node lacks a mapped device of its restored
    configuration with the options of the task, or another running VM holds a device of it.
    """
    actual, state = task.actual, task.desired.guest.state
    if state != "started" and not (actual.running and state == "present"):
        return
    change = flow.planner.all_changes(task.desired, restored)
    after, kind, bridges = flow.planner.applied(change, restored), actual.kind, KnownBridges(client)
    needs = PlacementNeeds(
        devices=dict.fromkeys(kind.devices_in(after)),
        cards=kind.cards_in(after),
        vmid=actual.vmid,
        label=actual.label,
    )
    needs = bridges.with_cards(bridges.with_devices(needs), actual.node, cluster)
    require_hardware(cluster, actual.node, needs)


def _require_of_tenant(
    client: Client, flow: GuestFlow[Any], task: Overwrite, cluster: ClusterState
) -> None:
    """Raise FleetError if the restored guest would have something that its tenant must not use, or
    break the quota of its tenant.
    """
    guest, actual = task.desired.guest, task.actual
    target = archived_guest(task).target
    after = flow.planner.applied(flow.planner.changes(task.desired, target), target)
    storages = {task.storage} if task.storage else set()
    require_allowed(guest, actual.label, actual.target, after, storages)
    if guest.limits is None:
        return
    growth = growth_of(guest, actual, after)
    usage = gather_usage(client, guest, cluster) if growth.is_limited(guest) else None
    require_quota(guest, actual.label, growth, usage, cluster, actual.vmid)
    copies = [task.copy] if task.copy is not None else []
    copied = [one.new.figures(one.sizes) for one in copies if one.new is not None]
    figures = guest.kind.figures_of(after, template=actual.template)
    require_total(client, guest, actual.vmid, growth, figures, copied)


def plan_copy(
    client: Client, restore: DesiredRestore, guest: Guest, actual: Actual, cluster: ClusterState
) -> GuestPlan[Any]:
    """Return the plan of the copy. The copy is placed and counted like any clone, is stopped, and
    does not start with its node. Raises FleetError if it cannot be made.
    """
    one = list_of(actual.kind.type)
    wanted = {
        "name": restore.keep_name,
        "source": str(actual.vmid),
        "full": True,
        "onboot": False,
        "tenant": guest.tenant,
        "tenant_prefix": guest.tenant_prefix,
        "pool": actual.pool,
        "storage": restore.keep_storage,
        "task_timeout": restore.timeout,
        **{name: restore.options.get(name) for name in _LIMITS},
    }
    options = read_clone_as(one, with_defaults(clone_spec(), wanted))
    view = ClusterView(client, {actual.kind.type})
    context: RunContext[Any] = RunContext(client, options.desired, options.settings, False, view)
    return plan_clone_of(one.flow.ready(context), cluster.of_type(actual.kind.type))


def require_present(plan: GuestPlan[Any], actual: Actual, *, is_same_state: bool) -> None:
    """Raise Conflict for an existing copy of another state (pure)."""
    if plan.actual is not None and not is_same_state:
        raise Conflict(
            f"{actual.label} was not overwritten: {plan.actual.label} exists, and is a copy of an "
            "earlier state",
            "Give another keep_name, or remove the earlier copy",
            "copy exists",
        )


def require_clonable(client: Client, plan: GuestPlan[Any], actual: Actual) -> None:
    """Raise PermissionDenied if the login cannot make the copy. PVE would refuse the clone only
    after the guest was stopped (qemu-server: API2/Qemu.pm, clone_vm).
    """
    try:
        require_permitted(client, [plan])
    except PermissionDenied as error:
        next_step = f"{error.next_step}, or keep the state with keep=archive"
        attempted = f"{actual.label} was not overwritten"
        raise error.on(attempted=attempted, next_step=next_step) from error


def is_present(client: Client, actual: Actual, copy: Actual | None) -> bool:
    """Return whether a copy has the state of a guest before its last restore; one request.

    This is true if both are stopped, and the guest's last task other than restores is a clone.
    """
    if copy is None or actual.running or copy.running:
        return False
    query = TaskQuery(limit=_TASKS, vmid=actual.vmid)
    tasks = read_tasks(client, [actual.node], query)[actual.node]
    if isinstance(tasks, FleetError):
        return False
    others = [task.type for task in newest_first(tasks) if task.type not in _RESTORES]
    return others[:1] in _CLONES
