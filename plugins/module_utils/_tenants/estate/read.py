# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The selection of the VMs of an export, and their reading. Writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.drill.copies import is_marked
from ..._foundation.cluster.find.visible import is_in_use
from ..._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state, query_nodes
from ..._foundation.cluster.tenant import PREFIX, owns, tenant_of, tenant_tag
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import AuthenticationError, FleetError, NotFound, PermissionDenied
from ..._foundation.core.parallel import side_by_side
from ..._foundation.core.quantities import whole_number
from ..._guests.guest.live.read import read_wherever
from ..._guests.kinds.model import Actual
from ..._guests.kinds.words import CONTAINER, TYPES, VM, kind_of_row
from .model import UnreadNode, UnreadVm

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_AUDIT = "VM.Audit"
_ALL_VMS = "/vms"


@dataclass(frozen=True)
class ExportScope:
    """The filters of a task; without filters all VMs are chosen.

    `tenant` is a tag. `names` are names and VMIDs as texts.
    """

    tenant: str | None = None
    prefix: str = PREFIX
    pool: str | None = None
    tags: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    templates: bool = True

    def chosen(self, cluster: ClusterState) -> list[VmRow]:
        """Return the VMs that match the filters, sorted by VMID."""
        rows = map(cluster.vms.get, sorted(cluster.vms))
        return [row for row in rows if row is not None and self._includes(row)]

    def _includes(self, row: VmRow) -> bool:
        if row.template and not self.templates:
            return False
        if is_marked(row.tags):
            return False
        if self.pool not in (None, row.pool):
            return False
        if not owns(self.tenant, row.tags, self.prefix):
            return False
        if not self.tags.issubset(map(str.lower, row.tags)):
            return False
        if not self.names:
            return True
        return not {row.own_name, str(row.vmid)}.isdisjoint(self.names)

    @property
    def vmids(self) -> list[int]:
        """The VMIDs among the names."""
        vmids = map(whole_number, self.names)
        return list(filter(None, vmids))

    @property
    def label(self) -> str:
        """The filters as the text of a comment, empty without filters."""
        parts: list[str] = []
        if self.tenant:
            parts.append(f"with the tag {self.tenant}")
        if self.pool is not None:
            parts.append(f"in the pool {self.pool}")
        if self.tags:
            tags = ", ".join(sorted(self.tags))
            parts.append(f"with the tags {tags}")
        if self.names:
            names = ", ".join(self.names)
            parts.append(f"named {names}")
        if not self.templates:
            parts.append("without templates")
        return ", ".join(parts)


def read_scope(params: Mapping[str, Any]) -> ExportScope:
    """Return the filters. Raises ValidationFailed."""
    prefix = params["tenant_prefix"]
    tenant = None
    if params.get("tenant"):
        tag = tenant_tag(params["tenant"], prefix)
        tenant = validate.tag(tag, "tenant")
    pool = params.get("pool")
    if pool is not None:
        validate.pool(pool)
    tags = map(validate.tag, params.get("tags") or ())
    return ExportScope(
        tenant=tenant,
        prefix=prefix,
        pool=pool,
        tags=frozenset(tags),
        names=_names(params.get("vms")),
        templates=params["templates"],
    )


def _names(given: Iterable[Any] | None) -> tuple[str, ...]:
    """Return the names of VMs. Raises ValidationFailed for an empty list or an empty name."""
    if given is None:
        return ()
    names = [str(one).strip() for one in given]
    if not names or "" in names:
        step = "Name the VMs, or leave it out to export all of them"
        raise validate.refused("vms", names, "names no VM", step)
    return tuple(dict.fromkeys(names))


def require_exists(
    scope: ExportScope, cluster: ClusterState, rows: Iterable[VmRow], hidden: Collection[int]
) -> None:
    """Raise NotFound for a name that no VM of the export has.

    `hidden` are the VMIDs of existing VMs that the caller may not see.
    """
    found = set(map(str, hidden))
    for row in rows:
        found.update((row.own_name, str(row.vmid)))
    for name in scope.names:
        if name not in found:
            names = {
                row.own_name for row in cluster.guests if owns(scope.tenant, row.tags, scope.prefix)
            }
            raise NotFound(
                f"VM {name} could not be exported: no VM of that name or number is visible and "
                f"matches the other filters{did_you_mean(name, names - {''})}",
                "Check vms, the other filters, and that the login has VM.Audit on the VM",
                "unknown VM",
            )


def choose(client: Client, scope: ExportScope) -> tuple[ClusterState, list[VmRow], list[UnreadVm]]:
    """Return the cluster state, the VMs of the export by VMID, and the VMs hidden from the caller.

    One request for the listing, one for each node with VMs and one for each with containers.
    Raises NotFound for a named VM that does not exist.
    """
    cluster = fetch_cluster_state(client)
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
    offline = [name for name in concerned & cluster.nodes.keys() if not cluster.nodes[name].online]
    return [UnreadNode(name, f"node {name} is offline") for name in sorted(offline)]


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
    if scope.pool not in cluster.pools:
        return hidden
    # a pool lists its VMs that the caller may not see, too
    for row in client.get("pools", poolid=str(scope.pool)):
        for member in row.get("members", ()):
            if member.get("type") in TYPES and int(member["vmid"]) not in cluster.taken:
                hidden.add(int(member["vmid"]))
    return hidden


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
