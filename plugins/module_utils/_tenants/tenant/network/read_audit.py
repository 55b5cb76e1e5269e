# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the networks of tenants, and the firewalls of their guests, for an audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...._foundation.cluster.state import VmRow
from ...._foundation.cluster.tenant import tenants_of
from ...._foundation.core.errors import FleetError, NotFound, NotSupported
from ...._foundation.core.marks import marked_tag
from ...._foundation.core.parallel import side_by_side
from ...._guests.kinds.words import kind_of_row, label_of
from ...._infrastructure.sdn.model import VNETS
from ...._infrastructure.sdn.read import read_sdn
from ...firewall.evaluate.model import FirewallCluster
from ...firewall.reach.read import read_cluster, read_cluster_firewall, read_guest
from ...firewall.read import groups_of
from ...firewall.rules.model import Rule
from ...firewall.scope import GUEST, ROOT, FirewallScope
from ..audit import UNKNOWN, AuditFinding
from ..facts import TenantFacts
from .audit import NetworkView, TenantGuest, find_network_faults
from .model import TenantNetworking
from .sdn import owners_of

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def audit_networks(
    client: Client, facts: TenantFacts, prefix: str, described: Mapping[str, TenantNetworking]
) -> list[AuditFinding]:
    """Return the findings about networks; guests are read only if a tenant has VNets or groups.

    Four requests if no tenant has any; otherwise about five more for each guest with exactly one
    tenant.
    """
    try:
        groups = _by_tag(groups_of(client.get(*ROOT, "groups")))
        vnets = owners_of(read_sdn(client).running[VNETS])
        if not groups and not vnets:
            return []
        firewall = read_cluster_firewall(client)
    except NotSupported:
        return []
    except FleetError as error:
        return [AuditFinding(UNKNOWN, None, "networks", error.message)]
    tags = {*groups, *vnets.values()}
    rows = [row for row in facts.of_both_kinds.vms.values() if _owner(row, prefix)]
    found = side_by_side(
        lambda row: _read(client, row, prefix), [row for row in rows if tags and not row.template]
    )
    guests = tuple(one for one in found if isinstance(one, TenantGuest))
    errors = [one for one in found if isinstance(one, AuditFinding)]
    rules = [Rule("group", name) for name in groups.values()]
    rules += [rule for one in guests for rule in one.guest.firewall.rules]
    cluster: FirewallCluster = read_cluster(client, firewall, rules)
    view = NetworkView(cluster, vnets, groups, guests, prefix, described)
    return [*errors, *find_network_faults(view)]


def _by_tag(groups: Mapping[str, str]) -> dict[str, str]:
    """Return the security groups of tenants by tag (pure)."""
    tags = {name: marked_tag(comment) for name, comment in groups.items()}
    return {tag: name for name, tag in tags.items() if tag is not None}


def _owner(row: VmRow, prefix: str) -> str | None:
    owners = tenants_of(row.tags, prefix)
    return owners[0] if len(owners) == 1 else None


def _read(client: Client, row: VmRow, prefix: str) -> TenantGuest | AuditFinding | None:
    """Return a guest, a finding if it could not be read, or None if it is gone."""
    label = label_of(row)
    try:
        config = client.get(*row.path, "config")
        scope = FirewallScope(GUEST, label, (*row.path, "firewall"))
        guest = read_guest(client, scope, config)
    except NotFound:
        return None
    except FleetError as error:
        text = f"{label} could not be checked: {error.message}"
        return AuditFinding(UNKNOWN, None, str(row.vmid), text)
    bridges = kind_of_row(row).bridges_in(config)
    return TenantGuest(row.vmid, label, str(_owner(row, prefix)), guest, bridges)
