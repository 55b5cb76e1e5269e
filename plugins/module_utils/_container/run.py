# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module container: find the container, plan, then apply the plan or preview it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from .._cluster.placement import require_node
from .._cluster.rules import require_not_kept
from .._cluster.state import ClusterState
from .._cluster.view import ClusterView
from .._cluster.visible import look_for, require_no_other_kind, require_visible
from .._core.result import Result
from .._guest.context import RunContext
from .._guest.flow.apply import apply_plan
from .._guest.flow.flow import GuestPlan, require_choice, with_connection, with_free_name
from .._guest.flow.gather import choose_home, with_current_power
from .._guest.flow.place import choose_place
from .._guest.flow.placed import Placed
from .._guest.flow.reads import GuestReads
from .._guest.model import Actual
from .._guest.plan.creation import Creation
from .._isolation.guest import IsolatingFlow
from .._resource.plan import Plan
from .config.figures import memory_of
from .desired.parse import ContainerOptions, read_options
from .gather.facts import at_nearest_copy, gather_existing, gather_new, origin_of
from .kind import CONTAINER
from .live.addresses import report_of_guest
from .model import DesiredContainer
from .plan.decide import (
    aim_of,
    decide,
    intent_of,
    needs_of,
    placed,
    plan_creation,
    require_allowed,
    require_file_wanted,
    require_possible,
    unverified_options,
)
from .plan.origin import require_source
from .plan.planner import CONTAINER_PLANNER

if TYPE_CHECKING:
    from .._api.client import Client

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
    return apply_plan(CONTAINER_FLOW.plan(context, context.cluster_view.now()))


def read_container_options(params: Mapping[str, Any]) -> ContainerOptions:
    """Return the parsed options; every refusal is a ValidationFailed."""
    options = read_options(params)
    require_choice(options.desired.guest, "No container was chosen")
    return options


class ContainerFlow(IsolatingFlow[ContainerContext]):
    """How a run brings containers to their desired state."""

    key = "container"
    planner = CONTAINER_PLANNER

    def update(
        self, context: ContainerContext, actual: Actual, cluster: ClusterState
    ) -> ContainerPlan:
        desired, connection = context.desired, context.client.connection
        reads = GuestReads(context.client)
        if desired.guest.rebalance or desired.guest.limits is not None:
            cluster = context.cluster_view.fresh(cluster)
        intent = intent_of(desired, actual, cluster)
        needs = needs_of(desired, intent.after, actual.vmid)
        choice = choose_home(reads, intent, needs, memory_of(actual.live), cluster)
        intent = with_current_power(reads, intent.at(choice))
        require_possible(intent, cluster, connection)
        facts = gather_existing(reads, intent, cluster)
        plan = decide(intent, facts, connection)
        unverified = unverified_options(actual.label, intent.change, facts.release)
        return GuestPlan(
            self,
            context,
            replace(context, desired=intent.desired, choice=choice, unverified=unverified),
            plan,
            cluster,
            intent.actual,
            growth=intent.growth,
            config=intent.after,
            written=frozenset(intent.change.keys),
            taken=intent.takes(intent.room({}, facts.cluster)),
        )

    def new(self, context: ContainerContext, cluster: ClusterState) -> ContainerPlan:
        desired, client = context.desired, context.client
        guest, reads = desired.guest, GuestReads(client)
        attempted = f"{guest.label} was not created"
        require_no_other_kind(cluster, guest.vmid, attempted, CONTAINER.other.noun)
        require_visible(look_for(client, cluster, guest.vmid), guest.vmid, attempted)
        cluster = with_free_name(client, guest, cluster)
        require_source(desired)
        if guest.node:
            require_node(cluster, guest.node)
        origin = origin_of(reads, desired, cluster)
        require_file_wanted(desired, origin)
        aim = aim_of(origin)
        require_allowed(aim, client.connection)
        choice = choose_place(reads, aim, aim.needs({}), cluster)
        aim, choice = at_nearest_copy(reads, aim, choice, cluster)
        facts = gather_new(reads, aim, choice.node, cluster)
        container = placed(aim, choice, facts, client.connection)
        unverified = unverified_options(aim.label, aim.change, facts.release)
        context = replace(context, unverified=unverified)
        return self.draft(context, replace(container, bridges=reads.bridges.seen), cluster)

    def plan_creation(self, placed: Placed[Any], creation: Creation) -> Plan:
        return plan_creation(placed, creation)

    def guest_report(self, context: ContainerContext, actual: Actual) -> Mapping[str, Any]:
        request = context.settings.guest
        return report_of_guest(context.client, actual, request, waits=not context.check_mode)


CONTAINER_FLOW = ContainerFlow()
