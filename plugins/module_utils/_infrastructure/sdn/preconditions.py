# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses invalid changes that Proxmox VE accepts, or refuses only halfway (pure).

Source: pve-network, src/PVE/Network/SDN/Zones/*Plugin.pm, VnetPlugin.pm and SubnetPlugin.pm, and
API2/Network/SDN/Zones.pm.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from itertools import combinations

from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import Conflict, FleetError, PendingChanges
from .fabric_rules import fabric_violations
from .forms import ranges_of, refused
from .model import (
    CONTROLLERS,
    DNS,
    FABRICS,
    IPAMS,
    NOUNS,
    SUBNETS,
    TYPES,
    VNETS,
    ZONES,
    SdnContext,
    SdnEntry,
    Sections,
)

HAVE_AUTHOR = (
    "If another run makes them, run this again when it has ended; otherwise ask their author, and"
    " apply them or roll them back first"
)
_LARGEST_VLAN = 4094
_LARGEST_VXLAN = 16777215
_VLAN, _VXLAN = ("vlan", "qinq"), ("vxlan", "evpn")
_REFERENCES = (
    ("controller", CONTROLLERS),
    ("fabric", FABRICS),
    ("ipam", IPAMS),
    ("dns", DNS),
    ("reversedns", DNS),
)


def require_no_pending(pending: Sequence[str], is_own: bool) -> None:
    """Raise PendingChanges for pending changes of others, which an apply would include."""
    if pending and not is_own:
        raise PendingChanges(
            "The SDN configuration was not changed: it has pending changes of others: "
            f"{', '.join(pending)}",
            HAVE_AUTHOR,
            "pending changes",
            details={"pending": list(pending)},
        )


def require_valid(running: Sections, after: Sections, around: SdnContext) -> None:
    """Raise ValidationFailed or Conflict for the first violated rule."""
    for error in _violations(running, after, around):
        raise error


def _violations(running: Sections, after: Sections, around: SdnContext) -> Iterator[FleetError]:
    yield from _used_zones(running, after)
    for kind in (CONTROLLERS, FABRICS, IPAMS, DNS):
        yield from _unused(kind, running, after)
    yield from _peers(running, after)
    yield from _zones(running, after, around)
    for kind in TYPES:
        yield from _properties_of_type(kind, running, after)
    for name, entry in after[CONTROLLERS].items():
        if not _is_unchanged(CONTROLLERS, name, running, after):
            yield from _places(f"Controller '{name}' was refused", entry, around)
    yield from fabric_violations(running, after, around)
    yield from _vnets(running, after, around)
    yield from _tags(running, after)
    for name in running[SUBNETS]:  # pve-network: SDN/Ipams/PVEPlugin.pm, del_subnet
        leased = around.leased.get(name, ())
        if name not in after[SUBNETS] and leased:
            answer = f"{', '.join(leased)} of it {'is' if len(leased) == 1 else 'are'} in use"
            step = "Move the NICs of these guests, or delete the addresses from the IPAM"
            yield _conflict(f"Subnet '{name}' was not removed", answer, step)
    yield from _subnets(running, after)


def _is_unchanged(kind: str, name: str, running: Sections, after: Sections) -> bool:
    return running[kind].get(name) == after[kind][name]


def _conflict(attempted: str, answer: str, step: str) -> Conflict:
    return Conflict(f"{attempted}: {answer}", step, "in use")


# -- zones ---------------------------------------------------------------------------------------


def _zones(running: Sections, after: Sections, around: SdnContext) -> Iterator[FleetError]:
    for name, entry in after[ZONES].items():
        label = f"Zone '{name}' was refused"
        before = running[ZONES].get(name, {}).get("type")
        if before and before != entry.get("type"):
            answer = f"its type is {before}, and Proxmox VE cannot change it to {entry['type']}"
            yield refused(label, answer, "Remove the zone first, or use another name")
        yield from _references(label, entry, after)
        if not _is_unchanged(ZONES, name, running, after):
            yield from _places(label, entry, around)


def _properties_of_type(kind: str, running: Sections, after: Sections) -> Iterator[FleetError]:
    """Yield an error for each property that an object of its type must or cannot have."""
    for name, entry in after.get(kind, {}).items():
        if _is_unchanged(kind, name, running, after):
            continue
        label, type_ = f"{NOUNS[kind].capitalize()} '{name}' was refused", entry.get("type", "")
        if not type_:
            yield refused(label, "it is new and has no type", "Set type")
        required, optional = TYPES[kind].get(type_, (" ".join(entry), ""))
        for key in sorted(set(required.split()) - entry.keys()):
            option = key.replace("-", "_")
            yield refused(label, f"type {type_} needs {option}", f"Set {option}")
        for key in sorted(entry.keys() - {"type", *required.split(), *optional.split()}):
            option = key.replace("-", "_")
            yield refused(label, f"type {type_} does not have {option}", f"Remove {option}")
        if entry.get("dnszone") and not entry.get("dns"):
            yield refused(label, "dnszone needs a name server", "Set dns")


def _used_zones(running: Sections, after: Sections) -> Iterator[FleetError]:
    used = {entry.get("zone"): name for name, entry in after[VNETS].items()}
    for zone in running[ZONES]:
        if zone not in after[ZONES] and zone in used:
            label = f"Zone '{zone}' was not removed"
            yield _conflict(label, f"VNet '{used[zone]}' is in it", "Remove the VNet too")


def _references(label: str, entry: SdnEntry, after: Sections) -> Iterator[FleetError]:
    for key, kind in _REFERENCES:
        name = entry.get(key)
        if name and kind in after and name not in after[kind]:
            yield refused(label, f"there is no {NOUNS[kind]} '{name}'", f"Declare it in {kind}")


def _unused(kind: str, running: Sections, after: Sections) -> Iterator[FleetError]:
    for name in running.get(kind, {}):
        if name in after[kind]:
            continue
        for user in (ZONES, CONTROLLERS):
            for own, entry in after[user].items():
                if name in [entry.get(key) for key, one in _REFERENCES if one == kind]:
                    label, noun = f"{NOUNS[kind]} '{name}' was not removed", NOUNS[user]
                    yield _conflict(label, f"{noun} '{own}' uses it", f"Change the {noun} as well")


def _peers(running: Sections, after: Sections) -> Iterator[FleetError]:
    """Yield an error unless either peers or a fabric is set (VxlanPlugin.pm, EvpnPlugin.pm)."""
    for kind, type_ in ((ZONES, "vxlan"), (CONTROLLERS, "evpn")):
        for name, entry in after[kind].items():
            if entry.get("type") != type_ or _is_unchanged(kind, name, running, after):
                continue
            label = f"{NOUNS[kind].capitalize()} '{name}' was refused"
            if kind == CONTROLLERS:
                yield from _references(label, entry, after)
            if bool(entry.get("peers")) == bool(entry.get("fabric")):
                answer = "it must have either peers or a fabric"
                yield refused(label, answer, "Set one of them, and an empty value for the other")


def _places(label: str, entry: SdnEntry, around: SdnContext) -> Iterator[FleetError]:
    for key in ("nodes", "exitnodes", "exitnodes-primary", "node"):
        for node in _listed(entry.get(key)):
            if node not in around.nodes:
                known = ", ".join(sorted(around.nodes))
                yield refused(label, f"there is no node '{node}' in {key}", f"There are {known}")
    bridge = entry.get("bridge")
    for node in sorted(around.nodes):
        is_member = node in (_listed(entry.get("nodes")) or around.nodes)
        bridges = around.bridges.get(node)
        if bridge and is_member and bridges is not None and bridge not in bridges:
            answer = f"node {node} has no bridge '{bridge}'{did_you_mean(bridge, bridges)}"
            yield refused(label, answer, "Create the bridge, or limit nodes")


def _listed(text: str | None) -> list[str]:
    return text.split(",") if text else []


# -- VNets ---------------------------------------------------------------------------------------


def _vnets(running: Sections, after: Sections, around: SdnContext) -> Iterator[FleetError]:
    for name, entry in running[VNETS].items():
        if name not in after[VNETS]:
            yield from _removed_vnet(name, after, around)
        elif entry.get("zone") != after[VNETS][name].get("zone"):
            label = f"VNet '{name}' was not moved to another zone"
            for subnet in _subnets_in(name, running):
                yield _conflict(label, f"it has subnet '{subnet}'", "Remove the subnet first")
    for name, entry in after[VNETS].items():
        label = f"VNet '{name}' was refused"
        zone = entry.get("zone")
        if not zone:
            yield refused(label, "it is new and has no zone", "Set zone")
        if zone not in after[ZONES]:
            hint = did_you_mean(zone or "", after[ZONES])
            yield refused(label, f"there is no zone '{zone}'{hint}", "Declare it in zones")


def _subnets_in(vnet: str, sections: Sections) -> list[str]:
    return [name for name, entry in sections[SUBNETS].items() if entry.get("vnet") == vnet]


def _removed_vnet(name: str, after: Sections, around: SdnContext) -> Iterator[FleetError]:
    label = f"VNet '{name}' was not removed"
    guests = around.used.get(name, ())
    if guests:
        yield _conflict(label, f"{', '.join(guests)} use it", "Move their NICs first")
    for subnet in _subnets_in(name, after):
        yield _conflict(label, f"it has subnet '{subnet}'", "Remove the subnet as well")


def _tags(running: Sections, after: Sections) -> Iterator[FleetError]:
    seen: dict[tuple[str, str], str] = {}
    for name, entry in after[VNETS].items():
        zone = after[ZONES][entry["zone"]]
        label, tag = f"VNet '{name}' was refused", entry.get("tag")
        if not _is_unchanged(VNETS, name, running, after):
            yield from _tag(label, zone["type"], tag)
        place = "VXLAN" if zone["type"] in _VXLAN else f"zone {entry['zone']}"
        other = seen.setdefault((place, tag or ""), name)
        if other != name and zone["type"] != "simple":
            yield refused(label, f"VNet '{other}' has tag {tag} too", "Choose another tag")


def _tag(label: str, zone_type: str, tag: str | None) -> Iterator[FleetError]:
    if zone_type == "simple":
        if tag is not None:
            yield refused(label, "a VNet of a simple zone has no tag", "Remove tag")
        return
    if tag is None:
        if zone_type != "qinq":
            yield refused(label, f"a VNet of a {zone_type} zone needs a tag", "Set tag")
        return
    largest = _LARGEST_VLAN if zone_type in _VLAN else _LARGEST_VXLAN
    if not 1 <= int(tag) <= largest:
        yield refused(label, f"tag {tag} is not between 1 and {largest}", "Choose another tag")


# -- subnets -------------------------------------------------------------------------------------


def network_of(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Return the network in the ID of a subnet."""
    _zone, address, mask = name.split("-", 2)
    return ipaddress.ip_network(f"{address}/{mask}", strict=False)


def _subnets(running: Sections, after: Sections) -> Iterator[FleetError]:
    for name, entry in after[SUBNETS].items():
        if _is_unchanged(SUBNETS, name, running, after):
            continue
        label = f"Subnet '{name}' was refused"
        if after[VNETS].get(entry["vnet"], {}).get("vlanaware"):
            yield refused(label, f"VNet '{entry['vnet']}' is VLAN-aware", "Remove vlanaware")
        if name in running[SUBNETS] and running[SUBNETS][name].get("vnet") != entry["vnet"]:
            yield refused(label, f"it is in VNet '{running[SUBNETS][name]['vnet']}' already")
        yield from _addresses(label, name, entry)
    for one, other in combinations(after[SUBNETS], 2):  # of the same zone: zones are separate
        is_old = one in running[SUBNETS] and other in running[SUBNETS]
        if is_old or one.partition("-")[0] != other.partition("-")[0]:
            continue
        mine, theirs = network_of(one), network_of(other)
        if mine.version == theirs.version and mine.overlaps(theirs):
            yield refused(f"Subnet '{other}' was refused", f"it overlaps subnet '{one}'")


def _addresses(label: str, name: str, entry: SdnEntry) -> Iterator[FleetError]:
    network = network_of(name)
    gateway = entry.get("gateway")
    if gateway and not _is_in(gateway, network):
        yield refused(label, f"gateway {gateway} is not in {network}")
    taken: list[tuple[int, int]] = []
    for first, last in ranges_of(entry.get("dhcp-range", "")):
        if not (_is_in(first, network) and _is_in(last, network)):
            yield refused(label, f"DHCP range {first} to {last} is not in {network}")
            return
        low, high = int(ipaddress.ip_address(first)), int(ipaddress.ip_address(last))
        if low > high:
            yield refused(label, f"DHCP range {first} to {last} is backwards")
        if any(low <= end and begin <= high for begin, end in taken):
            yield refused(label, f"DHCP range {first} to {last} overlaps another range")
        taken.append((low, high))


def _is_in(text: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    try:
        return ipaddress.ip_address(text) in network
    except ValueError:
        return False
