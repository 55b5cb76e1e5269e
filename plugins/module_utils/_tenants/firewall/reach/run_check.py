# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module firewall_check: the decision of the rules about one connection."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...._foundation.core.errors import ConfigurationError, ValidationFailed
from ...._foundation.core.result import Result
from ..evaluate.chains import IN, OUT, guest_chain, node_chain
from ..evaluate.icmp import icmp_type
from ..evaluate.match import decide, number_of
from ..evaluate.model import (
    ACCEPT,
    EPHEMERAL_PORT,
    UNKNOWN,
    Address,
    FirewallCluster,
    FirewallGuest,
    FirewallNic,
    NodeAddress,
    Packet,
    PacketVerdict,
)
from ..find_scope import find_scope
from ..rules.model import Rule
from ..scope import GUEST
from .read import read_cluster, read_cluster_firewall, read_guest, read_places

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_ICMP_NUMBERS = ("1", "58")


@dataclass(frozen=True)
class ConnectionEnd:
    """One end of a connection; an end without guest and place is outside the cluster."""

    label: str
    addresses: tuple[Address, ...]
    guest: FirewallGuest | None = None
    nic: FirewallNic | None = None
    place: NodeAddress | None = None

    @property
    def rules(self) -> tuple[Rule, ...]:
        firewall = None
        if self.guest is not None:
            firewall = self.guest.firewall
        if self.place is not None:
            firewall = self.place.node.firewall
        return () if firewall is None else firewall.rules

    @property
    def iface(self) -> str:
        return "" if self.place is None else self.place.iface


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return whether one end reaches another, and the rules that decide. Nothing is written."""
    prefix = params["tenant_prefix"]
    source = _read_end(client, "source", params["source"], prefix)
    dest = _read_end(client, "dest", params["dest"], prefix)
    packet = packet_of(params, source, dest)
    firewall = read_cluster_firewall(client)
    cluster = read_cluster(client, firewall, (*source.rules, *dest.rules))
    decisions = list(decisions_of(cluster, source, dest, packet))
    verdicts = [decision for _place, _direction, decision in decisions]
    deciding = deciding_of(verdicts)
    described = [describe_decision(*one) for one in decisions]
    described_packet: dict[str, Any] = {
        "source": str(packet.source),
        "dest": str(packet.dest),
        "proto": packet.proto,
    }
    if number_of(packet.proto) in _ICMP_NUMBERS:
        described_packet["icmp_type"] = packet.icmp_type[0]
    else:
        described_packet.update(dport=packet.dport, sport=packet.sport)
    values = {
        "reachable": reachable_of(verdicts),
        "decisions": described,
        "decided_by": None if deciding is None else described[deciding],
        "packet": described_packet,
    }
    return Result(False, values)


# -- ends ----------------------------------------------------------------------------------------


def _refused(option: str, answer: str, step: str) -> ValidationFailed:
    return ValidationFailed(f"{option} was refused: {answer}", step, "firewall check")


def _read_end(client: Client, option: str, given: Mapping[str, Any], prefix: str) -> ConnectionEnd:
    addresses = addresses_of(option, given)
    _require_one_end(option, given)
    if given.get("node"):
        return node_end(given["node"], read_places(client, [given["node"]]), addresses)
    if not _is_guest(given):
        return ConnectionEnd(str(addresses[0]), addresses)
    scope = find_scope(client, {**given, "scope": GUEST, "tenant_prefix": prefix})
    guest = read_guest(client, scope, scope.config)
    nic = _nic(option, guest, given.get("nic"))
    own = tuple(ipaddress.ip_address(one) for one in nic.addresses)
    return ConnectionEnd(f"{guest.label} {nic.name}", addresses or own, guest, nic)


def _require_one_end(option: str, given: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for options that do not apply to the end."""
    if not _is_guest(given):
        for name in ("tenant", "nic"):
            if given.get(name):
                raise _refused(f"{option}.{name}", "the end is not a guest", "Set name or vmid")
    elif given.get("node"):
        raise _refused(option, "it names a guest and a node", "Set one of them")


def _is_guest(given: Mapping[str, Any]) -> bool:
    return bool(given.get("name")) or given.get("vmid") is not None


