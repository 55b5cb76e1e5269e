# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm: find the VM, plan, then apply the plan or preview it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._cluster.bridges import KnownBridges
from .._cluster.lookup import find_vm
from .._cluster.rules import with_site
from .._cluster.site import require_own_node, require_own_storages
from .._cluster.state import FRESH, ClusterState
from .._cluster.view import ClusterView
from .._cluster.visible import require_no_container, require_visible
from .._core.errors import Conflict, DigestChanged, ValidationFailed
from .._core.result import Result
from .._guest.marker import join_notes, split_notes
from .._resource.plan import Plan
from .config.actual import with_power
from .config.changes import Change, apply_to, changes, with_images
from .context import RunContext
from .create.images import check_images, guard_drives, with_new_volumes
from .create.placement import rebalance, take_room
from .desired.parse import VmOptions, read_options
from .live.allocation import base_storages, check_allocation
from .live.find import find, guard, still_nameless
from .live.making import is_unfinished
from .live.read import read_actual, read_wherever, require_same
from .live.requirements import (
    check_change,
    check_cpus,
    check_names,
    check_pool,
    check_root_only,
    check_snapshots,
    check_version,
    hidden_pool,
)
from .live.snippets import check_snippets, current_content, with_snippet, write_snippet
from .model import Actual, Desired
from .plan import power
from .plan.preconditions import require_origin
from .plan.room import Taken
from .plan.steps import changes_pool, is_stale, moves_node
from .plan.update import plan_absent, plan_change
from .report import report

if TYPE_CHECKING:
    from .._api.client import Client
    from .create.draft import Draft
    from .create.quota_race import Growth


Planner = Callable[[RunContext, ClusterState], "VmPlan"]


