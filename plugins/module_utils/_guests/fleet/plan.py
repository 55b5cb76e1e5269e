# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One plan for all VMs of a list, from one cluster state: nodes, VMIDs and quotas are decided
together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.api.layers.caching import CachingReader
from ..._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state, query_nodes
from ..._foundation.cluster.tenant import is_of_others, tenants_of
from ..._foundation.core.errors import Conflict, FleetError, NotFound, PermissionDenied
from ..._foundation.core.formatting import counted, first_of
from ..._foundation.core.parallel import side_by_side
from ..guest.context import RunContext
from ..guest.create.total_quota import SiteQuota
from ..guest.flow.flow import GuestPlan
from ..guest.live.find import find, find_row, require_listed_guest
from ..guest.plan import power
from ..guest.registry import VMS, ListKind, list_of
from ..kinds.model import Actual, Guest
from .creation_in_progress import find_creations_in_progress, is_creation_in, within
from .items import PruneScope, VmItem, removal_of
from .listed import ListEntry
from .reservations import PlanningView, row_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

# VMs that are read at the same time.
READERS = 10


@dataclass(frozen=True)
class PlannedGuest:
    """The plan of one VM, or its error. `row` is the VM as the plans of other VMs see it."""

    item: VmItem
    vm_plan: GuestPlan[Any] | None = None
    row: VmRow | None = None
    error: FleetError | None = None
    found: VmRow | None = None  # the existing VM of the item
    refused: Actual | None = None  # the VM as read, if its plan is an error

    @property
    def changes(self) -> bool:
        return self.vm_plan is not None and self.vm_plan.plan.changed

    @property
    def actual(self) -> Actual | None:
        """The VM as read for its plan."""
        return None if self.vm_plan is None else self.vm_plan.actual

    @property
    def creates(self) -> bool:
        """Whether the plan creates the VM."""
        return self.vm_plan is not None and self.vm_plan.new is not None

    @property
    def is_removal(self) -> bool:
        """Whether the plan removes the VM."""
        return self.item.desired.guest.state == "absent"


