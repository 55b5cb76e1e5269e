# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the VM of a name or VMID, in the listing and, where that lags, on the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.errors import Conflict
from .lookup import find_vm
from .state import ClusterState, VmRow, ask_nodes, with_names
from .tenant import PREFIX

if TYPE_CHECKING:
    from .._api.client import Client


def locate(
    client: Client,
    cluster: ClusterState,
    *,
    vmid: int | None = None,
    name: str | None = None,
    tenant_tag: str | None = None,
    prefix: str = PREFIX,
    certain: bool = False,
) -> tuple[VmRow | None, ClusterState]:
    """Return the row of a VM, or None where there is none, and the cluster state that says so.

    A name that the listing does not have, or has more than once, is asked of the nodes: the listing
    can show a VM under the name of a removed one. `certain` asks also the node of a VM that the
    listing has, for callers that do not read its configuration before they act. Raises Conflict
    where a name means several VMs.
    """

    def search(seen: ClusterState) -> VmRow | None:
        return find_vm(
            seen,
            vmid=vmid,
            name=name,
            tenant_tag=tenant_tag,
            prefix=prefix,
        )

    try:
        row = search(cluster)
    except Conflict:
        row = None
    if vmid is not None:
        return row, cluster
    if row is not None and certain and row.node not in cluster.asked:
        cluster = ask_nodes(client, cluster, {row.node})
        row = cluster.vms.get(row.vmid)
        if row is not None and row.name != name:
            row = None
    if row is not None:
        return row, cluster
    cluster = with_names(client, cluster)
    return search(cluster), cluster
