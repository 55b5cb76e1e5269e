# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Applies the plan of a guest, or previews it: creates, completes, changes or removes the guest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.api.access.privileges import Privileges
from ...._foundation.cluster.rules import require_not_kept
from ...._foundation.cluster.state import FRESH, ClusterState
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.errors import Conflict, DigestChanged, PermissionDenied
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import after_writes, read_privileges, require_privileges
from ...._foundation.resource.plan import Plan, Step
from ...kinds.hardware import AnyDesired
from ...kinds.marker import join_notes, split_notes
from ...kinds.model import Actual, Guest
from ..context import RunContext
from ..create.vmid_race import AlreadyCreated
from ..describe import report
from ..desired.guest import GuestOptions
from ..live.creation import has_creation_marker
from ..live.find import find_row
from ..live.read import read_actual
from ..live.snippets import write_snippet
from ..live.steps import await_unlocked, require_unlocked
from ..plan.intent import Intent
from .create import confirm, create_guest, with_pool_hint
from .existing import ChangedGuest, RemovedGuest, apply_to_guest
from .flow import GuestFlow, GuestPlan, reread

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def run_task(
    flow: GuestFlow[AnyDesired], options: GuestOptions[AnyDesired], client: Client, check_mode: bool
) -> Result:
    """Bring one guest to the state of a task's options; in check mode write nothing."""
    kind = flow.planner.kind
    require_not_kept(options.desired.guest.rules, f"a single {kind.noun}")
    view = ClusterView(client, {kind.type})
    context = flow.ready(RunContext(client, options.desired, options.settings, check_mode, view))
    # An item of a loop uses the listing of the previous item if that changed nothing, the listing
    # has the guest, and the guest needs no change. Every change is planned from a new listing.
    earlier = view.of_previous_item()
    if earlier is not None and _is_listed(context.guest, earlier):
        guest_plan = flow.plan(context, earlier)
        if not guest_plan.plan.changed:
            view.leave(earlier)
            return preview(guest_plan)
    cluster = view.now()
    result = apply_plan(flow.plan(context, cluster))
    if not result.changed:
        view.leave(cluster)
    return result


def apply_plan(guest_plan: GuestPlan[AnyDesired]) -> Result:
    """Apply the plan and return the result; in check mode return the preview and write nothing."""
    context, plan = guest_plan.context, guest_plan.plan
    if context.check_mode:
        return preview(guest_plan, read_privileges(context.client, [plan]))
    if context.client.plan_book.is_used:
        whole = plan if plan.changed else _with_values(guest_plan)
        context.client.plan_book.agree(whole, guest_plan.planned_guest)
    if guest_plan.new is not None:
        return _create(guest_plan, guest_plan.new)
    if not plan.changed or guest_plan.actual is None:
        return preview(guest_plan)
    holder = await_unlocked(context.client, guest_plan.actual, context.settings.task_timeout)
    require_unlocked(holder, guest_plan.actual)
    age = context.client.clock.monotonic() - guest_plan.read_at
    if holder.has_ended or age > FRESH:
        guest_plan = _again(guest_plan, guest_plan.actual)
    actual = guest_plan.actual
    if actual is None or not guest_plan.plan.changed:
        return preview(guest_plan)
    if context.desired.guest.state != "absent" and has_creation_marker(actual):
        return _complete(guest_plan, actual)
    return _apply_existing(guest_plan, actual)


def _apply_existing(guest_plan: GuestPlan[AnyDesired], actual: Actual) -> Result:
    """Change or remove an existing guest."""
    context = guest_plan.context
    if context.desired.guest.state != "absent":
        return apply_to_guest(ChangedGuest(guest_plan, actual))
    return apply_to_guest(RemovedGuest(guest_plan.flow, context, guest_plan.plan, actual))


def _with_take_over(guest_plan: GuestPlan[AnyDesired]) -> Plan:
    """Return the plan with the write that takes over a guest that is not finished, see _complete."""
    plan, actual = guest_plan.plan, guest_plan.actual
    is_removed = guest_plan.context.desired.guest.state == "absent"
    if actual is None or is_removed or not plan.changed or not has_creation_marker(actual):
        return plan
    data = {"description": actual.target.get("description")}
    summary = f"Take over the unfinished {actual.label}"
    step = Step("take over", summary, "PUT", (*actual.path, "config"), data)
    return replace(plan, steps=(step, *plan.steps))


def _with_values(guest_plan: GuestPlan[AnyDesired]) -> Plan:
    """Return a plan without steps with the values of the guest, which an approved plan may want to
    change.
    """
    plan, actual = guest_plan.plan, guest_plan.actual
    if actual is None:
        return plan
    image = actual.marker.image.label if actual.marker.image is not None else ""
    values = {"node": actual.node, "status": actual.status, "image": image}
    return replace(plan, before={**actual.kind.formatted(actual.target), **values})