class FleetPlanner:
    """Plans VMs one after the other; each plan sees the VMs planned before it."""

    def __init__(
        self,
        client: Client,
        check_mode: bool,
        lists: Collection[ListKind] = (VMS,),
        total_of: Callable[[VmItem], SiteQuota | None] = lambda _item: None,
    ) -> None:
        self._total_of = total_of  # the quota over sites that a guest counts for
        self._memory = CachingReader.around(client)
        self._check_mode = check_mode
        types = {one.kind.type for one in lists}
        self.cluster = fetch_cluster_state(self._memory, types)  # as read when the run began
        self._listed = {one: self.cluster.of_type(one) for one in types}  # the same, by kind
        self._refreshed = dict(self._listed)  # the same, refreshed from the nodes
        self._planned = PlanningView(self._memory, self.cluster)
        self.notes: tuple[str, ...] = ()  # problems while looking for VMs to prune
        self.leaving: frozenset[int] = frozenset()  # VMs that this run removes if nothing fails
        self._named: dict[str, list[VmItem]] = {}  # names that new VMs of this run will have
        self._owners: dict[int, VmItem] = {}  # the item of each VMID
        # new templates of this run, by name and by VMID
        self._templates: dict[str, VmItem] = {}

    def plan(self, items: list[VmItem]) -> list[PlannedGuest]:
        """Return each VM's plan or its error, in the order of the list."""
        return self.plan_located(self.locate(items))

    def plan_again(self, items: list[VmItem]) -> list[PlannedGuest]:
        """Return new plans of VMs whose earlier items had errors, from other items."""
        for item in items:
            self._owners.pop(item.desired.guest.vmid, None)
        return self.plan(items)

    def withdraw(self, planned: PlannedGuest) -> None:
        """Show later plans the current state of a guest whose plan is not carried out."""
        if planned.found is not None:
            self._planned.put(planned.found)

    def locate(self, items: list[VmItem]) -> list[PlannedGuest]:
        """Return the VM of each item, without a plan."""
        located = self._locate(items)
        # Only the nodes of known guests are asked, or all nodes if a guest was not found by its
        # name.
        for kind in sorted(self._refreshed):
            of_kind = [one for one in located if one.item.kind.kind.type == kind]
            nodes = {one.found.node for one in of_kind if one.found is not None}
            if any(map(_is_unknown, of_kind)):
                nodes = set(self.cluster.nodes)
            before = self._refreshed[kind].vms.keys()
            refreshed = query_nodes(self._memory, self._refreshed[kind], nodes, full=True)
            self._refreshed[kind] = refreshed
            self._planned.refresh(refreshed, before - refreshed.vms.keys())
        if any(map(_is_unknown, located)):
            # The listing may have an outdated name of a VM that seems to be missing.
            located = self._locate(items)
        return located

    def plan_located(self, located: list[PlannedGuest]) -> list[PlannedGuest]:
        """Return the plan of each VM, in the same order. Removals come first: they free quota."""
        going: list[PlannedGuest] = []
        staying: list[PlannedGuest] = []
        for one in located:
            group = going if one.is_removal else staying
            group.append(one)
        before = self.leaving
        self.leaving = frozenset(all_vmids_of(going))
        planned = self._plan_all(going)
        self.leaving = before
        for one in planned:
            if one.vm_plan is not None:
                self.leaving |= vmids_of(one)
        planned += self._plan_all(staying)
        return sorted(planned, key=lambda one: one.item.order)

    def _plan_all(self, located: list[PlannedGuest]) -> list[PlannedGuest]:
        found = side_by_side(self._read, located, READERS)
        return list(map(self._plan, located, found))

    def prune(
        self, params: Mapping[str, Any], scope: PruneScope, planned: list[PlannedGuest]
    ) -> list[PlannedGuest]:
        """Return the plans that remove the VMs of the scope that are not in the list.

        Templates are never removed. The listing takes the template flag from statistics and does
        not show it for a new template yet, so the nodes are asked.
        """
        unwanted: list[PlannedGuest] = []
        for kind in sorted(self._refreshed):
            unwanted += self._prune_kind(params, scope, all_vmids_of(planned), list_of(kind))
        return unwanted

    def _prune_kind(
        self, params: Mapping[str, Any], scope: PruneScope, listed: set[int], of: ListKind
    ) -> list[PlannedGuest]:
        cluster = self._listed[of.kind.type]
        rows = out_of_list(cluster, scope, listed)
        refreshed = self._refreshed[of.kind.type]
        creations, notes = find_creations_in_progress(
            self._memory.direct(), refreshed, scope, listed, params
        )
        self.notes += notes
        rows += creations
        fresh = query_nodes(self._memory, cluster, {row.node for row in rows}, full=True)
        items: list[VmItem] = []
        for row in rows:
            now = fresh.vms.get(row.vmid)
            if now is None or now.template:
                continue  # gone since the listing was read, or to be kept
            name = now.own_name or row.own_name
            removal = removal_of(params, row.vmid, name, of)
            items.append(VmItem(len(items), of.read(removal), of, pruned=True))
        unwanted = self.plan(items)
        templates = list(filter(_is_template, unwanted))
        self.leaving -= all_vmids_of(templates)
        return still_unwanted(unwanted, templates)

    def current_row(self, planned: PlannedGuest) -> VmRow | None:
        """Return the row of an item's VM, with name and tags from its node, or None."""
        return None if planned.found is None else self._planned.row(planned.found.vmid)

    def cluster_of(self, item: VmItem) -> ClusterState:
        """Return the cluster as planned so far, for work on guests of the item's kind."""
        return self._planned.of(item.kind.kind.type).cluster

    def _context(self, item: VmItem) -> RunContext[Any]:
        context: RunContext[Any] = RunContext(
            client=self._memory,
            desired=item.desired.with_guest(leaving=self.leaving),
            settings=item.options.settings,
            check_mode=self._check_mode,
            cluster_view=self._planned.of(item.kind.kind.type),
            total=self._total_of(item),
        )
        return item.kind.flow.ready(context)

    def _locate(self, items: list[VmItem]) -> list[PlannedGuest]:
        located: list[PlannedGuest] = []
        # If items of two tenants refer to one VM, its configuration decides who owns it.
        owners: dict[tuple[int, str | None], VmItem] = {}
        for item in items:
            row = _row_in(self.cluster_of(item), item.desired.guest)
            if row is None:
                located.append(PlannedGuest(item))
                continue
            other = owners.setdefault((row.vmid, item.desired.guest.tenant_tag), item)
            if other is item:
                located.append(PlannedGuest(item, found=row))
            else:
                located.append(PlannedGuest(item, error=_same(item, other, row)))
        return located

    def _read(self, planned: PlannedGuest) -> tuple[Actual | None, ClusterState] | FleetError:
        """Return the VM of an item, and the cluster state in which it was searched."""
        if planned.error is not None:
            return planned.error
        context = self._context(planned.item)
        try:
            actual, searched = find(context, self.cluster_of(planned.item))
        except FleetError as error:
            return error
        if actual is not None:
            with suppress(FleetError):  # the plan gets the same error, which is cached too
                planned.item.kind.flow.prefetch(context, actual)
        return actual, searched

    def attempt(self, located: PlannedGuest) -> PlannedGuest:
        """Return the plan of a guest that later plans do not see."""
        return self._decide(located, self._read(located))

    def _plan(
        self, planned: PlannedGuest, read: tuple[Actual | None, ClusterState] | FleetError
    ) -> PlannedGuest:
        planned = self._decide(planned, read)
        vm_plan, item = planned.vm_plan, planned.item
        if vm_plan is None:
            return planned
        row = reserve(self._planned, vm_plan)
        if row is not None and vm_plan.new is not None:
            if row.name:
                self._named.setdefault(row.name, []).append(item)
            if row.template:
                self._templates |= {row.name: item, str(row.vmid): item}
        return replace(planned, row=row)

    def _decide(
        self, planned: PlannedGuest, read: tuple[Actual | None, ClusterState] | FleetError
    ) -> PlannedGuest:
        item = planned.item
        if isinstance(read, FleetError):
            return replace(planned, error=self._why_without(item, read))
        actual, state = read
        listed = self._listed[item.kind.kind.type]
        for vmid in listed.vms.keys() - state.vms.keys():
            self._planned.drop(vmid)  # it was removed since the listing was read
        cluster, flow = self.cluster_of(item), item.kind.flow
        refused = None
        try:
            context = self._context(item)
            if actual is None:
                self._require_unnamed(item)
                vm_plan = flow.plan_missing(context, cluster, state)
            else:
                self._require_single(item, actual)
                refused = actual
                vm_plan = flow.plan_found(context, actual, cluster)
        except FleetError as error:
            return replace(planned, error=self._why_without(item, error), refused=refused)
        return replace(planned, vm_plan=vm_plan)

    def _require_unnamed(self, item: VmItem) -> None:
        """Raise Conflict if another new VM of the list will have the same name and tenant.

        Two tenants may each have a VM of a name; without a tenant the name must be unique.
        """
        desired = item.desired
        if desired.guest.vmid is not None or desired.guest.state == "absent":
            return
        name = desired.guest.name or ""
        for other in self._named.get(name, ()):
            tags = {desired.guest.tenant_tag, other.desired.guest.tenant_tag}
            is_same_owner = None in tags or len(tags) == 1
            if is_same_owner:
                raise Conflict(
                    f"{desired.guest.label} was not planned: {other.place} will have that name",
                    _advice(item, other),
                    "name taken",
                )

    def _require_single(self, item: VmItem, actual: Actual) -> None:
        """Raise Conflict if an earlier item of the list refers to the same VM."""
        if item.pruned:
            return
        if item.desired.guest.state != "absent":
            self.leaving -= {actual.vmid}
        other = self._owners.setdefault(actual.vmid, item)
        if other is not item:
            raise _same(item, other, row_of_actual(actual))

    def _why_without(self, item: VmItem, error: FleetError) -> FleetError:
        """Return the error, with a next step if the source is a new template of this run, and with
        what an approved plan has for the guest.
        """
        guest = item.desired.guest
        source, name = guest.source, guest.name or str(guest.vmid)
        key = (guest.kind.type, guest.tenant_tag or "", name)
        compared = self._memory.plan_book.explain(error, guest.vmid or 0, key)
        if source is None or not isinstance(error, NotFound):
            return compared
        template = self._templates.get(source.name or str(source.vmid))
        if template is None or template.kind is not item.kind:
            return compared
        return error.on(
            attempted=f"{item.desired.guest.label} was not planned",
            answer=f"its source is {template.place}, which is not made yet",
            next_step="Run again once it is there, or list the template in a task before this one",
            reason="source not made yet",
            status=None,
            path="",
        )


