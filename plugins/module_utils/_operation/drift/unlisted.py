# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests that the estate does not describe, and nodes that hide their guests (pure)."""

from __future__ import annotations

from collections.abc import Collection

from ..._foundation.cluster.drill.copies import is_marked
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.cluster.tenant import owns, tenant_of, tenant_tag
from ..._guests.kinds.words import kind_name
from .model import OfflineNode, UnlistedGuest


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