def _complete(guest_plan: GuestPlan[AnyDesired], actual: Actual) -> Result:
    """Complete the guest that another run left unfinished, unless a third run is faster.

    The new marker is written with the digest that was read, so PVE accepts it from one run only.
    """
    client = guest_plan.context.client
    notes, marker = split_notes(actual.target.get("description"))
    mine = join_notes(notes, replace(marker, run=os.urandom(6).hex()))
    try:
        client.write(
            "PUT",
            *(*actual.path, "config"),
            data={"description": mine, "digest": actual.digest},
            attempted=f"Could not take over the unfinished {actual.label}",
        )
    except DigestChanged:
        return apply_plan(
            guest_plan.again(guest_plan.requested, guest_plan.context.cluster_view.now())
        )
    with after_writes([f"Take over the unfinished {actual.label}"]):
        guest_plan = _again(guest_plan, actual)
        if guest_plan.actual is None:
            return preview(guest_plan)
        return _apply_existing(guest_plan, guest_plan.actual)


def with_view(
    guest_plan: GuestPlan[AnyDesired], client: Client, cluster_view: ClusterView
) -> GuestPlan[AnyDesired]:
    """Return the plan to be applied by another client, with another view of the cluster."""
    requested = replace(guest_plan.requested, client=client, cluster_view=cluster_view)
    context = replace(guest_plan.context, client=client, cluster_view=cluster_view)
    return replace(guest_plan, requested=requested, context=context)


def preview(guest_plan: GuestPlan[AnyDesired], held: Privileges | None = None) -> Result:
    """Return the result that the plan would have, without applying it.

    Raises PermissionDenied if the login, which has the privileges `held`, cannot apply it.
    """
    context, plan = guest_plan.context, guest_plan.plan
    _require_privileges(guest_plan, held)
    plan_book = context.client.plan_book
    if plan_book.is_used:
        whole = _with_take_over(guest_plan) if plan.changed else _with_values(guest_plan)
        if context.check_mode:
            plan_book.keep(whole, guest_plan.planned_guest)
        plan_book.agree(whole, guest_plan.planned_guest)  # in check mode, the refusal of this guest
    if guest_plan.new is not None:
        return report(guest_plan.flow, context, plan, None, done=[], new=guest_plan.place)
    actual = None if context.desired.guest.state == "absent" else guest_plan.actual
    return report(guest_plan.flow, context, plan, actual, done=[])


def _require_privileges(guest_plan: GuestPlan[AnyDesired], held: Privileges | None) -> None:
    """Raise PermissionDenied for the first step that PVE would refuse, as in a run."""
    actual, new = guest_plan.actual, guest_plan.new
    config = actual.target if actual is not None else {}
    if new is not None:
        config = new.before
    try:
        require_privileges(guest_plan.plan, held, config)
    except PermissionDenied as error:
        if new is None:
            raise
        raise with_pool_hint(error, guest_plan.context.desired.guest) from error


def require_permitted(
    client: Client, plans: Sequence[GuestPlan[Any] | None], first: Plan | None = None
) -> None:
    """Raise PermissionDenied for the first step of the plans that PVE would refuse, as in a run.

    `first` has the writes before those of the guests.
    """
    known = [one for one in plans if one is not None]
    before = first or Plan()
    held = read_privileges(client, [before, *(one.plan for one in known)])
    require_privileges(before, held)
    for one in known:
        _require_privileges(one, held)


def _again(guest_plan: GuestPlan[AnyDesired], known: Actual) -> GuestPlan[AnyDesired]:
    """Return the plan from a new reading of the guest: the old plan is too old for a write."""
    context = guest_plan.requested
    current = reread(context, known)
    fresh = context.cluster_view.fresh(guest_plan.cluster)
    return guest_plan.flow.plan_found(context, current, fresh)


def _create(guest_plan: GuestPlan[AnyDesired], new: Intent[AnyDesired]) -> Result:
    flow, context = guest_plan.flow, guest_plan.context
    taken = guest_plan.cluster.taken
    fresh = context.cluster_view.fresh(guest_plan.cluster)
    if fresh is not guest_plan.cluster:
        # reading took a long time: the listing may already show the guest
        if _is_listed(context.desired.guest, fresh):
            return apply_plan(guest_plan.again(guest_plan.requested, fresh))
        guest_plan = confirm(guest_plan, new, fresh)
    snippet = new.desired.hardware.snippet
    written = write_snippet(context.client, snippet, guest_plan.place[1])
    try:
        with after_writes(written):
            guest_plan, creation_steps, warnings = create_guest(guest_plan, taken)
    except AlreadyCreated:
        return apply_plan(guest_plan.again(guest_plan.requested, context.cluster_view.now()))
    done = [*written, *creation_steps]
    plan, (vmid, node), guest = guest_plan.plan, guest_plan.place, new.guest
    status = str(plan.after["status"])  # the start was a task, and it ended well
    with after_writes(done):
        final = read_actual(context.client, guest.kind, vmid, node, status=status, pool=guest.pool)
        plan = replace(plan, warnings=(*plan.warnings, *warnings))
        return report(flow, guest_plan.context, plan, final, done=done)


def _is_listed(desired: Guest, cluster: ClusterState) -> bool:
    """Return whether the listing shows the guest, or several guests with its name."""
    try:
        return find_row(cluster, desired) is not None
    except Conflict:
        return True
