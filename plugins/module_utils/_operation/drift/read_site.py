# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads one site, plans its VMs as module vms does, and compares their HA rules with the estate.
Nothing is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..._foundation.cluster.drill.copies import is_marked
from ..._foundation.cluster.find.restoring import find_restored, seems_bare
from ..._foundation.cluster.find.visible import probe_vmid, require_visible
from ..._foundation.cluster.quota import QuotaFigures, total
from ..._foundation.cluster.state import ClusterState, VmRow, query_nodes
from ..._foundation.cluster.tenant import PREFIX, owns, tenant_of, tenant_tag
from ..._foundation.core.errors import FleetError, PermissionDenied
from ..._foundation.core.parallel import side_by_side
from ..._foundation.resource.run import TableResource
from ..._guests.fleet.items import Estate, VmItem
from ..._guests.fleet.placement_rules import PlacementKeeper
from ..._guests.fleet.plan import FleetPlanner, PlannedGuest, vmids_of, with_leaving
from ..._guests.guest.create.quota_race import read_usage
from ..._guests.guest.registry import CONTAINERS, VMS
from ..._guests.kinds.model import Guest
from ..._guests.kinds.words import kind_name
from ..._infrastructure.datacenter.ha.rule import HA_RULE
from ..._protection.backup.job.declared import Jobs
from ..._protection.backup.job.maintain import read_jobs
from ..tasks.read import MAX_TASKS, TaskQuery, found_in, read_removals, read_tasks
from ..tasks.row import TaskRow, is_of_earlier_guest
from .changed_by import described
from .cluster_file import add_cluster, add_resource, differences
from .compare import BLIND, add_backup, compare, has_creation_marker, seems_gone, status_of
from .ignore import IgnorePatterns, names_of
from .model import (
    DRIFTED,
    IN_SYNC,
    MISSING,
    OUTDATED,
    PENDING,
    UNKNOWN,
    UNWANTED,
    ClusterResource,
    ComparedGuest,
    DriftReading,
    DriftScope,
    OfflineNode,
    SiteShare,
    UnlistedGuest,
)
from .quotas import quota_uses
from .tenants import add_tenants

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


# Tasks that do not change the VM: consoles and backups.
_HARMLESS = frozenset("vncproxy vncshell spiceproxy spiceshell termproxy vzdump".split())
_VERBS = "start stop shutdown reboot reset suspend resume pause".split()
_POWER = frozenset(f"{kind}{verb}" for kind in ("qm", "vz", "ha") for verb in _VERBS)
# Statuses of existing VMs that differ.
_EXISTING = frozenset((DRIFTED, PENDING, UNWANTED, OUTDATED))


def read_site(
    estate: Estate | None, client: Client, scope: DriftScope, names: Collection[str]
) -> DriftReading:
    """Return the differences at one site: guests of an estate, networks of its tenants, and the
    resources of a cluster file. The site has several `names` if sites share an endpoint.
    """
    site = max(names, default="")
    reading = DriftReading(site) if estate is None else _read_guests(estate, client, scope, names)
    if reading.reason:
        return reading
    try:
        add_tenants(reading, client, scope, names)
        if scope.cluster is not None:
            add_cluster(reading, client, scope.cluster, scope.ignored)
    except FleetError as error:
        reading.reason = error.message
    return reading


def _read_guests(
    estate: Estate, client: Client, scope: DriftScope, names: Collection[str]
) -> DriftReading:
    """Return the differences of the guests at one site.

    As many requests as module vms without a change, plus one for each VM that is not found and for
    each node with a VM that is not in the estate, plus three for each node about tasks if anything
    differs. If the site cannot be read, its VMs are unknown.
    """
    site = max(names, default="")
    reading = DriftReading(site)
    try:
        # Containers are compared only if the estate lists them.
        is_mixed = estate.params.get(CONTAINERS.option) is not None
        lists = [VMS, CONTAINERS] if is_mixed else [VMS]
        planner = FleetPlanner(client, check_mode=True, lists=lists)
        located = planner.locate(estate.items)
        plans = with_leaving(planner.plan_located(located), planner.leaving)
    except FleetError as error:
        reading.reason = error.message
        reading.vms = [compare(PlannedGuest(item, error=error)) for item in estate.items]
        for vm in reading.vms:
            vm.status = UNKNOWN
        return reading
    reading.nodes = silent_nodes(planner.cluster, site)
    vms = [compare(one, planner.cluster.of_type(one.item.kind.kind.type)) for one in plans]
    _find_hidden(client, planner, plans, vms)
    _add_backups(client, estate, plans, vms)
    for planned, vm in zip(plans, vms, strict=True):
        own = names_of(vm.name, vm.tenant, vm.vmid)
        has_ignored = reading.drop_ignored(vm, own, scope.ignored)
        if has_ignored is not None:
            reading.vms.append(vm)
        if has_ignored:
            vm.status = status_of(vm.options)
            if vm.status == IN_SYNC and has_creation_marker(planned):
                vm.status = DRIFTED  # a run would finish its creation
    if scope.unlisted:
        prefix = str(estate.params.get("tenant_prefix") or PREFIX)
        _add_unlisted(reading, client, planner, plans, scope, prefix)
    keeper = PlacementKeeper(plans, planner.cluster, client)
    add_placement(reading, keeper, scope.ignored)
    _add_quotas(reading, client, planner, estate.items)
    _add_shares(reading, client, planner, scope.counted, names)
    _add_tasks(reading, client, planner)
    return reading


