# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks of a tenant as options of module sdn, with free tags from their ranges (pure)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.errors import ConfigurationError, Conflict, ValidationFailed
from ...._foundation.core.marks import marked_tag, with_mark, without_mark
from ...._infrastructure.sdn.model import SUBNETS, VNETS, ZONES, SdnEntry, Section, Sections
from ...._infrastructure.sdn.preconditions import network_of
from ...firewall.evaluate.model import Network
from .model import NONE, TenantNetwork, TenantNetworking

_ONE_SPACE = ("vxlan", "evpn")


def vnets_of(tag: str, running: Sections) -> dict[str, SdnEntry]:
    """Return the VNets that were created for a tenant."""
    found = running[VNETS].items()
    return {name: entry for name, entry in found if marked_tag(entry.get("alias")) == tag}


def owners_of(vnets: Section) -> dict[str, str]:
    """Return the tags of tenants, by VNet."""
    tags = {name: marked_tag(entry.get("alias")) for name, entry in vnets.items()}
    return {name: tag for name, tag in tags.items() if tag is not None}


def name_of(entry: SdnEntry) -> str:
    """Return the network name of a VNet."""
    return without_mark(entry.get("alias"))


def params_of(networks: Iterable[TenantNetwork], tag: str, running: Sections) -> dict[str, Any]:
    """Return the options of module sdn. Raises FleetError for an unusable VNet, zone or tag."""
    vnets: list[dict[str, Any]] = []
    subnets: list[dict[str, Any]] = []
    taken = dict(running[VNETS])
    for network in networks:
        _require_own(network, tag, running)
        if not network.is_wanted:
            vnets.append({"name": network.vnet, "state": "absent"})
            subnets += absent_subnets(network.vnet, running)
            continue
        vnet = _vnet(network, tag, running, taken)
        vnets.append(vnet)
        entry = {"zone": network.zone, **({"tag": str(vnet["tag"])} if "tag" in vnet else {})}
        taken[network.vnet] = entry
        subnets += absent_subnets(network.vnet, running, but=network.subnet)
        if network.subnet:
            subnets.append({"cidr": network.subnet, "vnet": network.vnet, **network.settings})
    return {VNETS: vnets, SUBNETS: subnets}


def removal_of(vnets: Iterable[str], running: Sections) -> dict[str, Any]:
    """Return the options of module sdn that remove VNets with their subnets."""
    names = sorted(vnets)
    subnets: list[dict[str, Any]] = []
    for name in names:
        subnets += absent_subnets(name, running)
    return {VNETS: [{"name": name, "state": "absent"} for name in names], SUBNETS: subnets}


def absent_subnets(vnet: str, running: Sections, but: str = "") -> list[dict[str, Any]]:
    """Return the removal of all subnets of a VNet except `but`."""
    rows: list[dict[str, Any]] = []
    for name, entry in running[SUBNETS].items():
        _zone, address, length = name.split("-", 2)
        cidr = str(ipaddress.ip_network(f"{address}/{length}"))
        if entry.get("vnet") == vnet and cidr != but:
            rows.append({"cidr": cidr, "vnet": vnet, "state": "absent"})
    return rows


def _require_own(network: TenantNetwork, tag: str, running: Sections) -> None:
    """Raise Conflict if a VNet without the tenant's mark has the ID of the network."""
    entry = running[VNETS].get(network.vnet)
    if entry is not None and marked_tag(entry.get("alias")) != tag:
        raise Conflict(
            f"Network '{network.name}' was refused: VNet '{network.vnet}' exists without the mark "
            "of the tenant in its alias",
            "Remove the VNet, or use another name for the network",
            "not marked",
        )


def _vnet(
    network: TenantNetwork, tag: str, running: Sections, taken: Mapping[str, SdnEntry]
) -> dict[str, Any]:
    zone = running[ZONES].get(network.zone)
    if zone is None:
        known = ", ".join(sorted(running[ZONES])) or "no zone"
        raise ConfigurationError(
            f"Network '{network.name}' was refused: there is no zone '{network.zone}'; the "
            f"cluster has {known}{did_you_mean(network.zone, running[ZONES])}",
            "Create the zone with module sdn",
            "unknown zone",
        )
    alias = with_mark(network.name, tag)
    row = {"name": network.vnet, "zone": network.zone, "alias": alias}
    if zone.get("type") != "simple":
        row["tag"] = str(_tag(network, running, taken))
    return row


def _tag(network: TenantNetwork, running: Sections, taken: Mapping[str, SdnEntry]) -> int:
    """Return the tag of the network, or the first free tag in its range."""
    present = running[VNETS].get(network.vnet, {})
    if network.tag is not None:
        return network.tag
    if present.get("tag") and present.get("zone") == network.zone:
        return int(present["tag"])
    if network.tag_range is None:
        raise ValidationFailed(
            f"Network '{network.name}' was refused: a VNet of zone '{network.zone}' needs a tag",
            "Set tag, or tag_range to the first and the last tag to choose from",
            "networks",
        )
    first, last = network.tag_range
    used = tags_in_use(network.zone, running, taken)
    for number in range(first, last + 1):
        if number not in used:
            return number
    raise Conflict(
        f"Network '{network.name}' was refused: each tag from {first} to {last} of zone "
        f"'{network.zone}' is in use",
        "Widen tag_range",
        "no free tag",
    )


def tags_in_use(zone: str, running: Sections, vnets: Mapping[str, SdnEntry]) -> set[int]:
    """Return the tags that a new VNet of a zone cannot have.

    All VXLAN and EVPN zones share one range of tags with the VRFs of EVPN (pve-network:
    PVE/Network/SDN/Zones/VxlanPlugin.pm, vnet_update_hook).
    """
    zones = running[ZONES]
    is_shared = zones[zone].get("type") in _ONE_SPACE
    used: set[int] = set()
    for entry in vnets.values():
        other = entry.get("zone", "")
        is_in_space = other == zone or (
            is_shared and zones.get(other, {}).get("type") in _ONE_SPACE
        )
        if is_in_space and entry.get("tag"):
            used.add(int(entry["tag"]))
    if is_shared:
        used |= {int(one["vrf-vxlan"]) for one in zones.values() if one.get("vrf-vxlan")}
    return used


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
                    f"Subnet {subnet} was refused: it overlaps {theirs} of another tenant, and "
                    "rules name addresses",
                    "Choose another subnet, or set isolation: none",
                    "overlap",
                )


def require_distinct(networking: TenantNetworking, tag: str, running: Sections) -> None:
    """Raise Conflict for a subnet that overlaps a subnet on a VNet of another tenant.

    A run that holds the SDN lock sees the subnets of all earlier runs here. The IP sets of the
    firewall, which have no lock, may not contain them yet.
    """
    if networking.isolation == NONE:
        return
    owners = owners_of(running[VNETS])
    others = [
        str(network_of(name))
        for name, entry in running[SUBNETS].items()
        if owners.get(entry.get("vnet", ""), tag) != tag
    ]
    require_no_overlap(networking.subnets, others)
