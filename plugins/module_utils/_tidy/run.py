# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module tidy: list what is unfinished, and remove what has our creation marker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._cluster.state import ClusterState, VmRow, fetch_cluster_state
from .._cluster.tenant import owns, tenant_tag, tenants_of
from .._cluster.view import ClusterView
from .._core import validate
from .._core.errors import Conflict, FleetError, NotFound, TaskTimeout, failure_of_several
from .._core.parallel import side_by_side
from .._core.result import Result
from .._fleet.items import removal_of
from .._vm.apply import RemovedVm, apply_to_vm
from .._vm.context import RunContext
from .._vm.live.allocation import base_storages
from .._vm.live.making import await_made, is_unfinished, owner_tags, tasks_on
from .._vm.live.read import read_wherever
from .._vm.model import Actual
from .._vm.plan.update import plan_absent
from .._vm.run import read_vm_options
from .leftover import REMOVE, Leftover, is_suspect, leftovers_of

if TYPE_CHECKING:
    from .._api.client import Client

_READERS = 10
# Seconds after which a VM that is being made is reported as such.
_PATIENCE = 30.0


@dataclass(frozen=True)
class Unfinished:
    """A VM with what is unfinished about it."""

    actual: Actual
    leftovers: tuple[Leftover, ...]

    @property
    def is_removable(self) -> bool:
        """Whether the VM is to be removed."""
        return any(one.remedy == REMOVE for one in self.leftovers)


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
                attempted=f"{current.label} was left alone",
                answer="another run works on it or has completed it",
                next_step="Run this again to see what is unfinished",
                reason="no longer abandoned",
            )
        return current


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Remove what interrupted runs left of the tenant's VMs; in check mode list it only.

    A VM that cannot be removed does not stop the others.
    """
    tag = validate.tag(tenant_tag(params["tenant"], params["tenant_prefix"]), "tenant")
    found = find_unfinished(client, tag, params["tenant_prefix"])
    rows = [one.row(vm.actual) for vm in found for one in vm.leftovers]
    results: list[Result] = []
    errors: list[FleetError] = []
    view = ClusterView(client)
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
    values = {
        "unfinished": rows,
        "plan": [line for one in results for line in one.values["plan"]],
        "done": [line for one in results for line in one.values["done"]],
    }
    diffs = [one.diff for one in results if isinstance(one.diff, Mapping)]
    changed = any(one.changed for one in results)
    return Result(changed, values, diffs or {"before": {}, "after": {}}, failure=failure)


def _remove(
    params: Mapping[str, Any], client: Client, actual: Actual, view: ClusterView, check_mode: bool
) -> Result:
    options = read_vm_options(removal_of(params, actual.vmid, actual.target.get("name", "")))
    context = RunContext(client, options.desired, options.settings, check_mode, view)
    return apply_to_vm(AbandonedVm(context, plan_absent(options.desired, actual), actual))


def find_unfinished(client: Client, tag: str, prefix: str) -> list[Unfinished]:
    """Return the VMs of a tenant about which something is unfinished, by VMID.

    One request for each VM that has the tenant's tag or that of no tenant. A VM that is being made
    is waited for. Raises FleetError.
    """
    cluster = fetch_cluster_state(client)
    rows = [row for _vmid, row in sorted(cluster.vms.items()) if _may_be_of(row, tag, prefix)]

    def inspect(row: VmRow) -> Unfinished | None:
        return _inspect(client, cluster, row, tag, prefix)

    return [vm for vm in side_by_side(inspect, rows, _READERS) if vm is not None]


def _may_be_of(row: VmRow, tag: str, prefix: str) -> bool:
    """Return whether a VM may be the tenant's; an unfinished clone has the tags of its source."""
    if row.lock in ("clone", "create"):
        return True
    return tag in row.tags or not tenants_of(row.tags, prefix)


def _inspect(
    client: Client, cluster: ClusterState, row: VmRow, tag: str, prefix: str
) -> Unfinished | None:
    """Return what is unfinished about a VM, or None."""
    bases = base_storages(cluster)
    try:
        actual = read_wherever(client, row.vmid, row.node, status=row.status, pool=row.pool)
        if not is_suspect(actual, bases):
            return None
        actual = read_wherever(client, row.vmid, actual.node, pool=row.pool)
        tasks = tasks_on(client, actual)
        if is_unfinished(actual) and not tasks:
            settled = _settled(client, actual)
            tasks = tasks_on(client, actual)
            actual = settled or actual
            if settled is None:
                return None
    except NotFound:
        return None
    if not owns(tag, owner_tags(actual.target, prefix), prefix):
        return None
    leftovers = tuple(leftovers_of(actual, tasks, bases))
    return Unfinished(actual, leftovers) if leftovers else None


def _settled(client: Client, actual: Actual) -> Actual | None:
    """Return the VM once no task works on it, or as it is where that takes long; None if gone."""
    try:
        settled = await_made(client, actual, _PATIENCE)
    except TaskTimeout:
        return actual
    if settled is None or not is_unfinished(settled):
        return None
    return replace(settled, pool=actual.pool)