@dataclass(frozen=True)
class VmPlan:
    """A VM's plan and the facts it rests on: the VM as it is or the draft of a new one, neither
    where it is gone.
    """

    asked: RunContext
    context: RunContext  # with what was decided
    plan: Plan
    cluster: ClusterState
    actual: Actual | None = None
    draft: Draft | None = None
    growth: Growth | None = None
    config: Mapping[str, str] | None = None  # what the VM's configuration will be
    # bytes of what new disks import, by slot
    images: Mapping[str, int] = field(default_factory=dict)
    written: frozenset[str] = frozenset()  # the options that the plan changes
    taken: Taken | None = None  # what an existing VM takes more of its node
    read_at: float = 0.0  # when the VM was read, by the client's monotonic clock
    plan_again: Planner | None = None  # how the module plans from a new look

    @property
    def again(self) -> Planner:
        """What plans the VM from a new look."""
        return self.plan_again or plan_vm


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring a VM to the desired state and return the result; in check mode write nothing."""
    options = read_vm_options(params)
    context = RunContext(
        client=client,
        desired=options.desired,
        settings=options.settings,
        check_mode=check_mode,
        cluster_view=ClusterView(client),
    )
    return apply_plan(plan_vm(prepared(context), context.cluster_view.now()))


def read_vm_options(params: Mapping[str, Any]) -> VmOptions:
    """Return what the options ask for; every refusal is a ValidationFailed."""
    options = read_options(params)
    require_choice(options.desired, "No VM was chosen")
    return options


def require_choice(desired: Desired, attempted: str) -> None:
    """Raise ValidationFailed where neither a name nor a number says which VM is meant."""
    if not desired.name and desired.vmid is None:
        raise ValidationFailed(
            attempted=attempted,
            answer="neither name nor vmid is given",
            next_step="Give one of them",
            reason="name or vmid",
        )


def prepared(context: RunContext) -> RunContext:
    """Return the context with what the connection and the file of the user data say of it.

    Raises ValidationFailed for options that PVE does not have.
    """
    desired, client = context.desired, context.client
    if desired.node and desired.state != "absent":
        require_own_node(client.connection, desired.node)
    if desired.source is not None and desired.source.storage:
        require_own_storages(client.connection, [desired.source.storage])
    return replace(
        context,
        desired=replace(desired, rules=with_site(desired.rules, client.connection)),
        snippet_now=current_content(desired.snippet),
        doubts=check_names(client, desired),
    )


def plan_vm(context: RunContext, cluster: ClusterState) -> VmPlan:
    """Return the plan for the VM, after every check that needs no write. Raises FleetError."""
    actual, cluster = find(context, cluster)
    if actual is None:
        return plan_missing_vm(context, cluster, cluster)
    return plan_found_vm(context, actual, cluster)


def plan_missing_vm(context: RunContext, cluster: ClusterState, searched: ClusterState) -> VmPlan:
    """Return the plan for a VM that does not exist: create it, unless the state is absent.

    `searched` is the cluster state with the names that were read while the VM was searched.
    """
    if context.desired.state == "absent":
        require_visible(
            context.client,
            cluster,
            context.desired.vmid,
            f"{context.desired.label} was not removed",
        )
        warnings = still_nameless(context.desired, searched)
        if cluster.is_container(context.desired.vmid):
            kept = f"a container has the number {context.desired.vmid}, and was left as it is"
            warnings = (*warnings, kept)
        return VmPlan(context, context, Plan(warnings=warnings), cluster)
    power.check_state(context.desired, None)
    return plan_new_vm(context, cluster)


def plan_found_vm(context: RunContext, actual: Actual, cluster: ClusterState) -> VmPlan:
    """Return the plan for an existing VM that has passed the tenant guard."""
    read_at = context.client.clock.monotonic()
    if context.desired.state != "absent":
        require_origin(context.desired, actual, cluster)
        vm_plan = _update(context, actual, cluster)
        _refuse_template(context.desired, actual, vm_plan.plan)
        return replace(vm_plan, asked=context, read_at=read_at)
    name = context.desired.name
    if name and name != actual.name:  # numbers are used again, and what is destroyed is gone
        raise Conflict(
            attempted=f"VM {actual.vmid} was not removed",
            answer=f"it is '{actual.name}' and not '{name}'",
            next_step="Name the VM you mean by its vmid or its name alone",
            reason="name differs",
        )
    return VmPlan(
        context, context, plan_absent(context.desired, actual), cluster, actual, read_at=read_at
    )


def _refuse_template(desired: Desired, actual: Actual, plan: Plan) -> None:
    """Raise Conflict where a task without state=template would change a template."""
    if not actual.template or desired.state == "template" or not plan.changed:
        return
    raise Conflict(
        attempted=f"{actual.label} was not changed",
        answer="it is a template",
        next_step="Set state=template to change it, or choose another name or vmid",
        reason="template",
    )


def plan_new_vm(context: RunContext, cluster: ClusterState) -> VmPlan:
    """Return the plan for a new VM."""
    import uuid  # not loaded for an existing VM

    from .create.draft import draft_vm

    vmid, attempted = context.desired.vmid, f"{context.desired.label} was not created"
    require_no_container(cluster, vmid, attempted)
    require_visible(context.client, cluster, vmid, attempted)
    identity = str(uuid.uuid4())
    draft = draft_vm(
        context.client, context.desired, cluster, run=os.urandom(6).hex(), identity=identity
    )
    if "cicustom" in context.desired.property_strings:
        unknown = check_snippets(
            context.client,
            cluster,
            draft.node,
            draft.config,
            context.desired.snippet,
            context.snippet_now,
        )
        draft = replace(draft, plan=replace(draft.plan, warnings=(*draft.plan.warnings, *unknown)))
    return _of_draft(context, draft, cluster)


def _of_draft(context: RunContext, draft: Draft, cluster: ClusterState) -> VmPlan:
    plan = with_snippet(draft.plan, context.desired.snippet, context.snippet_now, None, draft.node)
    return VmPlan(
        context,
        replace(context, choice=draft.choice),
        plan,
        cluster,
        draft=draft,
        config=draft.config,
    )


def _update(context: RunContext, actual: Actual, cluster: ClusterState) -> VmPlan:
    """Return the plan for an existing VM, after every check that needs no write."""
    if split_notes(actual.target.get("description"))[1].building:
        # It still has its source's password.
        context = replace(context, desired=replace(context.desired, update_password="always"))
    client, bridges = context.client, KnownBridges(context.client)
    if context.desired.rebalance or context.desired.limits is not None:
        cluster = context.cluster_view.fresh(cluster)
    change = changes(context.desired, actual.target)
    after = apply_to(change, actual.target)
    _check_options(context, actual, change, cluster)
    choice = rebalance(client, context.desired, actual, after, change, cluster, bridges)
    if choice is not None:
        desired = replace(context.desired, node=choice.node)
        context = replace(context, desired=desired, choice=choice)
    desired = context.desired
    actual = _with_current_power(context, actual, change)
    _check_node(context, actual, change, after, cluster, bridges)
    check_snapshots(client, desired, actual, change)
    images = check_images(client, with_new_volumes(desired, actual.target), actual.node)
    if changes_pool(desired, actual):
        check_pool(client, desired.pool, cluster)
    starts = power.wakes(desired) and not actual.running
    taken = take_room(client, cluster, desired, actual, after, images, starts=starts)
    growth = _growth(context, actual, after, cluster)
    change = with_images(change, desired, actual.target, images)
    plan = plan_change(
        desired,
        actual,
        change,
        shared=cluster.shared_storages,
        bases=base_storages(cluster),
    )
    plan = with_snippet(
        plan, desired.snippet, context.snippet_now, actual, desired.node or actual.node
    )
    warnings = _warnings(context, actual, change, after, cluster)
    plan = replace(plan, warnings=(*plan.warnings, *warnings))
    return VmPlan(
        context,
        context,
        plan,
        cluster,
        actual,
        growth=growth,
        config=after,
        images=images,
        written=frozenset(change.keys),
        taken=taken,
    )


def _growth(
    context: RunContext, actual: Actual, after: Mapping[str, str], cluster: ClusterState
) -> Growth | None:
    """Return by how much the VM grows within its tenant's quota, None without one.

    Raises QuotaExceeded where the quota has no room.
    """
    if context.desired.limits is None:
        return None
    from .create.quota_race import grow_within  # only loaded for a quota

    return grow_within(context.client, context.desired, actual, after, cluster)


def _check_options(
    context: RunContext, actual: Actual, change: Change, cluster: ClusterState
) -> None:
    """Raise FleetError for options that the server, the user or the storages do not allow."""
    client, desired = context.client, context.desired
    check_version(client, actual.label, change.sets)
    check_root_only(client, actual.label, change, actual.target)
    check_allocation(client, desired, actual.target, cluster)
    guard_drives(desired, change.sets, actual.target, cluster, actual.vmid)


def _with_current_power(context: RunContext, actual: Actual, change: Change) -> Actual:
    """Return the VM with its power state as it is now, where a change may depend on it."""
    if not actual.listed:
        return actual
    is_changed = change.keys or moves_node(context.desired, actual)
    if is_changed or context.desired.reboot != "never" or is_stale(actual):
        return with_power(actual, context.client.get(*actual.path, "status", "current"))
    return actual


def _check_node(
    context: RunContext,
    actual: Actual,
    change: Change,
    after: Mapping[str, str],
    cluster: ClusterState,
    bridges: KnownBridges,
) -> None:
    """Raise FleetError where the VM's node lacks what the change needs, or cannot be reached."""
    desired = context.desired
    node, moves = desired.node or actual.node, moves_node(desired, actual)
    if change.keys or moves:
        check_change(bridges, change, node, cluster)
    starts = power.wakes(desired) and not actual.running
    counts_cpus = moves or change.keys & {"cores", "sockets", "vcpus"}
    if starts or (actual.running and counts_cpus):
        check_cpus(actual.label, after, node, cluster)
    if moves and desired.migrate and actual.status != "hibernated":  # the plan refuses that
        kinds = {row.storage: row.kind for row in cluster.storages}
        from .live.moving import check_move  # only loaded for a migration

        check_move(context.client, actual, node, kinds, after)