def addresses_of(option: str, given: Mapping[str, Any]) -> tuple[Address, ...]:
    """Return the address that is set. Raises ValidationFailed if the end is empty."""
    text = given.get("address")
    if text:
        try:
            return (ipaddress.ip_address(text),)
        except ValueError:
            answer = f"'{text}' is not an address"
            raise _refused(f"{option}.address", answer, "Write one address") from None
    if not given.get("node") and not _is_guest(given):
        raise _refused(option, "it names nothing", "Set name, vmid, node or address")
    return ()


def node_end(
    name: str, places: tuple[NodeAddress, ...], addresses: tuple[Address, ...]
) -> ConnectionEnd:
    """Return the end on a node. Raises ConfigurationError if the node was not found."""
    if not places:
        raise ConfigurationError(
            f"Node '{name}' was not found: there is no such node, or it is offline",
            "Check the spelling of the node",
            "unknown node",
        )
    place = places[0]
    if addresses and addresses[0] != place.address:
        place = replace(place, iface="")
    return ConnectionEnd(f"node {name}", addresses or (place.address,), place=place)


def _nic(option: str, guest: FirewallGuest, name: str | None) -> FirewallNic:
    for nic in guest.nics:
        if name in (None, "", nic.name):
            return nic
    names = ", ".join(nic.name for nic in guest.nics) or "no NIC"
    raise _refused(f"{option}.nic", f"{guest.label} has {names}", "Name one of its NICs")


def packet_of(params: Mapping[str, Any], source: ConnectionEnd, dest: ConnectionEnd) -> Packet:
    """Return the first packet of the connection (pure). Raises ValidationFailed."""
    for option, end in (("source", source), ("dest", dest)):
        if not end.addresses:
            answer = f"the configuration of {end.label} has no address"
            raise _refused(option, answer, f"Set {option}.address")
    pairs = [
        (one, other)
        for one in source.addresses
        for other in dest.addresses
        if one.version == other.version
    ]
    if not pairs:
        raise _refused("source", "source and dest have no common IP version", "Set both addresses")
    proto = params["proto"]
    if number_of(proto) in _ICMP_NUMBERS:
        return Packet(*pairs[0], proto=proto, icmp_type=_icmp_type(params, pairs[0][1].version))
    sport = params.get("sport")
    return Packet(
        *pairs[0],
        proto=proto,
        dport=params.get("dport") or 0,
        sport=EPHEMERAL_PORT if sport is None else sport,
    )


def _icmp_type(params: Mapping[str, Any], version: int) -> tuple[int, int]:
    text = params.get("icmp_type") or "echo-request"
    found = icmp_type(text, version)
    if found is None:
        raise _refused("icmp_type", f"'{text}' is not a type of ICMP", "Write echo-request or 8")
    return found[0], found[1] or 0


# -- decisions -----------------------------------------------------------------------------------


def decisions_of(
    cluster: FirewallCluster, source: ConnectionEnd, dest: ConnectionEnd, packet: Packet
) -> Iterator[tuple[str, str, PacketVerdict]]:
    """Yield the place, the direction and the decision of each firewall on the way (pure)."""
    for end, direction in ((source, OUT), (dest, IN)):
        if end.guest is not None and end.nic is not None:
            links = guest_chain(cluster, end.guest, end.nic, direction)
        elif end.place is not None:
            links = node_chain(cluster, end.place.node, direction)
        else:
            continue
        yield end.label, direction, decide(links, replace(packet, iface=end.iface))


def deciding_of(decisions: list[PacketVerdict]) -> int | None:
    """Return the index of the first decision that does not accept, else of the last decision."""
    for place, decision in enumerate(decisions):
        if decision.verdict != ACCEPT:
            return place
    return len(decisions) - 1 if decisions else None


def reachable_of(decisions: list[PacketVerdict]) -> bool | None:
    """Return whether all firewalls accept; None if one of them cannot be evaluated."""
    verdicts = {decision.verdict for decision in decisions}
    if verdicts <= {ACCEPT}:
        return True
    return None if verdicts <= {ACCEPT, UNKNOWN} else False


def describe_decision(place: str, direction: str, decision: PacketVerdict) -> dict[str, Any]:
    """Return a decision in the form of the module's result."""
    link = decision.link
    return {
        "place": place,
        "direction": direction,
        "verdict": decision.verdict,
        "origin": None if link is None else link.origin,
        "position": None if link is None else link.position,
        "rule": None if link is None else link.rule.as_view(),
        "reason": decision.reason,
    }