def _advice(item: VmItem, other: VmItem) -> str:
    """Return the next step for two new guests of one name (pure)."""
    if item.kind is not other.kind:
        return "Give one of the two another name: VMs and containers share the names of a tenant"
    return "Give one of the two another name, or a vmid of its own"


def _is_unknown(planned: PlannedGuest) -> bool:
    return planned.found is None and planned.error is None


def _is_template(planned: PlannedGuest) -> bool:
    actual = planned.actual
    return actual is not None and actual.template


def _row_in(cluster: ClusterState, desired: Guest) -> VmRow | None:
    """Return the row of the desired VM, None if it is missing or its name is ambiguous (pure)."""
    try:
        return find_row(cluster, desired)
    except Conflict:
        return None


def row_of_actual(actual: Actual) -> VmRow:
    """Return the row of a VM that was read (pure)."""
    return row_of(
        actual.kind,
        actual.target,
        vmid=actual.vmid,
        node=actual.node,
        pool=actual.pool,
        status=actual.status,
    )


def row_after(vm_plan: GuestPlan[Any]) -> VmRow | None:
    """Return the row that the listing will have after a plan, or None if the VM is removed."""
    context, new, actual, config = vm_plan.context, vm_plan.new, vm_plan.actual, vm_plan.config
    desired = context.desired
    if config is None:
        return None
    kind = desired.guest.kind
    if new is not None:
        vmid, node = vm_plan.place
        config = {**config, kind.name_option: desired.guest.name or ""}
        if desired.guest.state == "template":
            config["template"] = "1"
        status = "running" if desired.guest.state == "started" else "stopped"
        row = row_of(kind, config, vmid=vmid, node=node, pool=desired.guest.pool, status=status)
        return replace(row, disk=new.figures(vm_plan.sizes).disk)
    if actual is None:
        return None
    row = row_of(
        kind,
        config,
        vmid=actual.vmid,
        node=desired.guest.node or actual.node,
        pool=desired.guest.pool or actual.pool,
        status=actual.status,
    )
    # a VM that stops in this run may still hold its devices when another VM starts
    runs = actual.running or power.will_start(desired.guest)
    return replace(row, cards=kind.cards_in(config) if runs else ())


