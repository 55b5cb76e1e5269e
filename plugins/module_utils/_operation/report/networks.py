# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Zones, VNets and the guests on them, as the report shows them (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._foundation.core.marks import marked_tag, without_mark
from .model import Row, SiteReading

Place = Mapping[str, list[dict[str, Any]]]


def networks_of(
    reading: SiteReading, guests: Iterable[Row], prefix: str
) -> list[dict[str, Any]] | None:
    """Return the zones of a site with their VNets and guests, None if they could not be read.

    A guest without a readable configuration is on no VNet.
    """
    if reading.zones is None or reading.vnets is None:
        return None
    placed = _placed(reading, guests)
    zones: list[dict[str, Any]] = []
    for row in sorted(reading.zones, key=lambda one: str(one.get("zone"))):
        name = str(row.get("zone"))
        vnets = [one for one in reading.vnets if str(one.get("zone")) == name]
        vnets.sort(key=lambda one: str(one.get("vnet")))
        listed = [_vnet(one, placed, prefix) for one in vnets]
        zones.append({"zone": name, "type": str(row.get("type") or ""), "vnets": listed})
    return zones


def _vnet(row: Row, placed: Place, prefix: str) -> dict[str, Any]:
    name = str(row.get("vnet"))
    tag = row.get("tag")
    owner = marked_tag(row.get("alias"))
    return {
        "vnet": name,
        "name": without_mark(row.get("alias")),
        "tag": None if tag is None else int(tag),
        "tenant": owner.removeprefix(prefix) if owner else "",
        "guests": placed.get(name, []),
    }


def _placed(reading: SiteReading, guests: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    """Return the guests by bridge of their NICs, each guest once for a bridge."""
    known = {guest["vmid"]: guest for guest in guests}
    found: dict[str, list[dict[str, Any]]] = {}
    for one in reading.guests:
        if one.actual is None:
            continue
        guest = known[one.row.vmid]
        described = {key: guest[key] for key in ("kind", "vmid", "tenant")}
        described["name"] = str(guest["name"] or "")
        for bridge in sorted(set(one.actual.kind.bridges_in(one.actual.target).values())):
            found.setdefault(bridge, []).append(described)
    return found
