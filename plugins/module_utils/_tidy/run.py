# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module tidy: list what is unfinished, and remove what has our creation marker."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._cluster.state import ClusterState, VmRow, fetch_cluster_state
from .._cluster.tenant import owns, tenant_tag, tenants_of
from .._cluster.view import ClusterView
from .._core import validate
from .._core.errors import Conflict, FleetError, NotFound, TaskTimeout, failure_of_several
from .._core.parallel import side_by_side
from .._core.poll import poll
from .._core.result import Result
from .._fleet.items import removal_of
from .._resource.plan import Plan, Step
from .._vm.apply import RemovedVm, apply_to_vm
from .._vm.context import RunContext
from .._vm.live.allocation import base_storages
from .._vm.live.making import MAKING, await_made, is_unfinished, owner_tags, tasks_on
from .._vm.live.read import read_wherever
from .._vm.model import Actual
from .._vm.plan.update import plan_absent
from .._vm.run import read_vm_options
from .leftover import REMOVE, Leftover, leftovers_of

if TYPE_CHECKING:
    from .._api.client import Client

_READERS = 10
# Seconds after which a VM that is being made is reported as such.
_PATIENCE = 30.0


@dataclass(frozen=True)
class Unfinished:
    """A VM with what is unfinished about it, one thing or more."""

    actual: Actual
    leftovers: tuple[Leftover, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What is unfinished, as the module reports it."""
        return [leftover.row(self.actual) for leftover in self.leftovers]

    @property
    def is_removable(self) -> bool:
        """Whether the VM is to be removed."""
        remedies = {leftover.remedy for leftover in self.leftovers}
        return REMOVE in remedies


class AbandonedVm(RemovedVm):
    """A VM that an interrupted run did not finish making, with the plan of its removal."""

    def _look(self, node: str, status: str | None = None) -> Actual:
        """Return the VM as it is. Raises Conflict where it is another one, or is used by now."""
        seen = super()._look(node)
        is_busy = bool(tasks_on(self.client, seen))
        # The configuration comes last, because the name and the tenant are in it.
        current = super()._look(seen.node, seen.status)
        is_abandoned = current.marker == self.actual.marker and current.status == "stopped"
        if is_busy or current.lock or not is_abandoned:
            raise Conflict(
                attempted=f"{current.label} was not removed",
                answer="another run works on it or has completed it",
                next_step="Run this again to see what is unfinished",
                reason="no longer abandoned",
            )
        return current

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        """Return what is left to do, once no task works on it: after a lost answer it is our own
        removal that does.
        """
        if uncertain:
            for _left in poll(self.client.clock, self.context.settings.task_timeout):
                if not self._is_worked_on():
                    break
        return super().replan(done, uncertain)

    def _is_worked_on(self) -> bool:
        try:
            return bool(tasks_on(self.client, super()._look(self.actual.node)))
        except NotFound:
            return False


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Remove what interrupted runs left of the tenant's VMs; in check mode list it only.

    A VM that cannot be removed does not stop the others.
    """
    prefix = params["tenant_prefix"]
    tag = validate.tag(tenant_tag(params["tenant"], prefix), "tenant")
    found = find_unfinished(client, fetch_cluster_state(client), tag, prefix)
    view = ClusterView(client)
    results: list[Result] = []
    errors: list[FleetError] = []
    for vm in found:
        if not vm.is_removable:
            continue
        try:
            results.append(_remove(params, client, vm.actual, view, check_mode))
        except FleetError as error:
            errors.append(error)
    failure = None
    if errors:
        texts = " ".join(error.message for error in errors)
        failure = failure_of_several(errors, texts, len(results) + len(errors))
    return replace(_report(found, results), failure=failure)


def _remove(
    params: Mapping[str, Any], client: Client, actual: Actual, view: ClusterView, check_mode: bool
) -> Result:
    """Remove a VM; in check mode return what that would do."""
    options = read_vm_options(removal_of(params, actual.vmid, actual.target.get("name", "")))
    context = RunContext(client, options.desired, options.settings, check_mode, view)
    plan = plan_absent(options.desired, actual)
    return apply_to_vm(AbandonedVm(context, plan, actual))


def _report(found: Sequence[Unfinished], removals: Sequence[Result]) -> Result:
    """Return all that is unfinished, and what came of the removals together."""
    rows: list[dict[str, Any]] = []
    for vm in found:
        rows.extend(vm.rows)
    plan: list[str] = []
    done: list[str] = []
    diffs: list[Mapping[str, Any]] = []
    for removal in removals:
        plan.extend(removal.values["plan"])
        done.extend(removal.values["done"])
        if isinstance(removal.diff, Mapping):
            diffs.append(removal.diff)
    changed = any(removal.changed for removal in removals)
    values = {"unfinished": rows, "plan": plan, "done": done}
    return Result(changed, values, diffs or {"before": {}, "after": {}})


def find_unfinished(
    client: Client, cluster: ClusterState, tag: str, prefix: str
) -> list[Unfinished]:
    """Return the VMs of a tenant about which something is unfinished, by VMID.

    `cluster` is the listing with its storages. One request for each VM that has the tenant's tag,
    that of no tenant, or exactly the tags of a template. A VM that is being made is waited for.
    Raises FleetError.
    """
    bases = base_storages(cluster)
    inherited = _tags_of_templates(cluster)
    rows: list[VmRow] = []
    for _vmid, row in sorted(cluster.vms.items()):
        is_own = _may_be_of(row, tag, prefix)
        if is_own or _tags(row) in inherited:
            rows.append(row)

    def inspect(row: VmRow) -> Unfinished | None:
        vm = _inspect(client, row, bases)
        if vm is None:
            return None
        owners = owner_tags(vm.actual.target, prefix)
        is_of_tenant = owns(tag, owners, prefix)
        if is_of_tenant:
            return vm
        return None

    found = side_by_side(inspect, rows, _READERS)
    return list(filter(None, found))


def _tags_of_templates(cluster: ClusterState) -> set[frozenset[str]]:
    """Return the tags of each template.

    An unfinished clone has those of its source, which may be another tenant's that shares it.
    """
    found: set[frozenset[str]] = set()
    for row in cluster.vms.values():
        if row.template:
            found.add(_tags(row))
    return found


def _tags(row: VmRow) -> frozenset[str]:
    tags = map(str.lower, row.tags)
    return frozenset(tags)


def _may_be_of(row: VmRow, tag: str, prefix: str) -> bool:
    """Return whether a VM may be the tenant's, as far as its own tags say."""
    is_being_made = row.lock in MAKING
    if is_being_made:
        return True
    owners = tenants_of(row.tags, prefix)
    has_none = not owners
    return has_none or tag in owners


def _inspect(client: Client, row: VmRow, bases: Collection[str]) -> Unfinished | None:
    """Return a VM with what is unfinished about it, None where it is complete or gone.

    `bases` are the storages with base volumes. The first reading has the power state of the
    listing, which saves a request for each VM that is complete.
    """
    try:
        listed = read_wherever(client, row.vmid, row.node, status=row.status, pool=row.pool)
        if not leftovers_of(listed, (), bases):
            return None
        actual = read_wherever(client, row.vmid, listed.node, pool=row.pool)
        tasks = tasks_on(client, actual)
        if is_unfinished(actual) and not tasks:
            settled = _settled(client, actual)
            if settled is None:
                return None
            actual = settled
            tasks = tasks_on(client, actual)
    except NotFound:
        return None
    leftovers = leftovers_of(actual, tasks, bases)
    if not leftovers:
        return None
    return Unfinished(actual, tuple(leftovers))


def _settled(client: Client, actual: Actual) -> Actual | None:
    """Return a VM with a marker once no task works on it, or as it is where that takes long.

    None where it is gone, or completed by then. Raises NotFound where it is gone after that time.
    """
    try:
        settled = await_made(client, actual, _PATIENCE)
    except TaskTimeout:
        settled = read_wherever(client, actual.vmid, actual.node)
    if settled is None or not is_unfinished(settled):
        return None
    return replace(settled, pool=actual.pool)
