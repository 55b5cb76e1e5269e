# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module container: find the container, plan, then apply the plan or preview it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...._foundation.cluster.placement import NodeChoice, require_node
from ...._foundation.cluster.rules import require_not_kept
from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.result import Result
from ...._foundation.resource.plan import Plan
from ...kinds.container.kind import CONTAINER
from ...kinds.container.model import DesiredContainer
from ...kinds.model import Actual
from ..context import RunContext
from ..flow.apply import run_guest
from ..flow.flow import GuestPlan, require_choice, with_connection
from ..flow.gather import keep_or_choose_node
from ..flow.intent import DecidedPlan
from ..flow.placed import PlacedGuest
from ..flow.reads import GuestReads
from ..flow.volumes import missing_volumes, require_no_missing_volumes
from ..isolation import IsolatingFlow
from ..plan.copies import place_of
from ..plan.creation import Creation
from .desired.parse import ContainerOptions, read_options
from .gather.facts import clone_origin, gather_existing, gather_new, origin_of
from .live.addresses import report_of_guest
from .plan.decide import (
    ContainerBlueprint,
    ContainerIntent,
    blueprint_of,
    decide,
    intent_of,
    needs_of,
    placed,
    plan_creation,
    require_allowed,
    require_file_wanted,
    require_possible,
)
from .plan.origin import require_source
from .plan.planner import CONTAINER_PLANNER

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

ContainerContext: TypeAlias = RunContext[DesiredContainer]
ContainerPlan: TypeAlias = GuestPlan[ContainerContext]


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring a container to the desired state and return the result; in check mode write nothing."""
    options = read_container_options(params)
    require_not_kept(options.desired.guest.rules, "a single container")
    context = ContainerContext(
        client=client,
        desired=with_connection(client, options.desired),
        settings=options.settings,
        check_mode=check_mode,
        cluster_view=ClusterView(client, {CONTAINER.type}),
    )
    return run_guest(CONTAINER_FLOW, context)


def read_container_options(params: Mapping[str, Any]) -> ContainerOptions:
    """Return the parsed options. Raises ValidationFailed for each refusal."""
    options = read_options(params)
    require_choice(options.desired.guest, "No container was chosen")
    return options


class ContainerFlow(IsolatingFlow[ContainerContext]):
    """How a run brings containers to their desired state."""

    key = "container"
    planner = CONTAINER_PLANNER

    def intent_of(
        self, reads: GuestReads, context: ContainerContext, actual: Actual, cluster: ClusterState
    ) -> ContainerIntent:
        intent = intent_of(context.desired, actual, cluster)
        needs = needs_of(context.desired, intent.after, actual.vmid)
        return keep_or_choose_node(reads, intent, needs, cluster)

    def decide(
        self, reads: GuestReads, intent: ContainerIntent, cluster: ClusterState
    ) -> DecidedPlan:
        connection = reads.client.connection
        require_possible(intent, cluster, connection)
        actual = intent.actual
        missing = missing_volumes(reads, intent.change.drives.volumes, actual.node)
        require_no_missing_volumes(missing, actual.node, actual.label)
        return decide(intent, gather_existing(reads, intent, cluster), connection)

    def blueprint(
        self, reads: GuestReads, desired: DesiredContainer, cluster: ClusterState
    ) -> ContainerBlueprint:
        require_source(desired, cluster)
        if desired.guest.node:
            require_node(cluster, desired.guest.node)
        origin = origin_of(reads, desired, cluster)
        require_file_wanted(desired, origin)
        blueprint = blueprint_of(origin)
        require_allowed(blueprint, reads.client.connection)
        return blueprint

    def blueprint_from(
        self, reads: GuestReads, desired: DesiredContainer, copy: Actual, cluster: ClusterState
    ) -> ContainerBlueprint:
        origin = clone_origin(reads, desired, copy, cluster)
        return blueprint_of(replace(origin, nodes=place_of(copy, cluster.shared_storages)))

    def place(
        self,
        reads: GuestReads,
        blueprint: ContainerBlueprint,
        choice: NodeChoice,
        cluster: ClusterState,
    ) -> PlacedGuest[ContainerBlueprint]:
        facts = gather_new(reads, blueprint, choice.node, cluster)
        missing = missing_volumes(reads, blueprint.change.drives.volumes, choice.node)
        require_no_missing_volumes(missing, choice.node, blueprint.label)
        return placed(blueprint, choice, facts, reads.client.connection)

    def plan_creation(self, placed: PlacedGuest[Any], creation: Creation) -> Plan:
        return plan_creation(placed, creation)

    def guest_report(self, context: ContainerContext, actual: Actual) -> Mapping[str, Any]:
        request = context.settings.guest
        return report_of_guest(context.client, actual, request, waits=not context.check_mode)


CONTAINER_FLOW = ContainerFlow()
