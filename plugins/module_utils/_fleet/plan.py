# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One plan for all VMs of a list, from one cluster state: nodes, VMIDs and quotas are decided
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._api.caching import CachingReader
from .._cluster.lookup import find_vm
from .._cluster.state import ClusterState, VmRow, ask_nodes, fetch_cluster_state
from .._cluster.tenant import is_of_others, tenants_of
from .._core.errors import Conflict, FleetError, NotFound
from .._core.parallel import side_by_side
from .._vm.context import RunContext
from .._vm.live.find import find
from .._vm.model import Actual, Desired
from .._vm.plan.room import Taken
from .._vm.run import VmPlan, plan_found_vm, plan_missing_vm, prepared, read_vm_options
from .items import Item, Scope, removal_of
from .listed import Listed
from .reservations import PlanningView, row_of
from .unfinished import find_unfinished, is_unfinished_in, within

if TYPE_CHECKING:
    from .._api.client import Client
    from .._vm.create.draft import Draft

# VMs that are read at once.
READERS = 10


@dataclass(frozen=True)
class Planned:
    """The plan of one VM, or its error. `row` is the VM as decisions about the others see it."""

    item: Item
    vm_plan: VmPlan | None = None
    row: VmRow | None = None
    error: FleetError | None = None
    found: VmRow | None = None  # the VM that is meant, where it is there

    @property
    def changes(self) -> bool:
        return self.vm_plan is not None and self.vm_plan.plan.changed

    @property
    def actual(self) -> Actual | None:
        """The VM as it was read for its plan."""
        if self.vm_plan is None:
            return None
        return self.vm_plan.actual

    @property
    def draft(self) -> Draft | None:
        """The VM that the plan creates."""
        if self.vm_plan is None:
            return None
        return self.vm_plan.draft

    @property
    def is_removal(self) -> bool:
        """Whether the VM is to be removed."""
        return self.item.desired.state == "absent"


