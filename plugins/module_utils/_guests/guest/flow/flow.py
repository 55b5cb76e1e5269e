# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stages of a run for one guest, up to its plan: find it, read the facts, refuse, plan.

Both kinds of guests have the same stages, and each kind has its own rules for each stage.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from ...._foundation.api.settings import ConnectionSettings
from ...._foundation.api.tasks import holder_of
from ...._foundation.cluster.find.visible import probe_vmid, require_no_other_kind, require_visible
from ...._foundation.cluster.placement import PlacementNeeds, require_room
from ...._foundation.cluster.quota import Limits
from ...._foundation.cluster.rules import with_site
from ...._foundation.cluster.site import (
    require_known_lists,
    require_new_guests,
    require_own_bridges,
    require_own_node,
    require_own_storages,
    unknown_in_lists,
)
from ...._foundation.cluster.state import ClusterState, with_other_names
from ...._foundation.cluster.view import PATIENCE
from ...._foundation.cluster.vmids import advice
from ...._foundation.core import validate
from ...._foundation.core.errors import Conflict, FleetError, Locked, NotFound
from ...._foundation.core.failures.classify import lock_in
from ...._foundation.plans.document import PlannedGuest
from ...._foundation.plans.scope import differences_of
from ...._foundation.resource.plan import Plan
from ...kinds.config.change import with_images
from ...kinds.hardware import MOVED, AnyDesired
from ...kinds.model import Actual, Guest
from ..context import RunContext, TaskSettings
from ..create.quota_race import require_quota
from ..create.total_use import require_total
from ..desired.guest import require_allowed
from ..isolation import isolated
from ..live.creation import read_other_kind, with_hidden_creations
from ..live.find import (
    find,
    hidden_creation,
    is_nameless,
    require_listed_guest,
    require_own,
    still_nameless,
)
from ..live.handover import require_handover, require_nothing_moved
from ..live.linked_clones import linked_clones
from ..live.read import is_elsewhere, read_wherever, require_same
from ..live.snippets import with_present_content
from ..live.steps import has_ended
from ..plan import power
from ..plan.capacity import Capacity, require_allocation
from ..plan.creation import plan_creation
from ..plan.intent import Facts, Intent, checks_migration, must_leave, with_relocation
from ..plan.planner import GuestPlanner
from ..plan.refusals import (
    require_bridges,
    require_creation,
    require_mtus,
    require_name_free,
    require_own_pool,
    require_pool,
    require_template_wanted,
)
from ..plan.removal import plan_removal, require_named_so
from ..plan.steps import with_user_data
from .place import keep_or_choose_node, place
from .reads import GuestReads, gather, with_current_power
from .volumes import require_no_borrowers, require_no_other_users, require_own_volumes

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


Planner: TypeAlias = Callable[[Any, ClusterState], "GuestPlan[Any]"]


