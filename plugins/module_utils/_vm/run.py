# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm: find the VM, plan, then apply the plan or preview it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from .._cluster.rules import require_not_kept
from .._cluster.state import ClusterState
from .._cluster.view import ClusterView
from .._cluster.visible import look_for
from .._core.result import Result
from .._guest.context import RunContext
from .._guest.flow.apply import apply_plan
from .._guest.flow.flow import GuestPlan, require_choice, with_connection, with_free_name
from .._guest.flow.gather import choose_home, with_current_power
from .._guest.flow.intent import must_leave
from .._guest.flow.place import choose_place
from .._guest.flow.placed import Placed
from .._guest.model import Actual
from .._guest.plan.creation import Creation
from .._isolation.guest import IsolatingFlow
from .._resource.plan import Plan, Step
from .config.figures import memory_of
from .desired.parse import VmOptions, read_options
from .gather.facts import at_nearest_copy, gather_existing, gather_new
from .gather.reads import Reads, release_for_names
from .gather.source import origin_of, with_newer_image
from .kind import VM
from .live.guest import report_of_guest
from .live.snippets import current_content, put_snippet, write_snippet
from .model import DesiredVm
from .plan.decide import (
    aim_of,
    decide,
    needs_of,
    placed,
    plan_creation,
    require_allowed,
    require_creatable,
    require_possible,
    require_usable,
)
from .plan.intent import intent_of, may_migrate
from .plan.refusals.options import require_names
from .plan.snippets import with_snippet
from .plan.update import VM_PLANNER

if TYPE_CHECKING:
    from .._api.client import Client


@dataclass(frozen=True)
class VmContext(RunContext[DesiredVm]):
    """The context that one run of a VM passes through its stages."""

    snippet_now: str | None = None  # the present content of the file of the desired user data


VmPlan: TypeAlias = GuestPlan[VmContext]


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring a VM to the desired state and return the result; in check mode write nothing."""
    options = read_vm_options(params)
    require_not_kept(options.desired.guest.rules, "a single VM")
    context = context_of(options, client, check_mode)
    return apply_plan(VM_FLOW.plan(context, context.cluster_view.now()))


def context_of(options: VmOptions, client: Client, check_mode: bool) -> VmContext:
    """Return the context of a task on one VM. Raises FleetError."""
    return prepared(
        VmContext(
            client=client,
            desired=options.desired,
            settings=options.settings,
            check_mode=check_mode,
            cluster_view=ClusterView(client, {VM.type}),
        )
    )


def read_vm_options(params: Mapping[str, Any]) -> VmOptions:
    """Return the parsed options; every refusal is a ValidationFailed."""
    options = read_options(params)
    require_choice(options.desired.guest, "No VM was chosen")
    return options


def prepared(context: VmContext) -> VmContext:
    """Return the context with facts from the connection and the file of the user data.

    Raises ValidationFailed for options that PVE does not have.
    """
    desired, client = context.desired, context.client
    return replace(
        context,
        desired=with_connection(client, desired),
        snippet_now=current_content(desired.hardware.snippet),
        unverified=require_names(desired, release_for_names(client, desired)),
    )


class VmFlow(IsolatingFlow[VmContext]):
    """How a run brings VMs to their desired state."""

    key = "vm"
    planner = VM_PLANNER

    def ask_ahead(self, context: VmContext, actual: Actual) -> None:
        guest = context.desired.guest
        if must_leave(guest, actual) and may_migrate(guest, actual):
            Reads(context.client).migration(actual, guest.node or "")

    def update(self, context: VmContext, actual: Actual, cluster: ClusterState) -> VmPlan:
        desired = context.desired
        reads = Reads(context.client)
        if desired.guest.rebalance or desired.guest.limits is not None:
            cluster = context.cluster_view.fresh(cluster)
        desired = with_newer_image(reads, desired, actual, cluster)
        intent = intent_of(desired, actual, context.snippet_now, cluster)
        needs = needs_of(desired, intent.after, intent.change, vmid=actual.vmid)
        choice = choose_home(reads, intent, needs, memory_of(actual.live), cluster)
        intent = with_current_power(reads, intent.at(choice))
        require_possible(intent, cluster, context.client.connection)
        facts = gather_existing(reads, intent, cluster)
        decision = decide(intent, facts, context.client.connection)
        return GuestPlan(
            self,
            context,
            replace(context, desired=intent.desired, choice=choice),
            decision.plan,
            cluster,
            intent.actual,
            growth=intent.growth,
            config=intent.after,
            images=decision.images,
            written=frozenset(intent.change.keys),
            taken=decision.taken,
        )

    def new(self, context: VmContext, cluster: ClusterState) -> VmPlan:
        desired = context.desired
        client = context.client
        reads = Reads(client)
        require_creatable(desired, cluster, look_for(client, cluster, desired.guest.vmid))
        cluster = with_free_name(client, desired.guest, cluster)
        aim = aim_of(origin_of(reads, desired, cluster))
        require_allowed(aim, cluster, client.connection)
        choice = choose_place(reads, aim, aim.needs({}), cluster)
        aim, choice = at_nearest_copy(reads, desired, aim, choice, cluster)
        require_usable(aim, choice.node, cluster, client.connection)
        facts = gather_new(reads, aim, choice.node, cluster)
        vm = placed(aim, choice, facts, client.connection)
        return self.draft(context, replace(vm, bridges=reads.bridges.seen), cluster)

    def plan_creation(self, placed: Placed[Any], creation: Creation) -> Plan:
        return plan_creation(placed, creation)

    def with_files(self, context: VmContext, plan: Plan, actual: Actual | None, node: str) -> Plan:
        snippet = context.desired.hardware.snippet
        return with_snippet(plan, snippet, context.snippet_now, actual, node)

    def write_files(self, context: VmContext, node: str) -> list[str]:
        snippet = context.desired.hardware.snippet
        return write_snippet(context.client, snippet, context.snippet_now, node)

    def put_file(self, client: Client, step: Step) -> None:
        put_snippet(client, step)

    def looked_again(self, context: VmContext) -> VmContext:
        return replace(context, snippet_now=current_content(context.desired.hardware.snippet))

    def guest_report(self, context: VmContext, actual: Actual) -> Mapping[str, Any]:
        request = context.settings.guest
        return report_of_guest(context.client, actual, request, waits=not context.check_mode)

    def after_writing(self, desired: DesiredVm, done: Sequence[Step]) -> DesiredVm:
        if not _has_password(done):
            return desired
        return desired.with_hardware(update_password="on_create")

    def while_made(self, desired: DesiredVm, done: Sequence[Step]) -> DesiredVm:
        # A clone inherits its template's password, which PVE does not show: ours is written once.
        update = "on_create" if _has_password(done) else "always"
        return desired.with_hardware(update_password=update)


def _has_password(done: Sequence[Step]) -> bool:
    return any("cipassword" in step.data for step in done)


VM_FLOW = VmFlow()
