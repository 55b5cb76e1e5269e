# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VNet and the zone of guests, from their configurations and one request for each site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.core.errors import FleetError
from ..._guests.kinds.words import GUESTS
from .hosts import InventoryGuest

# The prefix of a node's own bridges; a site without other bridges has no VNets to look up.
_BRIDGE = "vmbr"


def add_vnets(
    clients: Mapping[str, Client],
    guests: Sequence[InventoryGuest],
    found: Mapping[str, dict[str, Any]],
    timeout: float,
) -> None:
    """Add the first VNet of each guest, with its zone, to its details as C(vnet).

    One request for each site that has a guest on another bridge than C(vmbrN). Never raises: a VNet
    that the login may not see is not added.
    """
    bridges = {guest.key: _bridges(guest, found[guest.key].get("config") or {}) for guest in guests}
    for site in sorted({guest.site for guest in guests if bridges[guest.key]}):
        zones = _zones(clients[site], timeout)
        for guest in guests:
            known = [one for one in bridges[guest.key] if one in zones]
            if guest.site == site and known:
                found[guest.key]["vnet"] = [known[0], zones[known[0]]]


def _bridges(guest: InventoryGuest, config: Mapping[str, Any]) -> list[str]:
    """Return the bridges of a configuration that may be VNets, in the order of the NICs (pure)."""
    bridges = GUESTS[guest.kind].bridges_in(config).values()
    return [bridge for bridge in bridges if not bridge.startswith(_BRIDGE)]


def _zones(client: Client, timeout: float) -> dict[str, str]:
    """Return the zones of the VNets that the login may see; empty if they cannot be read."""
    try:
        rows = client.get("cluster", "sdn", "vnets", timeout=timeout, tries=1)
    except FleetError:
        return {}
    if not isinstance(rows, list):
        return {}
    listed = [row for row in rows if isinstance(row, Mapping)]
    return {str(row.get("vnet")): str(row.get("zone")) for row in listed}
