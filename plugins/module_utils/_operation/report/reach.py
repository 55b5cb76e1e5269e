# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The connections between VNets of tenants that the firewalls of their guests accept."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

from ..._foundation.core.marks import marked_tag
from ..._foundation.core.parallel import side_by_side
from ..._guests.kinds.words import label_of
from ..._tenants.firewall.evaluate.chains import IN, guest_chain
from ..._tenants.firewall.evaluate.macros import MACROS
from ..._tenants.firewall.evaluate.model import FirewallCluster, Packet
from ..._tenants.firewall.reach.read import read_cluster, read_cluster_firewall, read_guest
from ..._tenants.firewall.reach.run_check import ConnectionEnd, decisions_of, reachable_of
from ..._tenants.firewall.rules.model import Rule
from ..._tenants.firewall.scope import GUEST, FirewallScope
from .model import Row, VmReading

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

Ends = Mapping[str, Sequence[ConnectionEnd]]
# A protocol that only a rule for all protocols matches (RFC 3692).
_EXPERIMENTAL = "253"
_PING = (8, 0)


def read_reach(
    client: Client, guests: Sequence[VmReading], vnets: Sequence[Row]
) -> list[dict[str, Any]]:
    """Return the pairs of VNets of tenants whose guests reach each other, with the connections.

    About five requests for each guest on such a VNet. Raises FleetError.
    """
    owned = {str(row["vnet"]) for row in vnets if marked_tag(row.get("alias"))}
    placed = [one for one in guests if owned.intersection(_bridges(one).values())]
    if not placed:
        return []
    firewall = read_cluster_firewall(client)

    def one(guest: VmReading) -> list[tuple[str, ConnectionEnd]]:
        return [end for end in _ends(client, guest) if end[0] in owned]

    ends: dict[str, list[ConnectionEnd]] = {}
    for found in side_by_side(one, placed):
        for vnet, end in found:
            ends.setdefault(vnet, []).append(end)
    rules = [rule for several in ends.values() for end in several for rule in end.rules]
    return reach_of(read_cluster(client, firewall, rules), ends)


def _bridges(one: VmReading) -> Mapping[str, str]:
    return {} if one.actual is None else one.actual.kind.bridges_in(one.actual.target)


def _ends(client: Client, one: VmReading) -> Iterator[tuple[str, ConnectionEnd]]:
    """Yield the VNet and the end of each NIC with an address in the configuration."""
    if one.actual is None:
        return
    scope = FirewallScope(GUEST, label_of(one.row), (*one.row.path, "firewall"))
    guest = read_guest(client, scope, one.actual.target)
    bridges = _bridges(one)
    for nic in guest.nics:
        addresses = tuple(map(ipaddress.ip_address, nic.addresses))
        if addresses and nic.name in bridges:
            yield bridges[nic.name], ConnectionEnd(guest.label, addresses, guest, nic)


def reach_of(cluster: FirewallCluster, ends: Ends) -> list[dict[str, Any]]:
    """Return each pair of VNets with an accepted connection between two of their guests (pure).

    One guest of a VNet stands for all with the same firewall. A connection about which a rule
    cannot be evaluated is left out.
    """
    chosen = {vnet: _distinct(several) for vnet, several in sorted(ends.items())}
    found: list[dict[str, Any]] = []
    for source, dest in permutations(chosen, 2):
        accepted: dict[str, None] = {}
        for one, other in product(chosen[source], chosen[dest]):
            accepted |= dict.fromkeys(_accepted(cluster, one, other))
        if accepted:
            names = ["all"] if "all" in accepted else list(accepted)
            found.append({"source": source, "dest": dest, "connections": names})
    return found


def _distinct(ends: Sequence[ConnectionEnd]) -> list[ConnectionEnd]:
    """Return one end of each firewall; the IP sets with a guest's own addresses do not count."""
    found: list[tuple[Any, ConnectionEnd]] = []
    for end in ends:
        if end.guest is None or end.nic is None:
            continue
        firewall = end.guest.firewall
        sets = {
            name: one for name, one in firewall.ip_sets.items() if not name.startswith("ipfilter-")
        }
        key = (firewall.options, firewall.rules, firewall.aliases, sets, end.nic.is_filtered)
        if all(key != other for other, _end in found):
            found.append((key, end))
    return [end for _key, end in found]


def _accepted(
    cluster: FirewallCluster, source: ConnectionEnd, dest: ConnectionEnd
) -> Iterator[str]:
    """Yield the connections that a rule of the destination names, and the firewalls accept."""
    if dest.guest is None or dest.nic is None:
        return
    links = guest_chain(cluster, dest.guest, dest.nic, IN)
    named = [pair for link in links if link.rule.accepts for pair in _connections(link.rule)]
    pairs = [pair for pair in product(source.addresses, dest.addresses) if _same_version(*pair)]
    for addresses in pairs[:1]:
        for proto, port in dict.fromkeys([(_EXPERIMENTAL, ""), *named]):
            packet = Packet(*addresses, proto, int(port.partition(":")[0] or 0), icmp_type=_PING)
            decisions = [one[2] for one in decisions_of(cluster, source, dest, packet)]
            if reachable_of(decisions):
                yield "all" if proto == _EXPERIMENTAL else f"{proto} {port}".strip()


def _same_version(one: Any, other: Any) -> bool:
    return bool(one.version == other.version)


def _connections(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield the protocols and ports of a rule; a port is a number or a range."""
    templates = MACROS.get(rule.macro, ()) if rule.macro else ((rule.proto, rule.dport, ""),)
    for proto, ports, _source_port in templates:
        for port in ports.split(","):
            if proto and (not port or port.replace(":", "").isdigit()):
                yield proto, port