class Planner:
    """Plans VMs one after the other, each seeing what those before it will be."""

    def __init__(self, client: Client, check_mode: bool) -> None:
        self._memory = CachingReader.around(client)
        self._check_mode = check_mode
        self.cluster = fetch_cluster_state(self._memory)  # as it was
        self._seen = self.cluster  # the same with what the nodes themselves say
        self._planned = PlanningView(self._memory, self.cluster)
        self.notes: tuple[str, ...] = ()  # what could not be found out about VMs to prune
        self.leaving: frozenset[int] = frozenset()  # VMs that this run removes, if all goes well
        self._named: dict[str, list[Item]] = {}  # names that new VMs of this run will have
        self._owners: dict[int, Item] = {}  # which item means the VM of a number
        # new templates of this run by name and by number, and their places
        self._templates: dict[str, int] = {}

    def plan(self, items: list[Item]) -> list[Planned]:
        """Return each VM's plan, in the order of the list.

        A VM that cannot be planned has its error.
        """
        return self.plan_located(self.look_up(items))

    def look_up(self, items: list[Item]) -> list[Planned]:
        """Return which VM each item means, without a plan yet."""
        located = self._locate(items)
        self._ask_nodes_of(located)
        if any(map(_is_unknown, located)):
            # the listing may have had an old name of what seems to be missing
            located = self._locate(items)
        return located

    def plan_located(self, located: list[Planned]) -> list[Planned]:
        """Return the plan of each VM, in the same order. Removals come first: they free quota."""
        going: list[Planned] = []
        staying: list[Planned] = []
        for one in located:
            group = going if one.is_removal else staying
            group.append(one)
        planned = self._plan_all(going)
        for one in planned:
            if one.vm_plan is not None:
                self.leaving |= meant(one)
        planned += self._plan_all(staying)
        return sorted(planned, key=lambda one: one.item.index)

    def _plan_all(self, located: list[Planned]) -> list[Planned]:
        found = side_by_side(self._read, located, READERS)
        return list(map(self._plan, located, found))

    def prune(
        self,
        params: Mapping[str, Any],
        scope: Scope,
        planned: list[Planned],
    ) -> list[Planned]:
        """Return the plans to remove what lies within the scope and is not in the list.

        Never a template: its node says which VM is one. The listing has it from statistics, so that
        it lacks a new template's flag.
        """
        listed = meant_by(planned)
        rows = out_of_list(self.cluster, scope, listed)
        unfinished, self.notes = find_unfinished(
            self._memory.direct(),
            self._seen,
            scope,
            listed,
            params,
        )
        rows += unfinished
        fresh = ask_nodes(
            self._memory,
            self.cluster,
            {row.node for row in rows},
            full=True,
        )
        items: list[Item] = []
        for row in rows:
            now = fresh.vms.get(row.vmid)
            if now is None or now.template:
                continue  # gone since the listing was read, or to be kept
            name = now.own_name or row.own_name
            removal = removal_of(params, row.vmid, name)
            index = len(planned) + len(items)
            items.append(
                Item(
                    index,
                    read_vm_options(removal),
                    pruned=True,
                )
            )
        return self._without_templates(self.plan(items))

    def _without_templates(self, unwanted: list[Planned]) -> list[Planned]:
        """Return the plans of VMs to prune without those whose configuration is a template's."""
        templates = list(filter(_is_template, unwanted))
        self.leaving -= meant_by(templates)
        return still_unwanted(unwanted, templates)

    def as_it_is(self, planned: Planned) -> VmRow | None:
        """Return the VM that an item means, with name and tags from its node, or None."""
        if planned.found is None:
            return None
        return self._planned.cluster.vms.get(planned.found.vmid)

    def _context(self, item: Item) -> RunContext:
        context = RunContext(
            client=self._memory,
            desired=replace(item.desired, leaving=self.leaving),
            settings=item.options.settings,
            check_mode=self._check_mode,
            cluster_view=self._planned,
        )
        return prepared(context)

    def _locate(self, items: list[Item]) -> list[Planned]:
        located: list[Planned] = []
        # Where two tenants name one VM, its configuration names the owner.
        owners: dict[tuple[int, str | None], Item] = {}
        for item in items:
            row = _row_in(self._planned.cluster, item.desired)
            if row is None:
                located.append(Planned(item))
                continue
            other = owners.setdefault((row.vmid, item.desired.tenant_tag), item)
            if other is item:
                located.append(Planned(item, found=row))
            else:
                located.append(Planned(item, error=_same(item, other, row)))
        return located

    def _ask_nodes_of(self, located: list[Planned]) -> None:
        """Learn names and power states, which the listing knows late; one request a node.

        Where a VM is not found by its name all nodes are asked, else those of the VMs that are
        there.
        """
        nodes: set[str] = set()
        for one in located:
            if one.found is not None:
                nodes.add(one.found.node)
        if any(map(_is_unknown, located)):
            nodes = set(self.cluster.nodes)
        before = self._seen.vms.keys()
        self._seen = ask_nodes(self._memory, self._seen, nodes, full=True)
        self._planned.see(self._seen, before - self._seen.vms.keys())

    def _read(self, planned: Planned) -> tuple[Actual | None, ClusterState] | FleetError:
        """Return the VM that an item means, and the cluster state in which it was searched."""
        if planned.error is not None:
            return planned.error
        try:
            return find(self._context(planned.item), self._planned.cluster)
        except FleetError as error:
            return error

    def _plan(
        self,
        planned: Planned,
        read: tuple[Actual | None, ClusterState] | FleetError,
    ) -> Planned:
        item = planned.item
        if isinstance(read, FleetError):
            return replace(planned, error=self._why_without(item, read))
        actual, seen = read
        for vmid in self.cluster.vms.keys() - seen.vms.keys():
            self._planned.drop(vmid)  # it was removed since the listing was read
        cluster = self._planned.cluster
        try:
            context = self._context(item)
            if actual is None:
                self._require_unnamed(item)
                vm_plan = plan_missing_vm(context, cluster, seen)
            else:
                self._require_single(item, actual)
                vm_plan = plan_found_vm(context, actual, cluster)
        except FleetError as error:
            return replace(planned, error=self._why_without(item, error))
        row = row_after(vm_plan)
        taken = taken_by(vm_plan)
        if taken is not None:
            self._planned.take(taken)
        if row is not None:
            self._planned.put(row)
            if vm_plan.draft is not None and row.name:
                self._named.setdefault(row.name, []).append(item)
            if vm_plan.draft is not None and row.template:
                self._templates |= {row.name: item.index, str(row.vmid): item.index}
        return replace(planned, vm_plan=vm_plan, row=row)

    def _require_unnamed(self, item: Item) -> None:
        """Raise Conflict where a new VM of the list will have the name for the same tenant.

        Two tenants may each have a VM of a name; without a tenant a name means one VM of them all.
        """
        desired = item.desired
        if desired.vmid is not None or desired.state == "absent":
            return
        name = desired.name or ""
        for other in self._named.get(name, ()):
            tags = {desired.tenant_tag, other.desired.tenant_tag}
            is_same_owner = None in tags or len(tags) == 1
            if is_same_owner:
                raise Conflict(
                    attempted=f"{desired.label} was not planned",
                    answer=f"vms[{other.index}] will have that name",
                    next_step="Give one of the two another name, or a vmid of its own",
                    reason="name taken",
                )

    def _require_single(self, item: Item, actual: Actual) -> None:
        """Raise Conflict where an earlier item of the list means the same VM."""
        if item.pruned:
            return
        if item.desired.state != "absent":
            self.leaving -= {actual.vmid}
        other = self._owners.setdefault(actual.vmid, item)
        if other is not item:
            raise _same(item, other, row_of_actual(actual))

    def _why_without(self, item: Item, error: FleetError) -> FleetError:
        """Return the error of a VM.

        It is another one where its source is a template that this run creates.
        """
        source = item.desired.source
        if source is None or not isinstance(error, NotFound):
            return error
        at = self._templates.get(source.name or str(source.vmid))
        if at is None:
            return error
        return error.on(
            attempted=f"{item.desired.label} was not planned",
            answer=f"its source is vms[{at}], which is not made yet",
            next_step="Run again once it is there, or list the template in a task before this one",
            reason="source not made yet",
            status=None,
            path="",
        )