@dataclass(frozen=True)
class GuestPlan(Generic[AnyDesired]):
    """A guest's plan and its facts.

    `actual` is the present guest, None for a new guest. `intent` and `facts` are None if the guest
    is removed or stays absent.
    """

    flow: GuestFlow[AnyDesired]
    requested: RunContext[AnyDesired]
    context: RunContext[AnyDesired]  # with the decisions
    plan: Plan
    cluster: ClusterState
    actual: Actual | None = None
    intent: Intent[AnyDesired] | None = None
    facts: Facts | None = None
    read_at: float = 0.0  # when the guest was read, by the client's monotonic clock
    plan_again: Planner | None = None  # how the module plans from a new reading

    @property
    def again(self) -> Planner:
        """The function that plans the guest from a new reading."""
        return self.plan_again or self.flow.plan

    @property
    def new(self) -> Intent[AnyDesired] | None:
        """The guest that the plan creates."""
        return self.intent if self.actual is None else None

    @property
    def place(self) -> tuple[int, str]:
        """The VMID and the node of the guest; 0 and no node for a guest that stays absent."""
        if self.actual is not None:
            return self.actual.vmid, self.actual.node
        return (0, "") if self.intent is None else (self.intent.vmid, self.intent.node)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The bytes of the images that were read for the plan."""
        return {} if self.facts is None else self.facts.sizes

    @property
    def planned_guest(self) -> PlannedGuest:
        """The guest in a plan that is kept for its approval."""
        guest, (vmid, node) = self.context.guest, self.place
        name = guest.name or (self.actual.name if self.actual else "")
        tenant, taken = guest.tenant_tag or "", self.taken
        room: dict[str, Any] = {}
        if taken is not None and (taken.memory or taken.storages):
            room = {"memory": taken.memory, "storages": taken.storages}
        name = name or str(vmid)
        written = {option for step in self.plan.steps for option in step.data}
        identity = "" if self.actual is None else self.actual.identity.words(written)
        return PlannedGuest(guest.kind.type, tenant, name, vmid, node, room, identity)

    @property
    def config(self) -> Mapping[str, str] | None:
        """The guest's configuration after the plan."""
        return None if self.intent is None else self.intent.after

    @property
    def taken(self) -> Capacity | None:
        """The room that the guest needs on its node beyond its room in the listing."""
        if self.intent is None or self.facts is None or self.intent.is_settled:
            return None
        room = self.intent.room(self.facts.sizes, self.facts.cluster)
        return self.intent.capacity_on_node(room)