def reserve(view: PlanningView, plan: GuestPlan[Any]) -> VmRow | None:
    """Show a planned guest and its resources to the plans of other guests; return its row."""
    taken, row = plan.taken, row_after(plan)
    if taken is not None:
        view.take(taken)
    if row is not None:
        view.put(row)
    return row


def after_plan(client: Client, cluster: ClusterState, plan: GuestPlan[Any]) -> ClusterState:
    """Return the predicted cluster state after a plan, with guests of both kinds."""
    view = PlanningView(client, cluster)
    reserve(view, plan)
    return view.of(plan.context.desired.guest.kind.type).now()


def vmids_of(planned: PlannedGuest) -> set[int]:
    """Return the VMIDs of an item: of the VM as read, and of its row in the listing (pure)."""
    return {known.vmid for known in (planned.found, planned.actual) if known is not None}


def all_vmids_of(planned: Iterable[PlannedGuest]) -> set[int]:
    """Return the VMIDs of all these items (pure)."""
    return set().union(*map(vmids_of, planned))


def mark_case_duplicates(
    planned: list[PlannedGuest], cluster: ClusterState, scope: PruneScope
) -> list[PlannedGuest]:
    """Return the plans, with an error for a new VM if a VM that is not listed has the same name in
    other case (pure).

    DNS ignores the case of a name: the other VM would be pruned because of a typing error.
    """
    unlisted = out_of_list(cluster, scope, all_vmids_of(planned))
    by_name = {row.name.lower(): row for row in unlisted if not row.template}
    checked: list[PlannedGuest] = []
    for one in planned:
        row = by_name.get(one.item.name_in_dns)
        if row is not None and one.creates:
            one = PlannedGuest(one.item, error=_case_duplicate(one.item, row))
        checked.append(one)
    return checked


