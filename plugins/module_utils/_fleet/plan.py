# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One plan for a whole fleet, from one look: nodes, numbers and quotas decided for all of its VMs together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._api.memory import Remembering
from .._cluster.lookup import guard_tenant
from .._cluster.picture import Picture, VmRow, ask_nodes, read_picture
from .._cluster.tenant import tenants_of
from .._core.errors import Conflict, FleetError, NotFound
from .._core.parallel import side_by_side
from .._vm.converge import Prepared, prepare, prepare_found, prepare_missing, read_wish
from .._vm.find import locate, read_found
from .._vm.job import Job, job_of
from .._vm.model import Actual
from .claims import Stage, row_of
from .wish import Item, Scope, removal_of

if TYPE_CHECKING:
    from .._api.client import Client

# VMs that are read at once.
READERS = 10


@dataclass(frozen=True)
class Planned:
    """One VM's part of the plan, or why there is none. `row` is the VM as the others' decisions shall see it."""

    item: Item
    prepared: Prepared | None = None
    row: VmRow | None = None
    error: FleetError | None = None
    found: VmRow | None = None  # the VM that is meant, where it is there

    @property
    def changes(self) -> bool:
        return self.prepared is not None and self.prepared.plan.changed


class Planner:
    """Plans VMs one after the other, each seeing what those before it will be."""

    def __init__(self, client: Client, check_mode: bool) -> None:
        self._memory = Remembering(client)
        self._check_mode = check_mode
        self.picture = read_picture(self._memory)  # as it was
        self._stage = Stage(self._memory, self.picture)
        self._named: dict[str, int] = {}  # names that VMs of this run will have, and the places of these in the list
        self._templates: dict[str, int] = {}  # new templates of this run by name and by number, and their places

    def plan(self, items: list[Item]) -> list[Planned]:
        """Return each VM's plan, in the order of the list. What is wrong with one VM is part of the answer."""
        located = self._locate(items)
        self._ask_nodes_of(located)
        if any(one.found is None and one.error is None and one.item.desired.state != "absent" for one in located):
            located = self._locate(items)  # the listing may have known an old name of what seems to be missing
        found = side_by_side(self._read, located, READERS)
        return [self._plan(planned, actual) for planned, actual in zip(located, found, strict=True)]

    def prune(self, params: Mapping[str, Any], scope: Scope, planned: list[Planned]) -> list[Planned]:
        """Return the plans to remove what lies within the scope and is not in the list."""
        listed = {vmid for one in planned for vmid in meant(one)}
        rows = out_of_list(self.picture, scope, listed)
        fresh = ask_nodes(self._memory, self.picture, {row.node for row in rows}, full=True)
        items: list[Item] = []
        for row in rows:
            options = removal_of(params, row.vmid, fresh.vms[row.vmid].own_name or row.own_name)
            items.append(Item(len(planned) + len(items), options, read_wish(options), pruned=True))
        return self.plan(items)

    def _job(self, item: Item) -> Job:
        return job_of(item.params, self._memory, item.desired, self._check_mode, self._stage)

    def _locate(self, items: list[Item]) -> list[Planned]:
        located: list[Planned] = []
        owners: dict[int, Item] = {}
        for item in items:
            try:
                row = locate(self._memory, item.desired, self._stage.picture)
                if row is not None and owners.setdefault(row.vmid, item) is not item:
                    raise _same(item, owners[row.vmid], row)
                located.append(Planned(item, found=row))
            except FleetError as error:
                located.append(Planned(item, error=error))
        return located

    def _ask_nodes_of(self, located: list[Planned]) -> None:
        """Learn names and power states, which the listing knows late; one request a node.

        Where a VM is about to be made all nodes are asked, else those of the VMs that are there.
        """
        making = any(one.found is None and one.item.desired.state != "absent" for one in located)
        nodes = set(self.picture.nodes) if making else {one.found.node for one in located if one.found is not None}
        for row in ask_nodes(self._memory, self.picture, nodes, full=True).vms.values():
            if row.fresh:
                self._stage.put(row)

    def _read(self, planned: Planned) -> Actual | FleetError | None:
        if planned.found is None:
            return None
        row = self._stage.picture.vms[planned.found.vmid]
        try:
            return read_found(self._job(planned.item), row, self._stage.picture)
        except FleetError as error:
            return error

    def _plan(self, planned: Planned, actual: Actual | FleetError | None) -> Planned:
        if planned.error is not None:
            return planned
        item, picture = planned.item, self._stage.picture
        try:
            if isinstance(actual, FleetError):
                raise actual
            job = self._job(item)
            if actual is None:
                self._require_unnamed(item)
                prepared = prepare_missing(job, picture)
            elif item.desired.vmid is None and actual.name != item.desired.name:
                prepared = prepare(job, picture)  # the listing knew an old name
            else:
                prepared = prepare_found(job, actual, picture)
        except FleetError as error:
            return replace(planned, error=self._why_without(item, error))
        row = row_after(prepared)
        if row is not None:
            self._stage.put(row)
            if prepared.draft is not None and row.name:
                self._named[row.name] = item.index
            if prepared.draft is not None and row.template:
                self._templates |= {row.name: item.index, str(row.vmid): item.index}
        return replace(planned, prepared=prepared, row=row)

    def _require_unnamed(self, item: Item) -> None:
        """Raise Conflict where another VM of the list will have the name, of another tenant's then."""
        other = self._named.get(item.desired.name or "")
        if other is not None and item.desired.vmid is None and item.desired.state != "absent":
            raise Conflict(
                attempted=f"{item.desired.label} was not planned",
                answer=f"vms[{other}] will have that name",
                next_step="Give one of the two another name, or a vmid of its own",
                reason="name taken",
            )

    def _why_without(self, item: Item, error: FleetError) -> FleetError:
        """Return the error of a VM, in other words where its source is a template that this run only makes."""
        source = item.desired.source
        at = self._templates.get(source.name or str(source.vmid)) if source is not None else None
        if at is None or not isinstance(error, NotFound):
            return error
        return error.on(
            attempted=f"{item.desired.label} was not planned",
            answer=f"its source is vms[{at}], which is not made yet",
            next_step="Run again once it is there, or list the template in a task before this one",
            reason="source not made yet",
            status=None,
            path="",
        )


