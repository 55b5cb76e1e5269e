# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses fabrics that Proxmox VE refuses in the middle of a change, or accepts by mistake (pure).

Source: proxmox-ve-rs, proxmox-ve-config, src/sdn/fabric/mod.rs (validate), and the protocols in
section_config/protocol.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from ..._foundation.core.errors import FleetError, NotSupported
from .forms import interfaces_of, refused
from .model import (
    CONTROLLERS,
    FABRIC_NODES,
    FABRIC_SECTIONS,
    FABRICS,
    ZONES,
    SdnContext,
    SdnEntry,
    Sections,
)
from .plan import PROTOCOLS, unmanaged_fabrics

_OPTIONS_OF_OTHERS = {
    "openfabric": ("area",),
    "ospf": ("ip6_prefix", "hello_interval", "csnp_interval"),
}
_FAMILIES = (("ip", "ip_prefix"), ("ip6", "ip6_prefix"))
_RANGES = (("hello_interval", 1, 600), ("csnp_interval", 1, 600))
_MULTIPLIER = (2, 100)
_LARGEST_AREA = 2**32 - 1


def require_fabrics(params: Mapping[str, Any], running: Sections, version: str) -> None:
    """Raise NotSupported if a task uses fabrics and Proxmox VE does not support them."""
    if FABRICS in running:
        return
    used = [kind for kind in FABRIC_SECTIONS if params.get(kind)]
    for kind in ("zones", "controllers"):
        used += [kind for row in params.get(kind) or () if row.get("fabric")]
    if used:
        raise NotSupported(
            f"{used[0]} was refused: PVE {version} has no fabrics, they came with 9.0",
            "Leave out the fabrics, and set the peers of zones and controllers",
            "fabrics",
        )


def fabric_violations(
    running: Sections, after: Sections, around: SdnContext
) -> Iterator[FleetError]:
    """Yield the violated rules about changes of fabrics, fabric nodes and zones."""
    is_same = all(running.get(kind) == after.get(kind) for kind in FABRIC_SECTIONS)
    if not is_same:
        yield from _of_fabrics(running, after, around)
    for zone, entry in after[ZONES].items():
        if not is_same or running[ZONES].get(zone) != entry:
            yield from _zone(zone, entry, after, around)


def _of_fabrics(running: Sections, after: Sections, around: SdnContext) -> Iterator[FleetError]:
    others = unmanaged_fabrics(running)
    for name, entry in after[FABRICS].items():
        if name not in others or running[FABRICS][name] != entry:
            yield from _fabric(name, entry, running)
    yield from _prefixes(running, after)
    yield from _areas(after)
    for name, entry in after[FABRIC_NODES].items():
        if running[FABRIC_NODES].get(name) != entry:
            yield from _places(name, entry, around)
        if entry.get("fabric_id") not in others or running[FABRIC_NODES].get(name) != entry:
            yield from _node(name, entry, after)
    yield from _shared(after)


def _shared(after: Sections) -> Iterator[FleetError]:
    """Yield an error for two nodes of a fabric with one address, or two fabrics with one interface
    of a node.
    """
    owners: dict[tuple[str, ...], str] = {}
    for name, entry in after[FABRIC_NODES].items():
        unique: list[tuple[str, ...]] = []
        for key, _prefix in _FAMILIES:
            if key in entry:
                unique.append((entry["fabric_id"], entry[key]))
        for interface in interfaces_of(entry.get("interfaces", "")):
            unique.append(("node", entry["node_id"], interface.get("name", "")))
        for value in unique:
            other = owners.setdefault(value, name)
            if other != name:
                answer = f"fabric node '{other}' has {value[-1]} too"
                yield refused(f"Fabric node '{name}' was refused", answer)


def _zone(name: str, entry: SdnEntry, after: Sections, around: SdnContext) -> Iterator[FleetError]:
    """Yield an error for each node of a zone that is not in the zone's fabric.

    The VNets would be missing on it (pve-network: Zones/VxlanPlugin.pm and EvpnPlugin.pm,
    generate_sdn_config).
    """
    controller = after[CONTROLLERS].get(entry.get("controller", ""), {})
    fabric = entry.get("fabric") or controller.get("fabric")
    if fabric is None:
        return
    nodes = after.get(FABRIC_NODES, {}).values()
    inside = {one["node_id"] for one in nodes if one.get("fabric_id") == fabric}
    members = set(entry["nodes"].split(",")) if entry.get("nodes") else around.nodes
    for node in sorted(members - inside):
        answer = f"node {node} is not in fabric '{fabric}'"
        yield refused(
            f"Zone '{name}' was refused", answer, "Add it to fabric_nodes, or limit nodes"
        )


# -- fabrics -------------------------------------------------------------------------------------