def _is_unknown(planned: Planned) -> bool:
    return planned.found is None and planned.error is None


def _is_template(planned: Planned) -> bool:
    actual = planned.actual
    return actual is not None and actual.template


def _row_in(cluster: ClusterState, desired: Desired) -> VmRow | None:
    """Return the row of the VM that is meant, or None; also where a name means several (pure)."""
    try:
        return find_vm(
            cluster,
            vmid=desired.vmid,
            name=desired.name,
            tenant_tag=desired.tenant_tag,
            prefix=desired.tenant_prefix,
        )
    except Conflict:
        return None


def row_of_actual(actual: Actual) -> VmRow:
    """Return the row of a VM that was read (pure)."""
    return row_of(
        actual.vmid,
        actual.node,
        actual.target,
        pool=actual.pool,
        status=actual.status,
    )


def row_after(vm_plan: VmPlan) -> VmRow | None:
    """Return a VM as the listing will show it after its plan, or None where it is removed."""
    context, draft, actual, config = vm_plan.context, vm_plan.draft, vm_plan.actual, vm_plan.config
    desired = context.desired
    if config is None:
        return None
    if draft is not None:
        config = {**config, "name": desired.name or ""}
        if desired.state == "template":
            config["template"] = "1"
        status = "stopped"
        if desired.state == "started":
            status = "running"
        return row_of(
            draft.vmid,
            draft.node,
            config,
            pool=desired.pool,
            status=status,
            disk=draft.figures.disk,
        )
    if actual is None:
        return None
    return row_of(
        actual.vmid,
        desired.node or actual.node,
        config,
        pool=desired.pool or actual.pool,
        status=actual.status,
    )


def taken_by(vm_plan: VmPlan) -> Taken | None:
    """Return what a VM will take of its node beyond what the listing shows (pure)."""
    draft = vm_plan.draft
    if draft is None:
        return vm_plan.taken
    return Taken(draft.node, draft.needs.running_memory, draft.needs.room)


def meant(planned: Planned) -> set[int]:
    """Return the VMIDs that an item means: the VM that was read, and the one in the listing
    (pure).
    """
    found: set[int] = set()
    for known in (planned.found, planned.actual):
        if known is not None:
            found.add(known.vmid)
    return found


def meant_by(planned: Iterable[Planned]) -> set[int]:
    """Return the VMIDs that any of these items means (pure)."""
    return set().union(*map(meant, planned))


def refuse_look_alikes(
    planned: list[Planned],
    cluster: ClusterState,
    scope: Scope,
) -> list[Planned]:
    """Return the plans, with an error for a new VM whose name differs from another's in case only
    (pure).

    DNS ignores the case of a name: the other VM would be pruned because of a typing error.
    """
    unlisted = out_of_list(cluster, scope, meant_by(planned))
    by_name = {row.name.lower(): row for row in unlisted if not row.template}
    checked: list[Planned] = []
    for one in planned:
        row = by_name.get(one.item.name_in_dns)
        if row is not None and one.draft is not None:
            one = Planned(one.item, error=_look_alike(one.item, row))
        checked.append(one)
    return checked


def _look_alike(item: Item, row: VmRow) -> Conflict:
    return Conflict(
        attempted=f"vms[{item.index}], {item.desired.label}, was not planned",
        answer=(
            f"VM '{row.name}' ({row.vmid}) would be pruned, whose name differs in nothing but upper"
            " and lower case"
        ),
        next_step="Write the name as the VM has it, or give its vmid to rename it",
        reason="name differs in case",
    )


