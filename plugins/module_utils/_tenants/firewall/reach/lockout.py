# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds API, SSH and corosync connections that new rules would cut (pure)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..evaluate.chains import IN, OUT, node_chain
from ..evaluate.decide import decide
from ..evaluate.model import ACCEPT, Address, FirewallCluster, FirewallNode, Packet, PacketVerdict

API_PORT, SSH_PORT, COROSYNC_PORT = 8006, 22, 5405
"""Ports on the nodes. The API uses its port there, even if a proxy in front uses another."""


@dataclass(frozen=True)
class NodeAddress:
    """A node with its address, and the interface that has the address."""

    node: FirewallNode
    address: Address
    iface: str = ""


@dataclass(frozen=True)
class ClusterFirewalls:
    """The firewalls of the cluster and its nodes."""

    cluster: FirewallCluster
    places: tuple[NodeAddress, ...]


@dataclass(frozen=True)
class NodeConnection:
    """A connection to a node; `source` is a node, or empty for a source outside the cluster."""

    label: str
    packet: Packet
    dest: str
    source: str = ""


def find_cuts(
    before: ClusterFirewalls, after: ClusterFirewalls, caller: Address | None
) -> list[str]:
    """Return the connections that are accepted before a change, but may not be afterwards.

    Connections that the current rules drop are not part of the result.
    """
    cuts = []
    for connection in _connections(before.places, caller):
        if _decision(before, connection).verdict != ACCEPT:
            continue
        decision = _decision(after, connection)
        if decision.verdict != ACCEPT:
            cuts.append(f"{connection.label} ({decision.verdict} by {decision.reason})")
    return cuts


def _connections(places: Sequence[NodeAddress], caller: Address | None) -> Iterator[NodeConnection]:
    for place in places:
        name = place.node.name
        if caller is not None and caller.version == place.address.version:
            packet = Packet(caller, place.address, dport=API_PORT, iface=place.iface)
            yield NodeConnection(f"the API of {name} from {caller}", packet, name)
        for other in places:
            if other.node.name != name and other.address.version == place.address.version:
                packet = Packet(other.address, place.address, dport=SSH_PORT, iface=place.iface)
                label = f"SSH from {other.node.name} to {name}"
                yield NodeConnection(label, packet, name, other.node.name)
                yield from _corosync(other, place)


def _corosync(source: NodeAddress, dest: NodeAddress) -> Iterator[NodeConnection]:
    names = (source.node.name, dest.node.name)
    rings = zip(*(dest.node.rings.get(name, ()) for name in names), strict=False)
    for number, (theirs, mine) in enumerate(rings):
        try:
            pair = ipaddress.ip_address(theirs), ipaddress.ip_address(mine)
        except ValueError:
            continue  # a host name, which Proxmox VE resolves itself
        iface = dest.iface if pair[1] == dest.address else ""
        packet = Packet(*pair, proto="udp", dport=COROSYNC_PORT, sport=COROSYNC_PORT, iface=iface)
        label = f"corosync from {names[0]} to {names[1]} (ring {number})"
        yield NodeConnection(label, packet, names[1], names[0])


def _decision(firewalls: ClusterFirewalls, connection: NodeConnection) -> PacketVerdict:
    """Return the decision about the first packet of a connection.

    The source decides first, then the destination if the source accepts.
    """
    places = {place.node.name: place for place in firewalls.places}
    source = places.get(connection.source)
    if source is not None:
        chain = node_chain(firewalls.cluster, source.node, OUT)
        decision = decide(chain, replace(connection.packet, iface=source.iface))
        if decision.verdict != ACCEPT:
            return decision
    chain = node_chain(firewalls.cluster, places[connection.dest].node, IN)
    return decide(chain, connection.packet)