def _fabric(name: str, entry: SdnEntry, running: Sections) -> Iterator[FleetError]:
    label, protocol = f"Fabric '{name}' was refused", entry.get("protocol")
    before = running[FABRICS].get(name, {}).get("protocol")
    if not protocol:
        yield refused(label, "it is new and has no protocol", "Set protocol")
    if before and before != protocol:
        answer = f"its protocol is {before}, and Proxmox VE cannot change it to {protocol}"
        yield refused(label, answer, "Remove the fabric first, or use another name")
    if protocol not in PROTOCOLS:
        yield refused(label, f"protocol {protocol} is not managed")
        return
    for option in _OPTIONS_OF_OTHERS[protocol]:
        if entry.get(option):
            yield refused(label, f"protocol {protocol} has no {option}", f"Remove {option}")
    for option, smallest, largest in _RANGES:
        if entry.get(option) and not smallest <= int(entry[option]) <= largest:
            yield refused(label, f"{option} is not between {smallest} and {largest}")
    if not entry.get("ip_prefix") and not entry.get("ip6_prefix"):
        yield refused(label, "it has no prefix of addresses", "Set ip_prefix")
    if protocol == "ospf" and _area_of(entry) is None:
        answer = f"area '{entry.get('area', '')}' is neither a number nor an IPv4 address"
        yield refused(label, answer, "Set area")


def _area_of(entry: SdnEntry) -> int | None:
    """Return the area as a number: 1 and 0.0.0.1 are the same."""
    text = entry.get("area", "")
    if re.fullmatch("[0-9]{1,10}", text):
        return int(text) if int(text) <= _LARGEST_AREA else None
    try:
        return int(ipaddress.IPv4Address(text))
    except ValueError:
        return None


def _prefixes(running: Sections, after: Sections) -> Iterator[FleetError]:
    """Yield an error for overlapping prefixes; removed fabrics count, as they are removed last."""
    fabrics = {**running[FABRICS], **after[FABRICS]}
    for one, other in combinations(fabrics, 2):
        for _family, key in _FAMILIES:
            mine, theirs = fabrics[one].get(key), fabrics[other].get(key)
            if mine and theirs and _network(mine).overlaps(_network(theirs)):
                answer = f"its {key} {theirs} overlaps {mine} of fabric '{one}'"
                yield refused(f"Fabric '{other}' was refused", answer)


def _network(text: str) -> Any:
    return ipaddress.ip_network(text, strict=False)


def _areas(after: Sections) -> Iterator[FleetError]:
    seen: dict[int, str] = {}
    for name, entry in after[FABRICS].items():
        area = _area_of(entry)
        if area is None:
            continue
        other = seen.setdefault(area, name)
        if other != name:
            answer = f"fabric '{other}' has area {entry['area']} too"
            yield refused(f"Fabric '{name}' was refused", answer, "Choose another area")


# -- nodes ---------------------------------------------------------------------------------------


def _places(name: str, entry: SdnEntry, around: SdnContext) -> Iterator[FleetError]:
    label, node = f"Fabric node '{name}' was refused", entry["node_id"]
    if node not in around.nodes:
        known = ", ".join(sorted(around.nodes))
        yield refused(label, f"there is no node '{node}'", f"There are {known}")
    known_names = around.interfaces.get(node)
    for one in interfaces_of(entry.get("interfaces", "")):
        if known_names is not None and one["name"] not in known_names:
            answer = f"node {node} has no interface '{one['name']}'"
            yield refused(label, answer, "Create the interface first")


def _node(name: str, entry: SdnEntry, after: Sections) -> Iterator[FleetError]:
    label, fabric = f"Fabric node '{name}' was refused", after[FABRICS].get(entry["fabric_id"])
    if fabric is None:
        yield refused(label, f"there is no fabric '{entry['fabric_id']}'", "Declare it in fabrics")
        return
    if fabric.get("protocol") not in PROTOCOLS:
        yield refused(label, f"protocol {fabric.get('protocol')} is not managed")
    for option, key in _FAMILIES:
        address, prefix = entry.get(option), fabric.get(key)
        if address and not prefix:
            yield refused(label, f"it has {option} {address}, and its fabric has no {key}")
        if prefix and not address:
            yield refused(label, f"its fabric has {key} {prefix}", f"Set {option}")
        if address and prefix and ipaddress.ip_address(address) not in _network(prefix):
            yield refused(label, f"{option} {address} is not in {prefix}")
    smallest, largest = _MULTIPLIER
    for interface in interfaces_of(entry.get("interfaces", "")):
        multiplier = interface.get("hello_multiplier")
        if fabric.get("protocol") == "ospf" and (multiplier or interface.get("ip6")):
            answer = f"interface '{interface['name']}' has options that protocol ospf lacks"
            yield refused(label, answer, "Remove ip6 and hello_multiplier")
        if multiplier and not smallest <= int(multiplier) <= largest:
            yield refused(label, f"hello_multiplier is not between {smallest} and {largest}")