def still_unwanted(unwanted: list[Planned], planned: list[Planned]) -> list[Planned]:
    """Return the plans of VMs to prune without those that turned out to be in the list (pure)."""
    listed = meant_by(planned)
    return [one for one in unwanted if listed.isdisjoint(meant(one))]


def counting(planned: list[Planned], leaving: frozenset[int]) -> list[Planned]:
    """Return the plans with `leaving` as the VMs that do not count in a quota (pure)."""
    found: list[Planned] = []
    for one in planned:
        vm_plan = one.vm_plan
        if vm_plan is not None and vm_plan.context.desired.leaving != leaving:
            asked = _with_leaving(vm_plan.asked, leaving)
            context = _with_leaving(vm_plan.context, leaving)
            one = replace(one, vm_plan=replace(vm_plan, asked=asked, context=context))
        found.append(one)
    return found


def _with_leaving(context: RunContext, leaving: frozenset[int]) -> RunContext:
    return replace(context, desired=replace(context.desired, leaving=leaving))


def refuse_foreign(planned: list[Planned], planner: Planner) -> None:
    """Raise Conflict where an entry to remove means a VM of another name or of a tenant.

    One such entry shows that the list is not what its author thinks, so nothing is removed.
    """
    foreign: list[str] = []
    for one in planned:
        row, desired = planner.as_it_is(one), one.item.desired
        if row is None:
            continue
        named = desired.name or str(desired.vmid)
        owners = tenants_of(row.tags, desired.tenant_prefix)
        is_by_number = desired.vmid is not None and desired.name
        is_renamed = is_by_number and row.name != desired.name
        is_owned = owners and desired.tenant_tag is None
        if is_renamed or is_owned:
            label = "/".join(filter(None, (desired.tenant, named)))
            foreign.append(f"{label} ({_whose(row, desired)})")
    if foreign:
        raise Conflict(
            attempted="Nothing was removed",
            answer=(
                "these entries of the list would hit a VM of another tenant or name:"
                f" {', '.join(foreign)}"
            ),
            next_step="Give them their tenant and VMID, or take them out of the list",
            reason="foreign VM",
        )


def _whose(row: VmRow, desired: Desired) -> str:
    """Return what a VM is, in words; of another tenant's VM nothing but its VMID (pure)."""
    if is_of_others(desired.tenant_tag, row.tags, desired.tenant_prefix):
        return f"VM {row.vmid} belongs to another tenant"
    tags = ", ".join(row.tags) or "none"
    return f"VM {row.vmid} is {row.name} with the tags {tags}"


def refuse_given_away(
    unwanted: list[Planned],
    items: list[Item],
    others: list[Listed],
    scope: Scope,
) -> None:
    """Raise Conflict where a VM to prune is in the list under its name, but for another tenant
    (pure).
    """
    mine = {item.name_in_dns for item in items}
    elsewhere = {entry.name.lower() for entry in others}
    elsewhere -= {"", *mine}
    leaving = [one.item.name_in_dns for one in unwanted]
    given_away = [name for name in leaving if name in elsewhere]
    if given_away:
        raise Conflict(
            attempted="Nothing was changed",
            answer=(
                f"the list has VMs with the {scope.label} by their name, but not for it:"
                f" {', '.join(given_away)}"
            ),
            next_step=(
                "Where they are to go, list them for this tenant with state=absent; else give them"
                " their tenant"
            ),
            reason="listed for another tenant",
        )


def out_of_list(
    cluster: ClusterState,
    scope: Scope,
    listed: set[int],
) -> list[VmRow]:
    """Return the VMs in a scope that no item of the list means, by VMID, templates too (pure)."""
    found: list[VmRow] = []
    for vmid, row in sorted(cluster.vms.items()):
        if vmid not in listed and within(row, scope):
            found.append(row)
    return found


def still_within(scope: Scope, actual: Actual, row: VmRow | None) -> None:
    """Raise Conflict where a VM to prune has left the scope since it was planned."""
    if _is_inside(scope, actual, row):
        return
    raise Conflict(
        attempted=f"{actual.label} was not removed",
        answer=f"it no longer has the {scope.label}",
        next_step="Someone else has changed it: check its owner and run again",
        reason="outside the scope",
    )


def _is_inside(scope: Scope, actual: Actual, row: VmRow | None) -> bool:
    if row is None:
        return False
    if within(row, scope):
        return True
    return is_unfinished_in(scope, actual.target, row.pool)


def _same(item: Item, other: Item, row: VmRow) -> Conflict:
    return Conflict(
        attempted=f"vms[{item.index}], {item.desired.label}, was not planned",
        answer=f"vms[{other.index}] means the same VM, '{row.name}' ({row.vmid})",
        next_step="List each VM once",
        reason="listed twice",
    )