def _case_duplicate(item: VmItem, row: VmRow) -> Conflict:
    noun = list_of(row.type).kind.noun
    return Conflict(
        f"{item.place}, {item.desired.guest.label}, was not planned: {noun} '{row.name}' "
        f"({row.vmid}) would be pruned, whose name differs in nothing but upper and lower case",
        "Write the name as the VM has it, or give its vmid to rename it",
        "name differs in case",
    )


def still_unwanted(unwanted: list[PlannedGuest], planned: list[PlannedGuest]) -> list[PlannedGuest]:
    """Return the plans of VMs to prune, without the VMs that were found in the list (pure)."""
    listed = all_vmids_of(planned)
    return [one for one in unwanted if listed.isdisjoint(vmids_of(one))]


def with_leaving(planned: list[PlannedGuest], leaving: frozenset[int]) -> list[PlannedGuest]:
    """Return the plans, with quotas that do not count the VMs in `leaving` (pure)."""
    found: list[PlannedGuest] = []
    for one in planned:
        vm_plan = one.vm_plan
        if vm_plan is not None and vm_plan.context.desired.guest.leaving != leaving:
            requested = _with_leaving(vm_plan.requested, leaving)
            context = _with_leaving(vm_plan.context, leaving)
            one = replace(one, vm_plan=replace(vm_plan, requested=requested, context=context))
        found.append(one)
    return found


def _with_leaving(context: RunContext[Any], leaving: frozenset[int]) -> RunContext[Any]:
    return context.with_desired(context.desired.with_guest(leaving=leaving))


def require_own(planned: list[PlannedGuest], planner: FleetPlanner) -> None:
    """Raise Conflict if an entry to remove refers to a VM with another name or tenant.

    One such entry suggests that the whole list is wrong, so nothing is removed.
    """
    foreign: list[str] = []
    for one in planned:
        row, desired = planner.current_row(one), one.item.desired
        if row is None:
            continue
        named = desired.guest.name or str(desired.guest.vmid)
        owners = tenants_of(row.tags, desired.guest.tenant_prefix)
        is_by_number = desired.guest.vmid is not None and desired.guest.name
        is_renamed = is_by_number and row.name != desired.guest.name
        is_owned = owners and desired.guest.tenant_tag is None
        if is_renamed or is_owned:
            label = "/".join(filter(None, (desired.guest.tenant, named)))
            foreign.append(f"{label} ({_describe_owner(row, desired.guest)})")
    if foreign:
        raise Conflict(
            "Nothing was removed: these entries of the list would hit a VM of another tenant or "
            f"name: {', '.join(foreign)}",
            "Give them their tenant and VMID, or take them out of the list",
            "foreign VM",
        )