def _find_hidden(
    client: Client, planner: FleetPlanner, plans: list[PlannedGuest], vms: list[ComparedGuest]
) -> None:
    """Mark VMs that were not found as unknown if a hidden VM has their VMID.

    The collection derives a sequence of VMIDs from the name of a VM, and uses the first free one.
    One request for each VM that was not found.
    """

    def mark_hidden(pair: tuple[PlannedGuest, ComparedGuest]) -> None:
        planned, vm = pair
        desired = planned.item.desired
        try:
            vmid = desired.guest.vmid or desired.guest.vmids.free(planner.cluster.taken)
            attempted = f"{desired.guest.label} could not be compared"
            require_visible(probe_vmid(client, planner.cluster, vmid), vmid, attempted)
        except FleetError as error:
            vm.status = UNKNOWN
            vm.reason = error.message

    gone: list[tuple[PlannedGuest, ComparedGuest]] = []
    for planned, vm in zip(plans, vms, strict=True):
        if seems_gone(planned, vm) and planned.item.desired.guest.vmids.by_name:
            gone.append((planned, vm))
    side_by_side(mark_hidden, gone)


def _add_backups(
    client: Client, estate: Estate, plans: list[PlannedGuest], vms: list[ComparedGuest]
) -> None:
    """Compare the backup jobs of the guests; one request if one of them declares a backup."""
    is_declared = any(planned.item.backup is not None for planned in plans)
    if not is_declared or estate.params.get("backup_jobs") is False:
        return
    try:
        jobs: Jobs | FleetError = read_jobs(client)
    except FleetError as error:
        jobs = error
    for planned, vm in zip(plans, vms, strict=True):
        add_backup(vm, planned, jobs)


def _add_unlisted(
    reading: DriftReading,
    client: Client,
    planner: FleetPlanner,
    plans: list[PlannedGuest],
    scope: DriftScope,
    prefix: str,
) -> None:
    """Add the VMs that are not in the estate, with their names from their nodes."""
    listed: set[int] = set()
    for planned in plans:
        listed |= vmids_of(planned)
    tenants = scope.tenants or ()
    rows = unlisted(planner.cluster, listed, tenants, prefix)
    nodes = {row.node for row in rows}
    cluster = query_nodes(client, planner.cluster, nodes)
    rows = unlisted(cluster, listed, tenants, prefix)  # without VMs that were removed since then
    restored = find_restored(client, filter(seems_bare, rows))
    reading.warnings += restored.values()
    for row in rows:
        if row.vmid in restored:
            continue
        vm = describe_unlisted(row, reading.site, prefix)
        if scope.ignored.vm(names_of(vm.name, vm.tenant, vm.vmid)):
            reading.ignored += 1
        else:
            reading.unlisted.append(vm)


def _add_tasks(reading: DriftReading, client: Client, planner: FleetPlanner) -> None:
    """Add the last task of each VM that differs; `last_task` stays None if no task is known. A start
    or stop explains only a difference of the status.
    """
    existing = [vm for vm in reading.vms if vm.status in _EXISTING]
    differing: list[ComparedGuest | UnlistedGuest] = [*reading.unlisted, *existing]
    if not differing:
        return
    nodes = [name for name, node in planner.cluster.nodes.items() if node.online]
    removals = read_removals(client, nodes)
    answers = read_tasks(client, nodes, TaskQuery(limit=MAX_TASKS), _may_change)
    last: dict[tuple[int, bool], TaskRow] = {}
    for task in found_in(answers, MAX_TASKS):
        if task.vmid is not None and not is_of_earlier_guest(task, removals):
            last.setdefault((task.vmid, True), task)
            if task.type not in _POWER:
                last.setdefault((task.vmid, False), task)
    for one in differing:
        is_power = isinstance(one, UnlistedGuest) or any(o.option == "status" for o in one.options)
        one.last_task = described(last.get((one.vmid or 0, is_power)))


