# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the VM of a name or VMID, in the listing and, if that lags, on the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.errors import Conflict
from ..state import ClusterState, VmRow, query_nodes, with_names
from ..tenant import PREFIX
from .lookup import find_vm

if TYPE_CHECKING:
    from ...api.client import Client


def locate(
    client: Client,
    cluster: ClusterState,
    *,
    vmid: int | None = None,
    name: str | None = None,
    tenant_tag: str | None = None,
    prefix: str = PREFIX,
) -> tuple[VmRow | None, ClusterState]:
    """Return the row of a VM, None if it does not exist, and the cluster state that was searched.

    If the listing lacks the name, or shows it more than once, the nodes are asked: the listing can
    show a VM under the name of a removed VM. Raises Conflict if several VMs have the name.
    """

    def search(state: ClusterState) -> VmRow | None:
        return find_vm(state, vmid=vmid, name=name, tenant_tag=tenant_tag, prefix=prefix)

    try:
        row = search(cluster)
    except Conflict:
        row = None
    if row is not None or vmid is not None:
        return row, cluster
    cluster = with_names(client, cluster)
    return search(cluster), cluster


def locate_by_name(
    client: Client, cluster: ClusterState, name: str, tenant_tag: str | None, prefix: str
) -> tuple[VmRow | None, ClusterState]:
    """Return the same for a name, after the node of the VM has confirmed it.

    For callers that do not read the configuration of the VM before they act. If the VM has been
    given to another tenant since the listing, its row is returned, and the caller refuses it.
    """
    chosen: dict[str, Any] = {"name": name, "tenant_tag": tenant_tag, "prefix": prefix}
    row, cluster = locate(client, cluster, **chosen)
    if row is None or row.node in cluster.queried_nodes:
        return row, cluster
    cluster = query_nodes(client, cluster, {row.node})
    confirmed = cluster.vms.get(row.vmid)
    if confirmed is not None and confirmed.name == name:
        return confirmed, cluster
    return locate(client, cluster, **chosen)
