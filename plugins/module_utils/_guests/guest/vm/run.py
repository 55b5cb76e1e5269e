# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm: find the VM, plan, then apply the plan or preview it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...._foundation.cluster.placement import NodeChoice
from ...._foundation.cluster.rules import require_not_kept
from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.result import Result
from ...._foundation.resource.plan import Plan, Step
from ...kinds.model import Actual
from ...kinds.vm.kind import VM
from ...kinds.vm.model import DesiredVm
from ..context import RunContext
from ..flow.apply import run_guest
from ..flow.flow import GuestPlan, require_choice, with_connection
from ..flow.gather import keep_or_choose_node
from ..flow.intent import DecidedPlan, must_leave
from ..flow.placed import PlacedGuest
from ..isolation import IsolatingFlow
from ..plan.creation import Creation
from .desired.parse import VmOptions, read_options
from .gather.facts import gather_existing, gather_new
from .gather.reads import VmReads, release_for_names
from .gather.source import clone_origin, origin_of, with_newer_image
from .live.guest import report_of_guest
from .live.snippets import current_content, put_snippet, write_snippet
from .plan.decide import (
    VmBlueprint,
    blueprint_of,
    decide,
    needs_of,
    placed,
    plan_creation,
    require_allowed,
    require_creatable,
    require_possible,
    require_usable,
)
from .plan.intent import VmIntent, intent_of, may_migrate
from .plan.refusals.options import require_names
from .plan.snippets import with_snippet
from .plan.update import VM_PLANNER

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


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
    return run_guest(VM_FLOW, context)


def context_of(options: VmOptions, client: Client, check_mode: bool) -> VmContext:
    """Return the context of a task on one VM. Raises FleetError."""
    return with_vm_facts(
        VmContext(
            client=client,
            desired=options.desired,
            settings=options.settings,
            check_mode=check_mode,
            cluster_view=ClusterView(client, {VM.type}),
        )
    )


def read_vm_options(params: Mapping[str, Any]) -> VmOptions:
    """Return the parsed options. Raises ValidationFailed for each refusal."""
    options = read_options(params)
    require_choice(options.desired.guest, "No VM was chosen")
    return options


def with_vm_facts(context: VmContext) -> VmContext:
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
    reads_of = VmReads

    def prefetch(self, context: VmContext, actual: Actual) -> None:
        guest = context.desired.guest
        if must_leave(guest, actual) and may_migrate(guest, actual):
            VmReads(context.client).migration(actual, guest.node or "")

    def intent_of(
        self, reads: VmReads, context: VmContext, actual: Actual, cluster: ClusterState
    ) -> VmIntent:
        desired = with_newer_image(reads, context.desired, actual, cluster)
        intent = intent_of(desired, actual, context.snippet_now, cluster)
        needs = needs_of(desired, intent.after, intent.change, vmid=actual.vmid)
        return keep_or_choose_node(reads, intent, needs, cluster)

    def decide(self, reads: VmReads, intent: VmIntent, cluster: ClusterState) -> DecidedPlan:
        connection = reads.client.connection
        require_possible(intent, cluster, connection)
        return decide(intent, gather_existing(reads, intent, cluster), connection)

    def blueprint(self, reads: VmReads, desired: DesiredVm, cluster: ClusterState) -> VmBlueprint:
        require_creatable(desired, cluster)
        blueprint = blueprint_of(origin_of(reads, desired, cluster))
        require_allowed(blueprint, reads.client.connection)
        return blueprint

    def blueprint_from(
        self, reads: VmReads, desired: DesiredVm, copy: Actual, cluster: ClusterState
    ) -> VmBlueprint:
        return blueprint_of(clone_origin(reads, desired, copy, cluster))

    def place(
        self, reads: VmReads, blueprint: VmBlueprint, choice: NodeChoice, cluster: ClusterState
    ) -> PlacedGuest[VmBlueprint]:
        connection = reads.client.connection
        require_usable(blueprint, choice.node, cluster, connection)
        facts = gather_new(reads, blueprint, choice.node, cluster)
        return placed(blueprint, choice, facts, connection)

    def plan_creation(self, placed: PlacedGuest[Any], creation: Creation) -> Plan:
        return plan_creation(placed, creation)

    def with_files(self, context: VmContext, plan: Plan, actual: Actual | None, node: str) -> Plan:
        snippet = context.desired.hardware.snippet
        return with_snippet(plan, snippet, context.snippet_now, actual, node)

    def write_files(self, context: VmContext, node: str) -> list[str]:
        snippet = context.desired.hardware.snippet
        return write_snippet(context.client, snippet, context.snippet_now, node)

    def put_file(self, client: Client, step: Step) -> None:
        put_snippet(client, step)

    def with_present_files(self, context: VmContext) -> VmContext:
        return replace(context, snippet_now=current_content(context.desired.hardware.snippet))

    def guest_report(self, context: VmContext, actual: Actual) -> Mapping[str, Any]:
        request = context.settings.guest
        return report_of_guest(context.client, actual, request, waits=not context.check_mode)

    def after_writing(self, desired: DesiredVm, done: Sequence[Step]) -> DesiredVm:
        if not _has_password(done):
            return desired
        return desired.with_hardware(update_password="on_create")

    def during_creation(self, desired: DesiredVm, done: Sequence[Step]) -> DesiredVm:
        # A clone inherits the password of its template, which PVE does not show: the desired
        # password is written once.
        update = "on_create" if _has_password(done) else "always"
        return desired.with_hardware(update_password=update)


def _has_password(done: Sequence[Step]) -> bool:
    return any("cipassword" in step.data for step in done)


VM_FLOW = VmFlow()