class GuestFlow(Generic[AnyDesired]):
    """How a run brings guests of one kind to their desired state.

    Each kind overrides the methods in which it differs. `key` is the name of the guest in results.
    """

    key: str
    planner: GuestPlanner[AnyDesired, Any]

    # -- the differences of the kinds

    def desired_for(
        self, reads: GuestReads, desired: AnyDesired, actual: Actual, cluster: ClusterState
    ) -> AnyDesired:
        """Return the desired guest for an existing guest.

        Raises FleetError for a guest that the task would not create.
        """
        raise NotImplementedError

    def from_source(
        self, reads: GuestReads, desired: AnyDesired, cluster: ClusterState
    ) -> Intent[AnyDesired]:
        """Return a new guest with its source. Raises FleetError if no node can have it."""
        raise NotImplementedError

    def from_copy(
        self, reads: GuestReads, desired: AnyDesired, copy: Actual, cluster: ClusterState
    ) -> Intent[AnyDesired]:
        """Return a new guest as a clone of this copy of its template."""
        raise NotImplementedError

    def read_more(self, reads: GuestReads, intent: Intent[AnyDesired], facts: Facts) -> Facts:
        """Return the facts with those that only this kind needs."""
        raise NotImplementedError

    def require_names(self, client: Client, desired: AnyDesired) -> tuple[str, ...]:
        """Return warnings about options that only the server can judge. Raises FleetError for
        options that its version of PVE does not have.
        """
        return ()

    def guest_report(
        self, client: Client, actual: Actual, request: TaskSettings, *, waits: bool
    ) -> Mapping[str, Any]:
        """Return the report of the guest itself, after waiting for it if that is requested."""
        raise NotImplementedError

    # -- the common part

    def prefetch(self, context: RunContext[AnyDesired], actual: Actual) -> None:
        """Send the requests for the plan of an existing guest that are known before the plan.

        The client of the context caches the answers. A planner calls this for several guests in
        parallel, then plans one guest after the other.
        """
        guest = context.guest
        if must_leave(guest, actual) and checks_migration(guest, actual):
            GuestReads(context.client).migration(actual, guest.node or "")

    def ready(self, context: RunContext[AnyDesired]) -> RunContext[AnyDesired]:
        """Return the context of a task with facts of the connection, the file of the user data, and
        warnings about options. Raises FleetError.
        """
        desired = with_connection(context.client, context.desired)
        if desired.hardware.snippet is not None:
            desired = with_present_content(desired)
        unverified = self.require_names(context.client, desired)
        return replace(context, desired=desired, unverified=unverified)

    def needs_of(self, intent: Intent[AnyDesired], facts: Facts | None = None) -> PlacementNeeds:
        """Return the needs of a new guest on any node."""
        sizes = facts.sizes if facts is not None else {}
        return replace(self.planner.rules.needs_of(intent), room=intent.allocated(sizes))

    def plan(self, context: RunContext[AnyDesired], cluster: ClusterState) -> GuestPlan[AnyDesired]:
        """Return the plan, after every check that needs no write. Raises FleetError."""
        actual, cluster = find(context, cluster)
        if actual is None:
            require_listed_guest(context.client, context.guest, context.guest.pool)
            return self.plan_missing(context, cluster, cluster)
        return self.plan_found(context, actual, cluster)

    def plan_missing(
        self, context: RunContext[AnyDesired], cluster: ClusterState, searched: ClusterState
    ) -> GuestPlan[AnyDesired]:
        """Return the plan for a guest that does not exist: create it, unless the state is absent.

        Raises Conflict if a guest of the other kind has its VMID. `searched` is the cluster state
        with the names that were read during the search for the guest.
        """
        desired = context.desired.guest
        if desired.state != "absent":
            power.require_possible_state(desired, None)
            placed = _placed(context, cluster)
            return replace(self.new(placed, cluster), requested=context)
        _require_free(context.client, desired, cluster, "removed")
        notes = still_nameless(desired, searched) or hidden_creation(context, cluster)
        plan = Plan(warnings=notes)
        return GuestPlan(self, context, context, plan, cluster)

    def plan_found(
        self, context: RunContext[AnyDesired], actual: Actual, cluster: ClusterState
    ) -> GuestPlan[AnyDesired]:
        """Return the plan for an existing guest that has passed the tenant guard.

        If the guest is moving to another node, or has just moved, it is read and planned once more
        after that.
        """
        try:
            return self._plan_found(context, actual, cluster)
        except FleetError as error:
            current = _after_move(context, actual, error)
            if current is None:
                raise
        return self._plan_found(context.direct(), current, cluster)

    def _plan_found(
        self, context: RunContext[AnyDesired], actual: Actual, cluster: ClusterState
    ) -> GuestPlan[AnyDesired]:
        read_at = context.client.clock.monotonic()
        guest = context.guest
        if guest.state != "absent":
            if guest.name != actual.name:
                cluster = with_free_name(context.client, guest, cluster, "renamed")
            wanted = context if guest.isolation is None else isolated(context, actual)
            guest_plan = self.update(wanted, actual, cluster)
            return replace(guest_plan, requested=context, read_at=read_at)
        require_named_so(guest, actual)
        plan = plan_removal(context.desired, actual, linked_clones(context.client, actual))
        warnings = require_no_borrowers(context.client, actual, cluster, guest.leaving)
        plan = replace(plan, warnings=(*plan.warnings, *warnings))
        return GuestPlan(self, context, context, plan, cluster, actual, read_at=read_at)

    def update(
        self, context: RunContext[AnyDesired], actual: Actual, cluster: ClusterState
    ) -> GuestPlan[AnyDesired]:
        """Return the plan for an existing guest."""
        guest = context.guest
        if guest.rebalance or guest.limits is not None:
            cluster = context.cluster_view.fresh(cluster)
        reads = GuestReads(context.client)
        desired = self.desired_for(reads, context.desired, actual, cluster)
        intent = self.planner.intent_of(desired, actual)
        if intent.guest.node or intent.guest.rebalance or intent.boots:
            needs = self.planner.rules.needs_of(intent)
            intent = keep_or_choose_node(reads, intent, needs, cluster)
        intent = with_current_power(reads, intent)
        sets, target = intent.change.sets, intent.before
        if sets:
            require_own_volumes(context.client, guest, sets, target, cluster, actual.vmid)
        if any(disk.state == MOVED for disk in intent.desired.hardware.disks):
            require_handover(context.client, intent.desired, intent.start, cluster)
        if intent.change.drives.removed:
            require_no_other_users(context.client, intent.start, intent.change.drives.removed)
        return self._decided(context, reads, intent, cluster)

    def new(self, context: RunContext[AnyDesired], cluster: ClusterState) -> GuestPlan[AnyDesired]:
        """Return the plan for a new guest, whose source is its present configuration: read the
        source, choose the node, then decide.
        """
        client = context.client
        require_new_guests(client.connection)
        require_known_lists(unknown_in_lists(client, cluster))
        _require_free(client, context.guest, cluster, "created")
        cluster = with_free_name(client, context.guest, cluster)
        require_creation(context.guest, cluster)
        context = isolated(context, None)
        desired = context.desired
        require_nothing_moved(desired)
        reads = GuestReads(client)

        def from_copy(copy: Actual) -> Intent[AnyDesired]:
            return self.from_copy(reads, desired, copy, cluster)

        intent = self.from_source(reads, desired, cluster)
        needs = self.planner.rules.needs_of(intent)
        require_own_storages(client.connection, needs.storages)
        require_own_bridges(client.connection, needs.bridges)
        require_own_volumes(client, context.guest, intent.change.sets, intent.before, cluster)
        intent = place(reads, intent, cluster, self.needs_of, from_copy)
        return self._decided(context, reads, intent, cluster)

    def _decided(
        self,
        context: RunContext[AnyDesired],
        reads: GuestReads,
        intent: Intent[AnyDesired],
        cluster: ClusterState,
    ) -> GuestPlan[AnyDesired]:
        """Read the facts of a guest on its node, then decide. Raises FleetError for a refusal."""
        rules, connection = self.planner.rules, reads.client.connection
        storages = intent.change.drives.storages
        if not intent.is_settled:
            require_allowed(intent.guest, intent.label, intent.present, intent.after, storages)
        rules.refuse_listed(intent, cluster, connection)
        facts = gather(reads, intent, cluster, self.read_more)
        if intent.arrives:
            intent = with_relocation(intent, facts)
        warnings = rules.refuse(intent, facts, connection)
        refuse(intent, facts, connection)
        context = _within_total(context, intent, facts)
        unverified = rules.unverified(intent, facts)
        intent = replace(intent, warnings=warnings)
        if intent.source is not None:
            unverified = (*(intent.choice.warnings if intent.choice else ()), *unverified)
            approved, _node = _approved_place(context)
            vmid = intent.guest.vmid or approved or intent.guest.vmids.free(cluster.taken)
            if vmid == approved:
                _require_free_number(context.guest, vmid, cluster)
            run, identity = os.urandom(6).hex(), str(uuid.uuid4())
            intent = replace(intent, vmid=vmid, run=run, identity=identity)
        decided = replace(context, unverified=context.unverified + unverified)
        actual = intent.start if intent.source is None else None
        guest_plan = GuestPlan(self, context, decided, Plan(), cluster, actual)
        return self.planned(guest_plan, intent, facts)

    def planned(
        self, guest_plan: GuestPlan[AnyDesired], intent: Intent[AnyDesired], facts: Facts
    ) -> GuestPlan[AnyDesired]:
        """Return the plan that creates or changes the guest.

        Raises FleetError for a change that PVE would refuse half way.
        """
        guest = intent.guest
        if intent.source is not None:
            change = with_images(intent.change, intent.desired, intent.before, facts.sizes)
            new, shared = replace(intent, change=change), facts.cluster.shared_storages
            plan = plan_creation(self.planner, new, shared=shared)
        else:
            plan = self.planner.plan_intent(intent, facts)
        warnings = list(plan.warnings)
        if intent.vmid and guest.vmid is not None:
            warnings += filter(None, [advice(intent.vmid, guest.vmid_ranges)])
        warnings += intent.warnings
        if facts.may_hide_pool:
            cause = "the token has no Pool.Audit on /pool"
            warnings.append(f"{intent.label}: {cause}, so a pool that it is in may be hidden")
        plan = replace(plan, warnings=tuple(warnings))
        snippet = intent.desired.hardware.snippet
        plan = with_user_data(plan, snippet, guest_plan.actual, intent.node)
        if guest_plan.actual is not None and guest_plan.actual.template:
            require_template_wanted(guest, guest_plan.actual, plan)
        context = replace(guest_plan.context, desired=intent.desired, choice=intent.choice)
        return replace(guest_plan, context=context, plan=plan, intent=intent, facts=facts)