def _warnings(
    context: RunContext,
    actual: Actual,
    change: Change,
    after: Mapping[str, str],
    cluster: ClusterState,
) -> tuple[str, ...]:
    """Return what could not be checked of an update, in words. Raises for a missing snippet."""
    client, desired = context.client, context.desired
    warnings = hidden_pool(client, desired, actual)
    if "cicustom" not in change.keys and not context.writes_snippet:
        return warnings
    node = desired.node or actual.node
    unknown = check_snippets(client, cluster, node, after, desired.snippet, context.snippet_now)
    return (*unknown, *warnings)


def apply_plan(vm_plan: VmPlan) -> Result:
    """Apply the plan and return the result; in check mode return the preview and write nothing."""
    context, plan, draft = vm_plan.context, vm_plan.plan, vm_plan.draft
    if draft is not None:
        return preview(vm_plan) if context.check_mode else _make(vm_plan, draft)
    if context.check_mode or not plan.changed or vm_plan.actual is None:
        return preview(vm_plan)
    if context.client.clock.monotonic() - vm_plan.read_at > FRESH:
        vm_plan = _again(vm_plan, vm_plan.actual)
    actual = vm_plan.actual
    if actual is None or not vm_plan.plan.changed:
        return preview(vm_plan)
    if context.desired.state != "absent" and is_unfinished(actual):
        return _complete(vm_plan, actual)
    return _carry_out(vm_plan, actual)


