# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stages of a run for one guest, up to its plan: find it, read the facts, decide.

Both kinds of guests have the same stages, and each kind has its own rules for each stage.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from ...._foundation.api.tasks import holder_of
from ...._foundation.cluster.find.visible import probe_vmid, require_no_other_kind, require_visible
from ...._foundation.cluster.placement import NodeChoice
from ...._foundation.cluster.rules import with_site
from ...._foundation.cluster.site import require_own_node, require_own_storages
from ...._foundation.cluster.state import ClusterState, with_other_names
from ...._foundation.cluster.view import PATIENCE
from ...._foundation.core.errors import FleetError, Locked, NotFound, ValidationFailed
from ...._foundation.core.failures.classify import lock_in
from ...._foundation.resource.plan import Plan, Step
from ...kinds.hardware import AnyDesired
from ...kinds.model import Actual, Guest
from ..context import AnyContext, RunContext
from ..live.creation import read_other_kind, with_hidden_creations
from ..live.find import find, is_nameless, require_own, still_nameless
from ..live.handover import require_handover, require_nothing_moved
from ..live.linked_clones import linked_clones
from ..live.locks import has_ended
from ..live.read import is_elsewhere, read_wherever, require_same
from ..plan import power
from ..plan.capacity import Capacity
from ..plan.creation import Creation
from ..plan.planner import GuestPlanner
from ..plan.refusals import require_creation, require_name_free
from ..plan.removal import plan_removal, require_named_so
from .gather import with_current_power
from .intent import DecidedPlan, GuestIntent
from .place import choose_place, with_nearest_copy
from .placed import AnyBlueprint, GuestBlueprint, NumberedGuest, PlacedGuest, with_vmid
from .reads import GuestReads
from .volumes import require_no_borrowers, require_no_other_users, require_own_volumes

if TYPE_CHECKING:
    from ...._foundation.api.client import Client
    from ..create.quota_race import QuotaGrowth


Planner: TypeAlias = Callable[[Any, ClusterState], "GuestPlan[Any]"]


@dataclass(frozen=True)
class GuestPlan(Generic[AnyContext]):
    """A guest's plan and its facts: the present guest, the draft of a new guest, or neither."""

    flow: GuestFlow[AnyContext]
    requested: AnyContext
    context: AnyContext  # with the decisions
    plan: Plan
    cluster: ClusterState
    actual: Actual | None = None
    draft: NumberedGuest[Any] | None = None
    growth: QuotaGrowth | None = None
    config: Mapping[str, str] | None = None  # the guest's configuration after the plan
    # bytes of the images that new disks import, by slot
    images: Mapping[str, int] = field(default_factory=dict)
    written: frozenset[str] = frozenset()  # the options that the plan changes
    taken: Capacity | None = None  # the additional room that an existing guest needs on its node
    read_at: float = 0.0  # when the guest was read, by the client's monotonic clock
    plan_again: Planner | None = None  # how the module plans from a new reading

    @property
    def again(self) -> Planner:
        """The function that plans the guest from a new reading."""
        return self.plan_again or self.flow.plan