def _may_change(task: TaskRow) -> bool:
    return task.type not in _HARMLESS


def _add_quotas(
    reading: DriftReading, client: Client, planner: FleetPlanner, items: list[VmItem]
) -> None:
    """Add use and limit of each tenant with a quota."""
    by_tenant: dict[str, Guest] = {}
    for item in items:
        if item.desired.guest.limits and item.desired.guest.tenant:
            by_tenant.setdefault(item.desired.guest.tenant, item.desired.guest)
    for tenant in sorted(by_tenant):
        used = _read_use(reading, client, planner, by_tenant[tenant])
        if used is not None:
            limits = by_tenant[tenant].limits or {}
            reading.quotas += quota_uses(tenant, reading.site, limits, used)


def _add_shares(
    reading: DriftReading,
    client: Client,
    planner: FleetPlanner,
    counted: Iterable[Guest],
    names: Collection[str],
) -> None:
    """Add the use of each tenant with a quota over sites at this one, which has these names."""
    for guest in counted:
        sites = set(names).intersection(guest.sites.names)
        used = _read_use(reading, client, planner, guest) if sites else None
        if used is not None:
            reading.shares.append(SiteShare(guest.tenant or "", sites, used))


def _read_use(
    reading: DriftReading, client: Client, planner: FleetPlanner, guest: Guest
) -> QuotaFigures | None:
    """Return the use of the tenant of a guest; None, and a warning, if it cannot be read."""
    try:
        usage = read_usage(client, guest, planner.cluster.of_type(guest.kind.type))
    except FleetError as error:
        reading.warnings.append(f"The use of {guest.tenant}'s quota is unknown: {error.message}")
        return None
    return total(usage.values())


def unlisted(
    cluster: ClusterState, listed: Collection[int], tenants: Collection[str], prefix: str
) -> list[VmRow]:
    """Return the VMs that are not in the estate, sorted by VMID.

    Templates and copies of drills are omitted. With `tenants`, only the VMs of these tenants.
    """
    others = [cluster.vms[vmid] for vmid in sorted(cluster.vms.keys() - set(listed))]
    guests = [row for row in others if not row.template and not is_marked(row.tags)]
    return [row for row in guests if _is_of(row, tenants, prefix)]


def _is_of(row: VmRow, tenants: Collection[str], prefix: str) -> bool:
    if not tenants:
        return True
    tags = [tenant_tag(tenant, prefix) for tenant in tenants]
    return any(owns(tag, row.tags, prefix) for tag in tags)


def describe_unlisted(row: VmRow, site: str, prefix: str) -> UnlistedGuest:
    """Return a VM that is not in the estate, for the report."""
    tenant, _why = tenant_of(row.tags, prefix)
    return UnlistedGuest(
        name=row.own_name,
        tenant=tenant or "",
        site=site,
        vmid=row.vmid,
        node=row.node,
        power=row.status,
        kind=kind_name(row.type),
    )


def silent_nodes(cluster: ClusterState, site: str) -> list[OfflineNode]:
    """Return the nodes whose VMs cannot be read, sorted by name."""
    offline = sorted(name for name, node in cluster.nodes.items() if not node.online)
    return [OfflineNode(site, name, f"node {name} is offline") for name in offline]


RULES, RESOURCES = "ha_rules", "ha_resources"
_WHOLE = "placement"


def add_placement(reading: DriftReading, keeper: PlacementKeeper, ignored: IgnorePatterns) -> None:
    """Add each rule and resource that differs, under the sections of a cluster file.

    Two requests if a guest of the estate sets C(keep). Without the privilege to read HA rules, only
    a warning is added.
    """
    try:
        plan = keeper.plan()
    except PermissionDenied as error:
        reading.warnings.append(f"HA rules of placement.keep were not compared: {error.message}")
        return
    except FleetError as error:
        status = UNKNOWN if isinstance(error, BLIND) else DRIFTED
        found = ClusterResource(reading.site, RULES, _WHOLE, status, error.message)
        add_resource(reading, found, ignored)
        return
    for one in plan.resources:
        add_resource(reading, differing(one, reading.site), ignored)
    reading.warnings += plan.warnings


def differing(one: TableResource, site: str) -> ClusterResource:
    """Return a rule or a resource that differs, as the report shows it (pure)."""
    section = RULES if one.table is HA_RULE else RESOURCES
    name = "/".join(one.desired.keys.values())
    found = ClusterResource(site, section, name, _status_of(one))
    found.steps = one.plan.summaries
    found.options = differences({"before": one.plan.before, "after": one.plan.after})
    return found


def _status_of(one: TableResource) -> str:
    if not one.desired.present:
        return UNWANTED
    return MISSING if one.actual is None else DRIFTED