def row_after(prepared: Prepared) -> VmRow | None:
    """Return a VM as the listing will show it once its plan is carried out, or None where nothing is left to show."""
    job, draft, actual, config = prepared.job, prepared.draft, prepared.actual, prepared.config
    wish = job.desired
    if config is None:
        return None
    if draft is not None:
        config = {**config, "name": wish.name or "", **({"template": "1"} if wish.state == "template" else {})}
        status = "running" if wish.state == "started" else "stopped"
        return row_of(draft.vmid, draft.node, config, pool=wish.pool, status=status, disk=draft.figures.disk)
    if actual is None:
        return None
    return row_of(actual.vmid, wish.node or actual.node, config, pool=wish.pool or actual.pool, status=actual.status)


def meant(planned: Planned) -> set[int]:
    """Return the VM that an item means, and the one that the listing took for it where that knew an old name (pure)."""
    actual = planned.prepared.actual if planned.prepared is not None else None
    found = {planned.found.vmid} if planned.found is not None else set()
    return found | ({actual.vmid} if actual is not None else set())


def refuse_look_alikes(planned: list[Planned], picture: Picture, scope: Scope) -> list[Planned]:
    """Return the plans, with an error for a new VM whose name another one in the scope has in other letters (pure).

    Names are the same to DNS whatever their letters: the other one would be pruned for a slip of the pen.
    """
    listed = {vmid for one in planned for vmid in meant(one)}
    there = {row.name.lower(): row for row in out_of_list(picture, scope, listed)}
    checked: list[Planned] = []
    for one in planned:
        new = one.prepared is not None and one.prepared.draft is not None
        row = there.get((one.item.desired.name or "").lower()) if new else None
        checked.append(one if row is None else Planned(one.item, error=_look_alike(one.item, row)))
    return checked


def _look_alike(item: Item, row: VmRow) -> Conflict:
    return Conflict(
        attempted=f"vms[{item.index}], {item.desired.label}, was not planned",
        answer=f"VM '{row.name}' ({row.vmid}) would be pruned, whose name differs in nothing but upper and lower case",
        next_step="Write the name as the VM has it, or give its vmid to rename it",
        reason="name differs in case",
    )


def out_of_list(picture: Picture, scope: Scope, listed: set[int]) -> list[VmRow]:
    """Return the VMs within a scope that no item of the list means, by VMID. Templates are never among them (pure)."""
    return [
        row
        for _vmid, row in sorted(picture.vms.items())
        if row.vmid not in listed and not row.template and within(row, scope)
    ]


def within(row: VmRow, scope: Scope) -> bool:
    """Tell whether a VM lies within a scope: that tenant's tag and no other tenant's, that very pool (pure)."""
    if scope.tenant_tag is not None and tuple(tenants_of(row.tags, scope.prefix)) != (scope.tenant_tag,):
        return False
    return scope.pool is None or row.pool == scope.pool


def still_within(scope: Scope, actual: Actual, row: VmRow | None) -> None:
    """Raise Conflict where a VM that is about to be pruned has left the scope since it was planned."""
    if row is None or not within(row, scope):
        raise Conflict(
            attempted=f"{actual.label} was left alone",
            answer=f"it no longer has the {scope.label}",
            next_step="Somebody else changed it meanwhile: check whose it is and run again",
            reason="outside the scope",
        )
    guard_tenant(actual.label, row.tags, scope.tenant_tag, scope.prefix)


def _same(item: Item, other: Item, row: VmRow) -> Conflict:
    return Conflict(
        attempted=f"vms[{item.index}], {item.desired.label}, was not planned",
        answer=f"vms[{other.index}] means the same VM, '{row.name}' ({row.vmid})",
        next_step="List each VM once",
        reason="listed twice",
    )
