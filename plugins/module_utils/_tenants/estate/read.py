# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the VMs of an export. It decides nothing and writes nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from ..._foundation.cluster.find.visible import is_in_use
from ..._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state, query_nodes
from ..._foundation.cluster.tenant import tenant_of
from ..._foundation.core.errors import AuthenticationError, FleetError, NotFound, PermissionDenied
from ..._foundation.core.parallel import side_by_side
from ..._guests.guest.live.read import read_wherever
from ..._guests.kinds.model import Actual
from ..._guests.kinds.words import CONTAINER, TYPES, VM, kind_of_row
from .model import UnreadNode, UnreadVm
from .scope import ExportScope, require_exists

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_AUDIT = "VM.Audit"
_ALL_VMS = "/vms"


def choose(client: Client, scope: ExportScope) -> tuple[ClusterState, list[VmRow], list[UnreadVm]]:
    """Return the cluster state, the VMs of the export by VMID, and the VMs hidden from the caller.

    One request for the listing, one for each node with VMs and one for each with containers.
    Raises NotFound for a named VM that does not exist.
    """
    cluster = fetch_cluster_state(client, TYPES)
    concerned = list(cluster.vms.values())
    if not scope.names:
        # a filter by names needs the answers of the nodes
        concerned = scope.chosen(cluster)
    nodes = {row.node for row in concerned}
    cluster = _as_nodes_list(client, cluster, nodes)
    rows = scope.chosen(cluster)
    hidden = _hidden(client, cluster, scope)
    require_exists(scope, cluster, rows, hidden)
    missing = [_hidden_vm(vmid) for vmid in sorted(hidden)]
    return cluster, rows, missing


def _as_nodes_list(client: Client, cluster: ClusterState, nodes: Collection[str]) -> ClusterState:
    """Return the cluster state with the guests as these nodes list them.

    Only VMs have a full power state, such as paused; a container is running or stopped.
    """
    vms = query_nodes(client, _only(cluster, VM.type), nodes, full=True)
    of_containers = _only(cluster, CONTAINER.type)
    on_nodes = {row.node for row in of_containers.vms.values()}
    containers = query_nodes(client, of_containers, on_nodes.intersection(nodes))
    rows = dict(vms.vms)
    for vmid, row in containers.vms.items():
        rows[vmid] = replace(row, fresh=row.node in containers.queried_nodes)
    return replace(vms, vms=rows, taken=vms.taken & containers.taken, types=cluster.types)


def _only(cluster: ClusterState, pve_type: str) -> ClusterState:
    """Return the cluster state for work on one kind of guests (pure)."""
    rows = {vmid: row for vmid, row in cluster.vms.items() if row.type == pve_type}
    return replace(cluster, vms=rows, types=frozenset((pve_type,)))


def read_all(
    client: Client, cluster: ClusterState, rows: list[VmRow], prefix: str
) -> list[Actual | UnreadVm]:
    """Return each VM as read, or the reason why it could not be read.

    VMs that were removed in the meantime are omitted. One request for each VM. Raises
    AuthenticationError for rejected credentials.
    """

    def read(row: VmRow) -> Actual | UnreadVm | None:
        node = cluster.nodes.get(row.node)
        if node is not None and not node.online:
            return _missing(row, prefix, f"node {row.node} is offline")
        status = row.status if row.fresh else None
        try:
            kind = kind_of_row(row)
            return read_wherever(client, kind, row.vmid, row.node, status=status, pool=row.pool)
        except NotFound:
            return None
        except AuthenticationError:
            raise
        except PermissionDenied as error:
            privilege = str(error.details.get("privilege", _AUDIT))
            return _missing(row, prefix, error.message, privilege)
        except FleetError as error:
            return _missing(row, prefix, error.message)

    answers = side_by_side(read, rows)
    return list(filter(None, answers))


def _missing(row: VmRow, prefix: str, reason: str, privilege: str = "") -> UnreadVm:
    """Return a VM of the listing that could not be read."""
    tenant, _why = tenant_of(row.tags, prefix)
    acl_path = f"{_ALL_VMS}/{row.vmid}" if privilege else ""
    return UnreadVm(
        vmid=row.vmid,
        name=row.own_name,
        tenant=tenant or "",
        node=row.node,
        reason=reason,
        privilege=privilege,
        acl_path=acl_path,
        type=row.type,
    )


def silent_nodes(cluster: ClusterState, scope: ExportScope, rows: list[VmRow]) -> list[UnreadNode]:
    """Return the nodes that are offline and have VMs of the export, by name.

    The listing shows the VMs of such a node without names, so each may be a VM that the task names
    (pve-manager: PVE/API2Tools.pm, extract_vm_stats).
    """
    concerned = set(cluster.nodes) if scope.names else {row.node for row in rows}
    silent: list[UnreadNode] = []
    for name in sorted(concerned & cluster.nodes.keys()):
        if not cluster.nodes[name].online:
            silent.append(UnreadNode(name, f"node {name} is offline"))
    return silent


def sees_all(client: Client) -> bool:
    """Return whether the caller may read all VMs, False if that is unknown; one request."""
    try:
        granted = client.get("access", "permissions", path=_ALL_VMS)
    except FleetError:
        return False
    return _AUDIT in granted.get(_ALL_VMS, {})


def _hidden(client: Client, cluster: ClusterState, scope: ExportScope) -> set[int]:
    """Return the invisible VMs that are named by their VMID or belong to the pool.

    One request for each VMID that the listing lacks, one for the pool.
    """
    hidden: set[int] = set()
    for vmid in scope.vmids:
        if vmid not in cluster.taken and is_in_use(client, vmid):
            hidden.add(vmid)
    if scope.pool in cluster.pools:
        hidden |= _members(client, str(scope.pool)) - cluster.taken
    return hidden


def _members(client: Client, pool: str) -> set[int]:
    """Return the VMIDs of the VMs in a pool, including VMs that the caller may not see."""
    found: set[int] = set()
    for row in client.get("pools", poolid=pool):
        for member in row.get("members", ()):
            if member.get("type") in TYPES:
                found.add(int(member["vmid"]))
    return found


def _hidden_vm(vmid: int) -> UnreadVm:
    """Return a VM that is not in the listing."""
    path = f"{_ALL_VMS}/{vmid}"
    return UnreadVm(
        vmid=vmid,
        name="",
        tenant="",
        node="",
        reason=f"the login lacks {_AUDIT} on {path}",
        privilege=_AUDIT,
        acl_path=path,
        omitted=True,
    )
