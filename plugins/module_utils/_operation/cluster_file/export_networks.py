# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SDN and the firewalls of a cluster as sections of a cluster file.

The VNets, names and security groups of tenants are left out, and so is the isolation of their
guests: the estate has them. Fabrics with a protocol that module sdn does not manage are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.cluster.state import VmRow, fetch_cluster_state
from ..._foundation.cluster.tenant import EVERY_TENANT
from ..._foundation.core.errors import NotSupported
from ..._foundation.core.marks import marked_tag
from ..._foundation.core.parallel import side_by_side
from ..._infrastructure.sdn.forms import view_of as sdn_view
from ..._infrastructure.sdn.model import DNS, FABRIC_NODES, FABRICS, IPAMS, SUBNETS, VNETS, Sections
from ..._infrastructure.sdn.plan import BUILT_IN, unmanaged_fabrics
from ..._infrastructure.sdn.read import read_sdn, with_servers
from ..._tenants.firewall.isolation import without_isolation
from ..._tenants.firewall.model import view_of as firewall_view
from ..._tenants.firewall.read import groups_of, read_firewall, vnets_of
from ..._tenants.firewall.scope import (
    CLUSTER,
    GROUP,
    GUEST,
    NODE,
    ROOT,
    VNET,
    FirewallScope,
    plain_scope,
)
from .declared import ExportedSection, without_default

_SERVERS_WITH_SECRET = {IPAMS: ("token", ("netbox", "phpipam")), DNS: ("key", ("powerdns",))}


# -- SDN -----------------------------------------------------------------------------------------


def export_sdn(_nodes: Sequence[str], client: Client) -> ExportedSection:
    """Return the objects of SDN; none if Proxmox VE has no SDN. One request for each VNet."""
    try:
        reading = with_servers(client, read_sdn(client, subnets=True))
    except NotSupported:
        return ExportedSection([], [])
    running = reading.running
    found: dict[str, Any] = {}
    for kind, rows in sdn_view(_without_tenants(running)).items():
        kept = [row for row in rows if row.get("name") not in BUILT_IN.get(kind, ())]
        if kept:
            found[kind] = kept
    secrets: list[str] = []
    for kind, (option, types) in _SERVERS_WITH_SECRET.items():
        servers = running.get(kind, {}).items()
        secrets += [f"{name}: {option}" for name, entry in servers if entry.get("type") in types]
    return ExportedSection([found] if found else [], secrets)


def _without_tenants(running: Sections) -> Sections:
    own = {name for name, entry in running[VNETS].items() if marked_tag(entry.get("alias"))}
    vnets = {name: entry for name, entry in running[VNETS].items() if name not in own}
    subnets = {
        name: entry for name, entry in running[SUBNETS].items() if entry.get("vnet") not in own
    }
    return {**running, VNETS: vnets, SUBNETS: subnets, **_managed_fabrics(running)}


def _managed_fabrics(running: Sections) -> Sections:
    """Return the fabrics with a managed protocol and their nodes; nothing before Proxmox VE 9."""
    if FABRICS not in running:
        return {}
    others = unmanaged_fabrics(running)
    fabrics = {name: one for name, one in running[FABRICS].items() if name not in others}
    nodes = {
        name: one
        for name, one in running[FABRIC_NODES].items()
        if one.get("fabric_id") not in others
    }
    return {FABRICS: fabrics, FABRIC_NODES: nodes}


# -- firewall ------------------------------------------------------------------------------------


def export_firewall(nodes: Sequence[str], client: Client) -> ExportedSection:
    """Return the firewalls of the cluster, its groups, nodes, VNets, and guests on these nodes.

    Two requests for each node and VNet, four for each guest, one for each group and IP set.
    """
    groups = groups_of(client.get(*ROOT, "groups"))
    own = sorted(name for name in groups if marked_tag(groups[name]) is None)
    wanted: list[tuple[FirewallScope, str | int]] = [(plain_scope(CLUSTER, None), "")]
    vnets = sorted(vnets_of(client))
    for kind, names in ((GROUP, own), (NODE, nodes), (VNET, vnets)):
        wanted += [(plain_scope(kind, name), name) for name in names]
    of_tenants = frozenset(groups) - frozenset(own)
    for row in _guests(client, nodes):
        path = (*row.path, "firewall")
        scope = FirewallScope(GUEST, f"guest {row.vmid}", path, tenant_groups=of_tenants)
        wanted.append((scope, row.vmid))
    found = side_by_side(partial(_read, client), wanted)
    items = [one for one in found if one is not None]
    return ExportedSection(items, [], tuple(_notes_on_new_vnets(client, vnets)))


def _notes_on_new_vnets(client: Client, running: Collection[str]) -> Iterator[str]:
    """Yield a sentence about each VNet that is not applied: it has no firewall yet."""
    try:
        rows = client.get("cluster", "sdn", "vnets") or ()
    except NotSupported:
        return
    for name in sorted(str(row["vnet"]) for row in rows):
        if name not in running:
            yield f"the firewall of VNet {name}: the VNet is pending, so it has none yet"


def _guests(client: Client, nodes: Collection[str]) -> list[VmRow]:
    rows = fetch_cluster_state(client).vms
    return [row for _vmid, row in sorted(rows.items()) if row.node in nodes]


def _read(client: Client, wanted: tuple[FirewallScope, str | int]) -> dict[str, Any] | None:
    """Return a scope as an item, None for a scope with only defaults or without a firewall."""
    scope, subject = wanted
    try:
        firewall = read_firewall(client, scope)
    except NotSupported:
        return None
    names = firewall.aliases.items()
    aliases = {name: one for name, one in names if marked_tag(one[1]) is None}
    sets = {
        name: one
        for name, one in firewall.ip_sets.items()
        if name != EVERY_TENANT and marked_tag(one.comment) is None
    }
    own = without_isolation(replace(firewall, aliases=aliases, ip_sets=sets), scope.tenant_groups)
    settings = without_default(firewall_view(scope, own), {})
    if not settings and scope.kind != GROUP:
        return None
    key = "vmid" if scope.kind == GUEST else scope.kind
    place = {key: subject} if subject else {}
    return {"scope": scope.kind, **place, **(settings or {})}
