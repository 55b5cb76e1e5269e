# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses a change of rules that would cut off the caller or the nodes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...._foundation.core.errors import Conflict, ValidationFailed
from ..evaluate.chains import IN, OUT, is_off, node_chain
from ..evaluate.match import decide
from ..evaluate.model import ACCEPT, Address, FirewallCluster, NodeAddress, Packet, PacketVerdict
from ..model import DesiredFirewall, Firewall
from ..plan import after_plan
from ..read import options_of
from ..rules.model import Rule
from ..scope import CLUSTER, GROUP, NODE, ROOT, FirewallScope
from .read import local_address, read_cluster, read_cluster_firewall, read_places

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_CHECKED = (CLUSTER, NODE, GROUP)
API_PORT, SSH_PORT, COROSYNC_PORT = 8006, 22, 5405
"""Ports on the nodes. The API uses its port there, even if a proxy in front uses another."""


def require_access(
    client: Client, scope: FirewallScope, desired: DesiredFirewall, params: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return warnings about connections that the new rules cut, if `allow_lockout` is set.

    Raises Conflict for such a change without `allow_lockout`. Only rules of the cluster, of nodes,
    and of the security groups that they use decide about these connections.
    """
    if scope.kind not in _CHECKED:
        return ()
    endpoint = client.endpoint
    given = params.get("caller_address")
    caller = caller_of(given or local_address(endpoint.host, endpoint.port))
    options = options_of(client.get(*ROOT, "options"))
    after = {**options, **desired.options} if scope.kind == CLUSTER else options
    if is_off(after, "0"):
        return ()
    cuts = _cuts(client, scope, desired, caller)
    if not params.get("allow_lockout"):
        require_no_cuts(scope, cuts)
    return tuple(f"The new rules cut {cut}" for cut in cuts)


def require_no_cuts(scope: FirewallScope, cuts: list[str]) -> None:
    """Raise Conflict if a change would cut connections."""
    if cuts:
        raise Conflict(
            f"The firewall of {scope.label} was not changed: the new rules would cut "
            f"{'; '.join(cuts)}",
            "Add rules that accept these connections, or set allow_lockout: true",
            "lockout",
        )


def caller_of(text: str) -> Address | None:
    """Return the address of the caller; None if it is unknown or on the node itself.

    Raises ValidationFailed for a text that is not an address.
    """
    if not text:
        return None
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        raise ValidationFailed(
            f"caller_address was refused: '{text}' is not an address",
            "Write the address from which Proxmox VE sees this computer",
            "caller address",
        ) from None
    return None if address.is_loopback else address


def _cuts(
    client: Client, scope: FirewallScope, desired: DesiredFirewall, caller: Address | None
) -> list[str]:
    firewall = read_cluster_firewall(client)
    places = read_places(client)
    new_firewall = after_plan(firewall, desired) if scope.kind == CLUSTER else firewall
    new_places = places
    if scope.kind == NODE:
        new_places = tuple(
            _changed(place, desired) if place.node.name == scope.path[1] else place
            for place in places
        )
    rules = [rule for place in (*places, *new_places) for rule in place.node.firewall.rules]
    before = read_cluster(client, firewall, (*rules, *new_firewall.rules))
    after = FirewallCluster(new_firewall, groups_after(scope, before.groups, desired))
    return find_cuts(ClusterFirewalls(before, places), ClusterFirewalls(after, new_places), caller)


def groups_after(
    scope: FirewallScope, groups: Mapping[str, tuple[Rule, ...]], desired: DesiredFirewall
) -> Mapping[str, tuple[Rule, ...]]:
    """Return the security groups after a change of one of them (pure).

    A removed group has no rules. Only groups that are in use are listed.
    """
    if scope.kind != GROUP or scope.name not in groups:
        return groups
    before = Firewall(rules=groups[scope.name])
    return {**groups, scope.name: after_plan(before, desired).rules}


def _changed(place: NodeAddress, desired: DesiredFirewall) -> NodeAddress:
    firewall = after_plan(place.node.firewall, desired)
    return replace(place, node=replace(place.node, firewall=firewall))


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