def _approved_place(context: RunContext[Any]) -> tuple[int, str]:
    """Return the VMID and the node of a new guest in the approved plan; 0 and no node without one."""
    guest = context.guest
    name = guest.name or str(guest.vmid)
    place = context.client.plan_book.place_of(guest.kind.type, guest.tenant_tag or "", name)
    return place or (0, "")


def _placed(context: RunContext[AnyDesired], cluster: ClusterState) -> RunContext[AnyDesired]:
    """Return the context of a new guest for which only the node of the approved plan remains: it is
    checked like a chosen node, but another node is not chosen.
    """
    _vmid, node = _approved_place(context)
    if not node or context.guest.node:
        return context
    rules = context.guest.rules
    rules = replace(rules, exclude=rules.exclude | (cluster.nodes.keys() - {node}))
    return context.with_desired(context.desired.with_guest(rules=rules))


def _require_free_number(guest: Guest, vmid: int, cluster: ClusterState) -> None:
    """Raise Conflict if the VMID of a new guest in the approved plan is taken."""
    if vmid in cluster.taken:
        row = cluster.vms.get(vmid)
        planned = PlannedGuest(guest.kind.type, guest.tenant_tag or "", guest.name or "", vmid, "")
        found = differences_of(planned, row) if row is not None else []
        causes = "; ".join((f"the VMID {vmid} of the approved plan is in use", *found))
        raise Conflict(
            f"{guest.label} was not created: {causes}",
            "Plan again, and have the new plan approved",
            "not the approved plan",
        )


