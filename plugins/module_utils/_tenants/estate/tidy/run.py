# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module tidy: list unfinished VMs, and remove the VMs with our creation marker."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ...._foundation.api.tasks import find_holder
from ...._foundation.cluster.drill.copies import tenant_tags, without_copies
from ...._foundation.cluster.find.names import TENANT, check_names
from ...._foundation.cluster.find.owner import OwnerScope
from ...._foundation.cluster.state import CREATION_LOCKS, ClusterState, VmRow, fetch_cluster_state
from ...._foundation.cluster.storages.allocation import base_storages
from ...._foundation.cluster.tenant import owns, parse_tags, tenant_tag, tenants_of
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core import validate
from ...._foundation.core.clock import poll
from ...._foundation.core.errors import Conflict, FleetError, NotFound, TaskTimeout
from ...._foundation.core.failures.several import FailedGuest, failure_of_several
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.result import Result
from ...._foundation.resource.plan import Plan, Step
from ...._guests.fleet.items import removal_of
from ...._guests.guest.context import RunContext
from ...._guests.guest.create.orphan import removal_summary, remove_orphan
from ...._guests.guest.flow.existing import RemovedGuest, apply_to_guest
from ...._guests.guest.flow.volumes import require_no_borrowers
from ...._guests.guest.live.creation import await_creation, has_creation_marker, tasks_on
from ...._guests.guest.live.read import read_wherever
from ...._guests.guest.plan.removal import plan_absent
from ...._guests.guest.registry import LISTS, list_of
from ...._guests.kinds.marker import owner_tags
from ...._guests.kinds.model import Actual
from ...._protection.backup.read import backup_storages, read_archives
from ...._protection.restore.drill.find import find_copies, remove_copy
from ...._protection.restore.interrupted import candidates, find_orphans
from .orphan import FAILED_RESTORE, REMOVE, Orphan, orphan_of_copy, orphans_of

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# Seconds to wait for a VM that is being created before it is reported.
_PATIENCE = 30.0


@dataclass(frozen=True)
class OrphanedGuest:
    """A guest with its unfinished parts, at least one."""

    actual: Actual
    orphans: tuple[Orphan, ...]
    is_copy: bool = False  # of a drill
    is_empty: bool = False  # the remains of a failed restore

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The unfinished parts as the module reports them."""
        return [orphan.row(self.actual) for orphan in self.orphans]

    @property
    def is_removable(self) -> bool:
        """Whether the VM must be removed."""
        return any(orphan.remedy == REMOVE for orphan in self.orphans)


class AbandonedGuest(RemovedGuest[Any]):
    """A guest that an interrupted run did not finish creating, with the plan of its removal."""

    def _reread(self, node: str, status: str | None = None) -> Actual:
        """Return the VM as read now. Raises Conflict if its VMID was reused or another run uses
        it.
        """
        first = super()._reread(node)
        is_busy = bool(tasks_on(self.client, first))
        # The configuration is read last, because it contains the name and the tenant.
        current = super()._reread(first.node, first.status)
        is_abandoned = current.marker == self.actual.marker and current.status == "stopped"
        if is_busy or current.lock or not is_abandoned:
            raise Conflict(
                f"{current.label} was not removed: another run works on it or has completed it",
                "Run this again to see what is unfinished",
                "no longer abandoned",
            )
        return current

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        """Return the remaining steps. After a lost answer, wait first until no task works on the
        VM, because the running task is our own removal.
        """
        if uncertain:
            for _remaining in poll(self.client.clock, self.context.settings.task_timeout):
                if not self._is_worked_on():
                    break
        return super().replan(done, uncertain)

    def _is_worked_on(self) -> bool:
        try:
            return bool(tasks_on(self.client, super()._reread(self.actual.node)))
        except NotFound:
            return False


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Remove VMs of the tenant that interrupted runs left behind; in check mode only list them.

    A VM that cannot be removed does not stop the others.
    """
    prefix = params["tenant_prefix"]
    tag = validate.tag(tenant_tag(params["tenant"], prefix), "tenant")
    cluster = fetch_cluster_state(client, {one.kind.type for one in LISTS})
    found = find_orphaned_guests(client, without_copies(cluster), tag, prefix)
    found += _find_copies(client, cluster, tag, prefix)
    found += _find_failed_restores(client, cluster, tag)
    if not found:
        check_names(client, cluster, {"tenant": (TENANT, [params["tenant"]])}, prefix)
    view = ClusterView(client, cluster.types)
    results: list[Result] = []
    failures: list[FailedGuest] = []
    labels = [vm.actual.label for vm in found if vm.is_removable]
    for vm in found:
        if not vm.is_removable:
            continue
        try:
            results.append(_remove(params, vm, view, cluster, check_mode))
        except FleetError as error:
            failures.append(FailedGuest(vm.actual.label, error))
            done = list(error.details.get("done", ()))
            results.append(Result(error.came_after_changes, {"plan": [], "done": done}))
    failure = failure_of_several(failures, labels) if failures else None
    return replace(_report(found, results), failure=failure)


