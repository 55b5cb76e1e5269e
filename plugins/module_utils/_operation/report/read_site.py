# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read one site for the report, with each request sent only once. Nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..._foundation.api.access.privileges import Privileges
from ..._foundation.api.layers.caching import CachingReader
from ..._foundation.cluster.drill.copies import without_copies
from ..._foundation.cluster.site import require_known_lists, unknown_in_lists
from ..._foundation.cluster.state import ClusterState, VmRow, cluster_state_of, with_names
from ..._foundation.cluster.storages.contents import read_volumes
from ..._foundation.core.errors import FleetError, NotSupported
from ..._foundation.core.parallel import side_by_side
from ..._guests.fleet.items import Estate
from ..._guests.guest.context import TaskSettings
from ..._guests.guest.live.read import read_wherever
from ..._guests.guest.registry import list_of
from ..._guests.kinds.model import Actual
from ..._guests.kinds.words import TYPES, contents_of, kind_of_row
from ..._infrastructure.facts.cluster_info import run as read_cluster
from ..._infrastructure.facts.node_info import run as read_nodes
from ..._infrastructure.facts.partial_read import PartialRead
from ..._protection.backup.job.coverage import jobs_by_guest, named_jobs
from ..._protection.snapshot.read import tree_of
from ..drift.model import DriftReading, DriftScope
from ..drift.read_site import read_site
from .backups import CopySummary, read_backups
from .model import ReportOptions, Row, SiteReading, VmReading
from .reach import read_reach

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_READERS = 16
_FAILED_TASKS = 50


def read_report_site(
    client: Client,
    names: Collection[str],
    wanted: ReportOptions,
    estate: Estate | None,
    scope: DriftScope | None,
) -> SiteReading:
    """Return the reading of a site for the report.

    Two requests for each guest, five more for one on a VNet of a tenant, two for each storage on a
    node (three with containers), three for each node, and ten more. With an estate, its VMs are
    compared from the same answers. If the site cannot be read, the reading has only the reason.
    """
    site = max(names, default="")
    reader = CachingReader.around(client)
    drift: DriftReading | None = None
    if scope is not None:
        drift = read_site(estate, reader, scope, names)
    now = client.clock.time()
    try:
        return _read_site(reader, site, wanted, drift, now)
    except FleetError as error:
        return SiteReading(site, now, reason=error.message, drift=drift)


def _read_site(
    client: Client, site: str, wanted: ReportOptions, drift: DriftReading | None, now: float
) -> SiteReading:
    """Return the reading of a site. Raises FleetError if the listing cannot be read."""
    rows = client.get("cluster", "resources", attempted="Could not read the cluster")
    whole = cluster_state_of(rows, TYPES)
    require_known_lists(unknown_in_lists(client, whole))
    state = without_copies(_own_part(client, whole))
    state = with_names(client, state, missing=True)
    facts = {**wanted.facts}
    if facts.get("max_vms_per_node") is None:
        facts["max_vms_per_node"] = client.connection.max_vms_per_node
    of_nodes = read_nodes({**facts, "details": True}, client).values
    of_cluster = read_cluster({**facts, "failed_tasks": _FAILED_TASKS}, client).values["cluster"]
    read = PartialRead(client)
    granted = read.read("privileges of the login", "access", "permissions")
    held = None if granted is None else Privileges(granted)
    contents = contents_of(state.vms.values())
    volumes = read.attempt("disks on storages", lambda: read_volumes(client, state, contents))
    rows = [row for _vmid, row in sorted(state.vms.items()) if not row.template]
    backups: Mapping[int, CopySummary | FleetError] | None = None
    if held is not None:  # otherwise it is unknown which backups are hidden
        backups = read.attempt("backups", partial(read_backups, client, state, rows, held))
    guests = _guests(client, state, rows, addresses=wanted.addresses)
    answer = read.read("backup jobs", "cluster", "backup")
    jobs = None if answer is None else jobs_by_guest(named_jobs(answer), rows)
    zones, vnets = _networks(read, client)
    reach = None
    if vnets is not None:
        reach = read.attempt("firewalls", partial(read_reach, client, guests, vnets))
    missing = [*of_nodes["missing"], *of_cluster["missing"], *read.missing]
    by_part = {str(entry["part"]): entry for entry in reversed(missing)}
    return SiteReading(
        site=site,
        time=now,
        state=state,
        known_nodes=whole.nodes,
        cluster=_own_storages(client, of_cluster),
        nodes=[row for row in of_nodes["nodes"] if _is_own(client, row["node"])],
        missing=[by_part[part] for part in sorted(by_part)],
        guests=guests,
        backups=backups or {},
        volumes=volumes,
        privileges=held,
        drift=drift,
        jobs=jobs,
        zones=zones,
        vnets=vnets,
        reach=reach,
    )


def _networks(
    read: PartialRead, client: Client
) -> tuple[Sequence[Row] | None, Sequence[Row] | None]:
    """Return zones and VNets, None without SDN, which is optional before Proxmox VE 8.1."""
    try:
        zones = client.get("cluster", "sdn", "zones")
    except NotSupported:
        return None, None
    except FleetError as error:
        read.add("networks", error)
        return None, None
    return zones, read.read("networks", "cluster", "sdn", "vnets")


def _is_own(client: Client, node: str) -> bool:
    """Return whether the site uses a node of its cluster."""
    own = client.connection.own_nodes
    return not own or node in own


def _own_part(client: Client, state: ClusterState) -> ClusterState:
    """Return the state with only the guests, nodes and storages that the site uses."""
    own_storages = client.connection.own_storages
    vms = {vmid: row for vmid, row in state.vms.items() if _is_own(client, row.node)}
    nodes = {name: row for name, row in state.nodes.items() if _is_own(client, name)}
    storages = [row for row in state.storages if _is_own(client, row.node)]
    if own_storages:
        storages = [row for row in storages if row.storage in own_storages]
    return replace(state, vms=vms, nodes=nodes, storages=tuple(storages))


def _own_storages(client: Client, cluster: Row) -> Row:
    """Return the facts of a cluster with only the storages that the site uses."""
    own = client.connection.own_storages
    if not own:
        return cluster
    storages = [row for row in cluster["storages"] if row["storage"] in own]
    return {**cluster, "storages": storages}


def _guests(
    client: Client, state: ClusterState, rows: Sequence[VmRow], *, addresses: bool
) -> list[VmReading]:
    """Return the guests as read; a guest on an offline node has the reason instead."""
    offline = {name for name, node in state.nodes.items() if not node.online}

    def read_one(row: VmRow) -> VmReading:
        if row.node in offline:
            return VmReading(row, reason=f"node {row.node} is offline")
        kind, place = kind_of_row(row), (row.vmid, row.node)
        try:
            actual = read_wherever(client, kind, *place, status=row.status, pool=row.pool)
            snapshots = client.get(*actual.path, "snapshot")
        except FleetError as error:
            failed = error.on(attempted=f"{kind.noun} {row.vmid} could not be read")
            return VmReading(row, reason=failed.message)
        address = _address(client, actual) if addresses else None
        return VmReading(row, actual, tuple(tree_of(snapshots).by_age()), address=address)

    return side_by_side(read_one, rows, _READERS)


def _address(client: Client, actual: Actual) -> str | None:
    flow = list_of(actual.kind.type).flow
    report = flow.guest_report(client, actual, TaskSettings(addresses=True), waits=False)
    address: str | None = report["address"]
    return address