def reread(context: RunContext[Any], known: Actual) -> Actual:
    """Return the guest as it is now. Raises Conflict if its VMID has been reused, or if it belongs
    to another tenant now.
    """
    client = context.client.direct()
    current = read_wherever(client, known.kind, known.vmid, known.node, pool=known.pool)
    require_own(context.guest, current, known)
    require_same(context.guest, known, current)
    return current


def _after_move(context: RunContext[Any], known: Actual, error: FleetError) -> Actual | None:
    """Return the guest after the running migration that this error names, or on the node to which
    it has moved; None for another error. Other tasks, such as a backup, may take hours.
    """
    if isinstance(error, Locked) and lock_in(error) == "migrate":
        holder, client = holder_of(error), context.client.direct()
        if holder and not has_ended(client, holder, context.settings.task_timeout):
            return None
        current = reread(context, known)  # the migration may have ended before its task was read
        return None if current.lock else current
    if not is_elsewhere(error):
        return None
    try:
        current = reread(context, known)
    except NotFound:
        return None
    return current if current.node != known.node else None


def _require_free(client: Client, desired: Guest, cluster: ClusterState, verb: str) -> None:
    """Raise Conflict if a guest of the other kind has the VMID, PermissionDenied if the guest with
    the VMID is hidden from the caller.
    """
    attempted = f"{desired.label} was not {verb}"
    require_no_other_kind(cluster, desired.vmid, attempted, desired.kind.other.noun)
    sight = probe_vmid(client, cluster, desired.vmid)
    if sight.in_use and not sight.created:
        known = with_hidden_creations(client, desired.kind, cluster, desired.vmid)
        sight = replace(sight, created=desired.vmid in known.vms)
    require_visible(sight, desired.vmid, attempted)