def refuse_hidden(
    planned: list[PlannedGuest], client: Client, tenants: Mapping[str, Any]
) -> list[PlannedGuest]:
    """Return the plans, in which guests that are to be removed and may exist without being visible
    to the login have an error. `tenants` are the settings of tenants.
    """
    checked: list[PlannedGuest] = []
    for one in planned:
        guest = one.item.desired.guest
        settings = tenants.get(guest.tenant or "") or {}
        try:
            if one.found is None and not one.error:
                require_listed_guest(client, guest, settings.get("pool") or guest.pool)
        except PermissionDenied as error:
            one = replace(one, vm_plan=None, error=error)
        checked.append(one)
    return checked


def _describe_owner(row: VmRow, desired: Guest) -> str:
    """Describe the VM in words; only its VMID if it belongs to another tenant (pure)."""
    if is_of_others(desired.tenant_tag, row.tags, desired.tenant_prefix):
        return f"VM {row.vmid} belongs to another tenant"
    tags = ", ".join(row.tags) or "none"
    return f"VM {row.vmid} is {row.name} with the tags {tags}"


def require_not_given_away(
    unwanted: list[PlannedGuest], items: list[VmItem], others: list[ListEntry], scope: PruneScope
) -> None:
    """Raise Conflict if the list has the name of a VM to prune for another tenant (pure)."""
    mine = {item.name_in_dns for item in items}
    elsewhere = {entry.name.lower() for entry in others}
    elsewhere -= {"", *mine}
    leaving = [one.item.name_in_dns for one in unwanted]
    given_away = [name for name in leaving if name in elsewhere]
    if given_away:
        raise Conflict(
            f"Nothing was changed: the list has VMs with the {scope.label} by their name, but not "
            f"for it: {', '.join(given_away)}",
            (
                "Where they are to go, list them for this tenant with state=absent; else give them"
                " their tenant"
            ),
            "listed for another tenant",
        )


def out_of_list(cluster: ClusterState, scope: PruneScope, listed: set[int]) -> list[VmRow]:
    """Return the VMs and templates in a scope that are not listed, sorted by VMID (pure)."""
    found: list[VmRow] = []
    for vmid, row in sorted(cluster.vms.items()):
        if vmid not in listed and within(row, scope):
            found.append(row)
    return found


def not_pruned(cluster: ClusterState, scope: PruneScope) -> tuple[str, ...]:
    """Return a warning for guests that stay because the list of their kind is empty (pure)."""
    others = [row for row in cluster.others.values() if within(row, scope) and not row.template]
    if not others:
        return ()
    of = list_of(others[0].type)
    names = first_of([f"{row.own_name or row.vmid}" for row in others])
    nouns = counted(len(others), of.kind.noun)
    return (f"Not pruned: {nouns} with the {scope.label}, because {of.option} is empty ({names})",)


def require_within(scope: PruneScope, actual: Actual, row: VmRow | None) -> None:
    """Raise Conflict if a VM to prune has left the scope since it was planned."""
    if row is not None and within(row, scope):
        return
    if row is not None and is_creation_in(scope, actual.target, row.pool):
        return
    raise Conflict(
        f"{actual.label} was not removed: it no longer has the {scope.label}",
        "Someone else has changed it: check its owner and run again",
        "outside the scope",
    )


def _same(item: VmItem, other: VmItem, row: VmRow) -> Conflict:
    noun = item.kind.kind.noun
    return Conflict(
        f"{item.place}, {item.desired.guest.label}, was not planned: {other.place} means the same "
        f"{noun}, '{row.name}' ({row.vmid})",
        f"List each {noun} once",
        "listed twice",
    )
