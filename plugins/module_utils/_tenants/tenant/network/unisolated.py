# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds guests of a tenant that are not isolated yet.

Existing guests are not changed here: isolation sets their policy to DROP, which can cut off their
users. The next task that lists the NICs of a guest isolates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...._foundation.cluster.tenant import group_name, owns
from ...._foundation.core.errors import FleetError
from ...._foundation.core.parallel import side_by_side
from ...._guests.guest.isolation import is_isolated
from ...._guests.kinds.model import Actual, GuestIsolation
from ...firewall.reach.read import nics_of
from ..facts import TenantFacts, read_guests
from ..model import Tenant
from .model import NONE

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def find_unisolated(tenant: Tenant, facts: TenantFacts, client: Client) -> list[Actual]:
    """Return the guests on VNets of the tenant that are not isolated, or cannot be checked.

    One request for each guest of the tenant, and about four for each guest on its VNets.
    """
    networking = tenant.networking
    if networking is None or networking.isolation == NONE:
        return []
    vnets = frozenset(network.vnet for network in networking.wanted)
    rows = [
        row
        for row in facts.of_both_kinds.vms.values()
        if owns(tenant.tag, row.tags, tenant.prefix) and not row.template
    ]
    guests, _unread = read_guests(client, rows)
    own = [one for one in guests.values() if vnets & set(_bridges(one).values())]
    open_ones = side_by_side(lambda one: _is_open(one, tenant, vnets, client), own)
    return [one for one, is_open in zip(own, open_ones, strict=True) if is_open]


def _bridges(actual: Actual) -> dict[str, str]:
    return dict(actual.kind.bridges_in(actual.target))


def _is_open(actual: Actual, tenant: Tenant, vnets: frozenset[str], client: Client) -> bool:
    isolation, is_filtered = isolation_of_guest(actual, tenant.tag, vnets)
    if not is_filtered:
        return True
    try:
        return not is_isolated(client, isolation, actual)
    except FleetError:
        return True


def isolation_of_guest(
    actual: Actual, tag: str, vnets: frozenset[str]
) -> tuple[GuestIsolation, bool]:
    """Return the isolation that a guest needs, and whether these NICs have the firewall on."""
    bridges = _bridges(actual)
    nics = [nic for nic in nics_of(actual.target) if bridges.get(nic.name) in vnets]
    members: dict[str, tuple[str, ...]] = {}
    for nic in nics:  # it may use its static addresses, or else the subnet of its VNet
        own = tuple(address.lower() for address in nic.addresses)
        members[nic.name] = own or (f"dc/{bridges[nic.name]}",)
    return GuestIsolation(group_name(tag), members, {}), all(nic.is_filtered for nic in nics)


def warnings_of(guests: list[Actual]) -> list[str]:
    """Return the warning about guests that are not isolated (pure)."""
    if not guests:
        return []
    labels = ", ".join(one.label for one in guests)
    return [f"Not isolated yet: {labels}. A task that lists their NICs isolates them"]