def _carry_out(vm_plan: VmPlan, actual: Actual) -> Result:
    """Change or remove an existing VM."""
    from .apply import ChangedVm, RemovedVm, apply_to_vm  # not loaded where nothing changes

    context, plan = vm_plan.context, vm_plan.plan
    if context.desired.state == "absent":
        return apply_to_vm(RemovedVm(context, plan, actual))
    changed = ChangedVm(
        context,
        plan,
        actual,
        cluster=vm_plan.cluster,
        images=vm_plan.images,
        growth=vm_plan.growth,
        written=vm_plan.written,
    )
    return apply_to_vm(changed)


def _complete(vm_plan: VmPlan, actual: Actual) -> Result:
    """Complete the VM that another run left unfinished, unless a third run is faster.

    The new marker is written with the digest that was read: PVE accepts it from one run only.
    """
    client = vm_plan.context.client
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
        return apply_plan(vm_plan.again(vm_plan.asked, vm_plan.context.cluster_view.now()))
    vm_plan = _again(vm_plan, actual)
    if vm_plan.actual is None:
        return preview(vm_plan)
    return _carry_out(vm_plan, vm_plan.actual)


def with_view(vm_plan: VmPlan, client: Client, cluster_view: ClusterView) -> VmPlan:
    """Return the plan to be applied by another client, with another view of the cluster."""
    asked = replace(vm_plan.asked, client=client, cluster_view=cluster_view)
    context = replace(vm_plan.context, client=client, cluster_view=cluster_view)
    return replace(vm_plan, asked=asked, context=context)


def preview(vm_plan: VmPlan) -> Result:
    """Return the result that the plan would have, without applying it."""
    context, plan, draft = vm_plan.context, vm_plan.plan, vm_plan.draft
    if draft is not None:
        return report(context, plan, None, done=[], node=draft.node, vmid=draft.vmid)
    return report(
        context, plan, None if context.desired.state == "absent" else vm_plan.actual, done=[]
    )


def _again(vm_plan: VmPlan, known: Actual) -> VmPlan:
    """Return the plan from a new reading of the VM: the old one is too old for a write."""
    context = vm_plan.asked
    current = read_wherever(context.client, known.vmid, known.node, pool=known.pool)
    guard(context.desired, current)
    require_same(context.desired, known, current)
    return plan_found_vm(context, current, context.cluster_view.fresh(vm_plan.cluster))


def _make(vm_plan: VmPlan, draft: Draft) -> Result:
    from .create.draft import confirm  # not loaded for an existing VM
    from .create.make import AlreadyMade, make_vm

    context = vm_plan.context
    fresh = context.cluster_view.fresh(vm_plan.cluster)
    if fresh is not vm_plan.cluster:  # reading took long: the listing may show the VM by now
        if _is_listed(context.desired, fresh):
            return apply_plan(vm_plan.again(vm_plan.asked, fresh))
        draft = confirm(context.client, draft, fresh)
    written = write_snippet(
        context.client, context.desired.snippet, context.snippet_now, draft.node
    )
    try:
        draft, done, warnings = make_vm(
            context.client,
            draft,
            timeout=context.settings.task_timeout,
            cluster_view=context.cluster_view,
            taken=vm_plan.cluster.taken,
        )
    except AlreadyMade:
        return apply_plan(vm_plan.again(vm_plan.asked, context.cluster_view.now()))
    made = _of_draft(context, draft, fresh)
    status = str(draft.plan.after["status"])  # the start was a task, and it ended well
    final = read_actual(
        context.client, draft.vmid, draft.node, status=status, pool=context.desired.pool
    )
    return report(made.context, made.plan, final, done=[*written, *done], warnings=warnings)


def _is_listed(desired: Desired, cluster: ClusterState) -> bool:
    """Return whether the listing shows the VM, or several of its name."""
    try:
        row = find_vm(
            cluster,
            vmid=desired.vmid,
            name=desired.name,
            tenant_tag=desired.tenant_tag,
            prefix=desired.tenant_prefix,
        )
    except Conflict:
        return True
    return row is not None