def _remove(
    params: Mapping[str, Any],
    vm: OrphanedGuest,
    view: ClusterView,
    cluster: ClusterState,
    check_mode: bool,
) -> Result:
    """Remove a VM; in check mode return the plan."""
    actual, client = vm.actual, view.client
    timeout = int(params["task_timeout"])
    if vm.is_empty:
        summary = [removal_summary(actual.kind, actual.vmid, actual.node)]
        if not check_mode:
            remove_orphan(client, actual.kind, actual.vmid, actual.node, timeout)
        done = [] if check_mode else summary
        return Result(True, {"plan": summary, "done": done}, {"before": summary, "after": []})
    if vm.is_copy:
        return remove_copy(client, actual, timeout=timeout, check_mode=check_mode)
    of = list_of(actual.kind.type)
    options = of.read(removal_of(params, actual.vmid, actual.kind.name_in(actual.target), of))
    context: RunContext[Any] = RunContext(
        client, options.desired, options.settings, check_mode, view
    )
    warnings = require_no_borrowers(client, actual, cluster)
    plan = replace(plan_absent(options.desired, actual), warnings=tuple(warnings))
    return apply_to_guest(AbandonedGuest(of.flow, context, plan, actual))


def _find_copies(
    client: Client, cluster: ClusterState, tag: str, prefix: str
) -> list[OrphanedGuest]:
    """Return the copies of guests of the tenant that drills have left or still use."""
    now = client.clock.time()
    found: list[OrphanedGuest] = []
    for one in find_copies(client, cluster):
        tags = parse_tags(one.actual.target.get("tags"))
        if tag in tenant_tags(tags, prefix):
            orphans = (orphan_of_copy(one.notes, now),)
            found.append(OrphanedGuest(one.actual, orphans, is_copy=True))
    return found


def _find_failed_restores(client: Client, cluster: ClusterState, tag: str) -> list[OrphanedGuest]:
    """Return the empty VMs that failed restores of the tenant's own user have left. PVE puts a VM
    into its pool at the end of its restore, so the tenant does not see them (qemu-server:
    QemuServer.pm, restore_vma_archive).

    A VM in a pool or with an archive existed before its restore, which can be repeated.
    """
    outside = {vmid: row for vmid, row in cluster.vms.items() if not row.pool}
    cluster, no_tenant = replace(cluster, vms=outside), OwnerScope(None, "")
    if not candidates(cluster, no_tenant, ()):
        return []
    reading = read_archives(client, cluster, backup_storages(cluster))
    reading.require_complete("Empty VMs were not checked for archives", "Repair the storage")
    found: list[OrphanedGuest] = []
    for row in find_orphans(client, cluster, no_tenant, reading.archives, f"{tag}@pve"):
        actual = read_wherever(client, list_of(row.type).kind, row.vmid, row.node)
        found.append(OrphanedGuest(actual, (FAILED_RESTORE,), is_empty=True))
    return found