def with_free_name(
    client: Client, desired: Guest, cluster: ClusterState, verb: str = "created"
) -> ClusterState:
    """Return the cluster state with the names of guests of the other kind; their nodes are asked
    for names that the listing lacks. Raises Conflict if such a guest of the tenant has the name,
    TaskTimeout if it is being created and may get the name.
    """
    if not desired.name or not cluster.others:
        return cluster
    cluster = with_other_names(client, cluster)
    rows = list(cluster.others.values())
    for row in filter(is_nameless, cluster.others.values()):
        if desired.may_have_created(row.vmid, desired.name):
            named = read_other_kind(client, desired, row.vmid, PATIENCE)
            rows += [named] if named else []
    require_name_free(desired, rows, verb)
    return cluster


def with_connection(client: Client, desired: AnyDesired) -> AnyDesired:
    """Return the desired guest with facts of the connection.

    Raises FleetError for nodes and storages that the connection does not allow.
    """
    guest = desired.guest
    if guest.node and guest.state != "absent":
        require_own_node(client.connection, guest.node)
    if guest.source is not None and guest.source.storage:
        require_own_storages(client.connection, [guest.source.storage])
    return desired.with_guest(
        rules=with_site(guest.rules, client.connection),
        limits=_limits_at_site(client.connection, guest),
        only_unowned=client.connection.require_tenant and guest.tenant_tag is None,
    )


def _limits_at_site(connection: ConnectionSettings, guest: Guest) -> Limits | None:
    """Return the quota at the site of the task. Raises ValidationFailed if the quota is over sites,
    and it is none of them (pure).
    """
    sites = guest.sites
    if not sites.names:
        return guest.limits
    if connection.site not in sites.names:
        raise validate.refused(
            "quota_sites",
            list(sites.names),
            f"does not have the site of the task ({connection.site or connection.endpoint})",
            "Set site to one of them, or add the site",
        )
    return sites.quotas.get(connection.site, {})


def _within_total(
    context: RunContext[AnyDesired], intent: Intent[AnyDesired], facts: Facts
) -> RunContext[AnyDesired]:
    """Return the context with the quota over sites of a guest that grows, which module vms has read
    before. Raises FleetError for a guest beyond it.
    """
    grown = intent.growth(facts.sizes)
    if context.total is not None or grown is None:
        return context
    vmid = intent.start.vmid if intent.source is None else 0
    after = intent.figures(facts.sizes)
    total = require_total(context.client, intent.guest, vmid, grown, after)
    return replace(context, total=total)


def refuse(intent: Intent[Any], facts: Facts, connection: ConnectionSettings) -> None:
    """Raise FleetError for a guest that its node, its tenant or the connection does not allow.

    Each kind of guests has further refusals, before these.
    """
    cluster, label = facts.cluster, intent.label
    require_allocation(intent.desired, intent.before, cluster, facts.definitions)
    if intent.is_settled:
        return
    require_pool(intent.new_pool, facts.pools)
    require_own_pool(intent.guest, facts.pool_owner)
    isolation = intent.guest.isolation
    networks = {} if isolation is None else isolation.networks
    require_bridges(intent.bridges, facts.bridges, intent.node, connection, networks)
    require_mtus(intent.kind, label, intent.mtus, facts.mtus)
    growth = intent.growth(facts.sizes)
    if growth is not None:
        vmid = intent.start.vmid if intent.source is None else None
        require_quota(intent.guest, label, growth, facts.usage, cluster, vmid)
    rules, template = intent.guest.rules, intent.template
    if template is not None and template.node != intent.node:
        # A clone that moves to another node first needs room on the template's node.
        room, shared = intent.allocated(facts.sizes), cluster.shared_storages
        local = {storage: size for storage, size in room.items() if storage not in shared}
        require_room(cluster, template.node, PlacementNeeds(room=local), rules, label)
    needs = intent.needs_room(intent.room(facts.sizes, cluster))
    require_room(cluster, intent.node, needs, rules, label)