class GuestFlow(Generic[AnyContext]):
    """How a run brings guests of one kind to their desired state.

    Each kind overrides the methods in which it differs. `key` is the name of the guest in results.
    """

    key: str
    planner: GuestPlanner[Any, Any]
    reads_of: type[GuestReads] = GuestReads

    # -- the differences of the kinds

    def intent_of(
        self, reads: Any, context: AnyContext, actual: Actual, cluster: ClusterState
    ) -> GuestIntent[Any]:
        """Return the changes of an existing guest, and its future node.

        Raises FleetError for impossible changes.
        """
        raise NotImplementedError

    def decide(self, reads: Any, intent: Any, cluster: ClusterState) -> DecidedPlan:
        """Return the plan of an existing guest: read its facts, then decide.

        Raises FleetError for each refusal.
        """
        raise NotImplementedError

    def blueprint(self, reads: Any, desired: Any, cluster: ClusterState) -> GuestBlueprint[Any]:
        """Return the configuration that a new guest will have on any node: read its source.

        Raises FleetError for a guest that no node can have.
        """
        raise NotImplementedError

    def blueprint_from(
        self, reads: Any, desired: Any, copy: Actual, cluster: ClusterState
    ) -> GuestBlueprint[Any]:
        """Return the same for a clone of another copy of its template."""
        raise NotImplementedError

    def place(
        self, reads: Any, blueprint: Any, choice: NodeChoice, cluster: ClusterState
    ) -> PlacedGuest[Any]:
        """Return a new guest on its node: read its facts, then decide.

        Raises FleetError for each refusal.
        """
        raise NotImplementedError

    def prefetch(self, context: AnyContext, actual: Actual) -> None:
        """Send the requests for the plan of an existing guest that are known before the plan.

        The client of the context caches the answers. A planner calls this for several guests in
        parallel, then plans one guest after the other.
        """

    def plan_creation(self, placed: PlacedGuest[Any], creation: Creation) -> Plan:
        """Return the plan that creates a new guest with its node and its VMID."""
        raise NotImplementedError

    def with_files(self, context: AnyContext, plan: Plan, actual: Actual | None, node: str) -> Plan:
        """Return the plan with the steps that write files."""
        return plan

    def write_files(self, context: AnyContext, node: str) -> list[str]:
        """Write the files of a new guest, and return the finished steps."""
        return []

    def put_file(self, client: Client, step: Step) -> None:
        """Execute a step that writes a file."""

    def isolated(self, context: AnyContext, actual: Actual | None) -> AnyContext:
        """Read the firewall of the guest; return the context with the isolation left to write."""
        return context

    def isolate(self, client: Client, step: Step) -> None:
        """Execute a step that writes the firewall of a guest."""

    def guest_report(self, context: AnyContext, actual: Actual) -> Mapping[str, Any]:
        """Return the report of the guest itself, after waiting for it if that is requested."""
        raise NotImplementedError

    def after_writing(self, desired: Any, done: Sequence[Step]) -> Any:
        """Return the desired guest without secrets that these steps have written already."""
        return desired

    def during_creation(self, desired: Any, done: Sequence[Step]) -> Any:
        """Return the desired guest for the rest of its creation after these steps."""
        return desired

    def with_present_files(self, context: AnyContext) -> AnyContext:
        """Return the context with the present files."""
        return context

    # -- the common part

    def plan(self, context: AnyContext, cluster: ClusterState) -> GuestPlan[AnyContext]:
        """Return the plan, after every check that needs no write. Raises FleetError."""
        actual, cluster = find(context, cluster)
        if actual is None:
            return self.plan_missing(context, cluster, cluster)
        return self.plan_found(context, actual, cluster)

    def plan_missing(
        self, context: AnyContext, cluster: ClusterState, searched: ClusterState
    ) -> GuestPlan[AnyContext]:
        """Return the plan for a guest that does not exist: create it, unless the state is absent.

        Raises Conflict if a guest of the other kind has its VMID. `searched` is the cluster state
        with the names that were read during the search for the guest.
        """
        desired = context.desired.guest
        if desired.state != "absent":
            power.require_possible_state(desired, None)
            return replace(self.new(context, cluster), requested=context)
        _require_free(context.client, desired, cluster, "removed")
        plan = Plan(warnings=tuple(still_nameless(desired, searched)))
        return GuestPlan(self, context, context, plan, cluster)

    def plan_found(
        self, context: AnyContext, actual: Actual, cluster: ClusterState
    ) -> GuestPlan[AnyContext]:
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
        self, context: AnyContext, actual: Actual, cluster: ClusterState
    ) -> GuestPlan[AnyContext]:
        read_at = context.client.clock.monotonic()
        guest = context.guest
        if guest.state != "absent":
            if guest.name != actual.name:
                cluster = with_free_name(context.client, guest, cluster, "renamed")
            guest_plan = self.update(self.isolated(context, actual), actual, cluster)
            return replace(guest_plan, requested=context, read_at=read_at)
        require_named_so(guest, actual)
        plan = plan_removal(context.desired, actual, linked_clones(context.client, actual))
        warnings = require_no_borrowers(context.client, actual, cluster, guest.leaving)
        plan = replace(plan, warnings=(*plan.warnings, *warnings))
        return GuestPlan(self, context, context, plan, cluster, actual, read_at=read_at)

    def update(
        self, context: AnyContext, actual: Actual, cluster: ClusterState
    ) -> GuestPlan[AnyContext]:
        """Return the plan for an existing guest: read its facts, then decide."""
        guest = context.guest
        if guest.rebalance or guest.limits is not None:
            cluster = context.cluster_view.fresh(cluster)
        reads = self.reads_of(context.client)
        intent = self.intent_of(reads, context, actual, cluster)
        intent = with_current_power(reads, intent)
        sets, target = intent.change.sets, intent.actual.target
        require_own_volumes(context.client, guest, sets, target, cluster, actual.vmid)
        require_handover(context.client, intent.desired, intent.actual, cluster)
        removed = intent.change.drives.removed
        require_no_other_users(context.client, intent.actual, removed)
        decision = self.decide(reads, intent, cluster)
        return GuestPlan(
            self,
            context,
            replace(
                context,
                desired=intent.desired,
                choice=intent.choice,
                unverified=context.unverified + decision.unverified,
            ),
            decision.plan,
            cluster,
            intent.actual,
            growth=intent.growth,
            config=intent.after,
            images=decision.images,
            written=frozenset(intent.change.keys),
            taken=decision.taken,
        )

    def new(self, context: AnyContext, cluster: ClusterState) -> GuestPlan[AnyContext]:
        """Return the plan for a new guest: read its source, choose its node, read facts, decide."""
        client = context.client
        _require_free(client, context.guest, cluster, "created")
        cluster = with_free_name(client, context.guest, cluster)
        require_creation(context.guest, cluster)
        context = self.isolated(context, None)
        desired = context.desired
        require_nothing_moved(desired)
        reads = self.reads_of(client)

        def blueprint_from(copy: Actual) -> GuestBlueprint[Any]:
            return self.blueprint_from(reads, desired, copy, cluster)

        blueprint = self.blueprint(reads, desired, cluster)
        config = blueprint.origin.config
        require_own_volumes(client, desired.guest, blueprint.change.sets, config, cluster)
        choice = choose_place(reads, blueprint, blueprint.needs({}), cluster)
        blueprint, choice = with_nearest_copy(reads, blueprint, choice, cluster, blueprint_from)
        placed = self.place(reads, blueprint, choice, cluster)
        unverified = context.unverified + choice.warnings + placed.unverified
        context = replace(context, unverified=unverified)
        return self.draft(context, replace(placed, bridges=reads.bridges.by_node), cluster)

    def draft(
        self, context: AnyContext, placed: PlacedGuest[AnyBlueprint], cluster: ClusterState
    ) -> GuestPlan[AnyContext]:
        """Choose the VMID of a new guest that was placed, and return its plan."""
        desired = context.desired.guest
        vmid = desired.vmid or desired.vmids.free(cluster.taken)
        run, identity = os.urandom(6).hex(), str(uuid.uuid4())
        draft = with_vmid(placed, vmid, self.plan_creation, run=run, identity=identity)
        return self.of_draft(context, draft, cluster)

    def of_draft(
        self, context: AnyContext, draft: NumberedGuest[Any], cluster: ClusterState
    ) -> GuestPlan[AnyContext]:
        """Return the plan for a new guest that has its VMID."""
        return GuestPlan(
            self,
            context,
            replace(context, choice=draft.placed.choice),
            self.with_files(context, draft.plan, None, draft.node),
            cluster,
            draft=draft,
            config=draft.placed.blueprint.config,
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


def require_choice(desired: Guest, attempted: str) -> None:
    """Raise ValidationFailed if the task names neither the name nor the VMID of the guest."""
    if not desired.name and desired.vmid is None:
        raise ValidationFailed(
            attempted=attempted,
            answer="neither name nor vmid is given",
            next_step="Give one of them",
            reason="name or vmid",
        )


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
        only_unowned=client.connection.require_tenant and guest.tenant_tag is None,
    )