def _report(found: Sequence[OrphanedGuest], removals: Sequence[Result]) -> Result:
    """Return the unfinished VMs, and the results of all removals together."""
    rows = [row for vm in found for row in vm.rows]
    plan: list[str] = []
    done: list[str] = []
    diffs: list[Mapping[str, Any]] = []
    warnings: list[str] = []
    for removal in removals:
        warnings.extend(removal.warnings)
        plan.extend(removal.values["plan"])
        done.extend(removal.values["done"])
        if isinstance(removal.diff, Mapping):
            diffs.append(removal.diff)
    changed = any(removal.changed for removal in removals)
    values = {"unfinished": rows, "plan": plan, "done": done}
    return Result(changed, values, diffs or {"before": {}, "after": {}}, tuple(warnings))


def find_orphaned_guests(
    client: Client, cluster: ClusterState, tag: str, prefix: str
) -> list[OrphanedGuest]:
    """Return the unfinished guests of a tenant, of both kinds, by VMID.

    `cluster` is the listing with its storages. One request for each VM that has the tenant's tag,
    no tenant's tag, or exactly the tags of a template. Waits for VMs whose creation is in progress.
    Raises FleetError.
    """
    bases = base_storages(cluster)
    # An unfinished clone has the tags of its source, which may belong to a tenant that shares it.
    inherited = {_tags(row) for row in cluster.guests if row.template}
    listed = sorted(cluster.guests, key=attrgetter("vmid"))
    rows = [row for row in listed if _may_be_of(row, tag, prefix) or _tags(row) in inherited]
    found = side_by_side(lambda row: _inspect(client, row, bases), rows)
    unfinished = [vm for vm in found if vm is not None]
    return [vm for vm in unfinished if owns(tag, owner_tags(vm.actual.target, prefix), prefix)]


def _tags(row: VmRow) -> frozenset[str]:
    return frozenset(map(str.lower, row.tags))


def _may_be_of(row: VmRow, tag: str, prefix: str) -> bool:
    """Return whether a VM may be the tenant's, by its tags or because it is being created."""
    owners = tenants_of(row.tags, prefix)
    return row.lock in CREATION_LOCKS or not owners or tag in owners


def _inspect(client: Client, row: VmRow, bases: Collection[str]) -> OrphanedGuest | None:
    """Return a VM with its unfinished parts, None if it is complete or gone.

    `bases` are the storages with base volumes. The first reading uses the power state of the
    listing, which saves a request for each VM that is complete.
    """
    kind = list_of(row.type).kind
    try:
        listed = read_wherever(client, kind, row.vmid, row.node, status=row.status, pool=row.pool)
        if not orphans_of(listed, (), bases):
            return None
        actual = read_wherever(client, kind, row.vmid, listed.node, pool=row.pool)
        tasks = tasks_on(client, actual)
        if has_creation_marker(actual) and not tasks:
            stable = _await_stable(client, actual)
            if stable is None:
                return None
            actual = stable
            tasks = tasks_on(client, actual)
    except NotFound:
        return None
    may_run = ""
    if actual.lock and not tasks:
        holder = find_holder(client.get, actual.node, actual.vmid, actual.lock)
        may_run = holder.next_step(actual.node)
    orphans = orphans_of(actual, tasks, bases, may_run)
    return OrphanedGuest(actual, tuple(orphans)) if orphans else None


def _await_stable(client: Client, actual: Actual) -> Actual | None:
    """Wait until no task works on a VM with a marker, at most `_PATIENCE` seconds; return the VM.

    None if it was removed or completed in that time. Raises NotFound if it was removed later.
    """
    try:
        stable = await_creation(client, actual, _PATIENCE)
    except TaskTimeout:
        stable = read_wherever(client, actual.kind, actual.vmid, actual.node)
    if stable is None or not has_creation_marker(stable):
        return None
    return replace(stable, pool=actual.pool)
