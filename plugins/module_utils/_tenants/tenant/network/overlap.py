# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses subnets that overlap a subnet of another tenant: rules match addresses (pure)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from ...._foundation.core.errors import Conflict
from ...._infrastructure.sdn.model import SUBNETS, VNETS, Sections
from ...._infrastructure.sdn.preconditions import network_of
from ...firewall.evaluate.model import Network
from .model import NONE, TenantNetworking
from .sdn import owners_of


def member_network(member: str) -> Network | None:
    """Return the network of an IP set member, or None for an alias or a range."""
    try:
        return ipaddress.ip_network(member, strict=False)
    except ValueError:
        return None


def require_no_overlap(subnets: Iterable[str], others: Iterable[str]) -> None:
    """Raise Conflict for a subnet that overlaps a member of an IP set."""
    foreign = [network for network in map(member_network, sorted(others)) if network is not None]
    for subnet in sorted(subnets):
        mine = ipaddress.ip_network(subnet)
        for theirs in foreign:
            if mine.version == theirs.version and mine.overlaps(theirs):
                raise Conflict(
                    attempted=f"Subnet {subnet} was refused",
                    answer=f"it overlaps {theirs} of another tenant, and rules name addresses",
                    next_step="Choose another subnet, or set isolation: none",
                    reason="overlap",
                )


def require_distinct(networking: TenantNetworking, tag: str, running: Sections) -> None:
    """Raise Conflict for a subnet that overlaps a subnet on a VNet of another tenant.

    A run that holds the SDN lock sees the subnets of all earlier runs here. The IP sets of the
    firewall, which have no lock, may not contain them yet.
    """
    if networking.isolation == NONE:
        return
    require_no_overlap(networking.subnets, _subnets_of_others(tag, running))


def _subnets_of_others(tag: str, running: Sections) -> list[str]:
    owners = owners_of(running[VNETS])
    return [
        str(network_of(name))
        for name, entry in running[SUBNETS].items()
        if owners.get(entry.get("vnet", ""), tag) != tag
    ]
