# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A packet, the firewalls that it passes, and the decision about it (data)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ..model import Firewall
from ..rules.model import Rule

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
ACCEPT, DROP, UNKNOWN = "ACCEPT", "DROP", "UNKNOWN"
EPHEMERAL_PORT = 50000
"""The source port of a packet if none is given."""


@dataclass(frozen=True)
class Packet:
    """The first packet of a connection. Replies need no rule: their state is ESTABLISHED.

    `proto` is a name such as tcp, icmp or icmpv6, or a number. `iface` is the interface of the node
    that the packet passes, empty if it is unknown.
    """

    source: Address
    dest: Address
    proto: str = "tcp"
    dport: int = 0
    sport: int = EPHEMERAL_PORT
    icmp_type: tuple[int, int] = (0, 0)
    iface: str = ""

    @property
    def version(self) -> int:
        return self.dest.version


@dataclass(frozen=True)
class RuleNames:
    """The aliases and IP sets that a rule can use: first the guest's, then the cluster's."""

    guest: Firewall
    cluster: Firewall


@dataclass(frozen=True)
class FirewallCluster:
    """The firewall of the cluster, with its security groups."""

    firewall: Firewall
    groups: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class FirewallNode:
    """A node with its firewall.

    `local_network` is the network that Proxmox VE adds to the IP set management. `rings` contains
    the addresses of corosync on each node.
    """

    name: str
    firewall: Firewall
    local_network: str = ""
    rings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeAddress:
    """A node with its address, and the interface that has the address."""

    node: FirewallNode
    address: Address
    iface: str = ""


@dataclass(frozen=True)
class FirewallNic:
    """A NIC of a guest, with its MAC address and the addresses in its configuration."""

    name: str
    is_filtered: bool
    mac: str = ""
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class FirewallGuest:
    """A guest with its firewall."""

    label: str
    firewall: Firewall
    nics: tuple[FirewallNic, ...] = ()
    is_container: bool = False


@dataclass(frozen=True)
class EvaluatedRule:
    """One rule, in the order in which Proxmox VE evaluates them.

    `origin` is the place of the rule, such as `guest`, `group web` or `built-in`, and `position`
    its position there. If `outside` names an IP set, the rule matches only sources outside it.
    """

    origin: str
    rule: Rule
    names: RuleNames
    position: int | None = None
    outside: str = ""

    def __str__(self) -> str:
        place = "" if self.position is None else f" rule {self.position}"
        outside = f" not from +{self.outside}" if self.outside else ""
        return f"{self.origin}{place}: {self.rule}{outside}"


@dataclass(frozen=True)
class PacketVerdict:
    """ACCEPT or DROP with the rule that decides, or UNKNOWN with the rule that cannot be evaluated.

    A firewall that is off accepts without a rule.
    """

    verdict: str
    link: EvaluatedRule | None = None

    @property
    def reason(self) -> str:
        return "the firewall is off" if self.link is None else str(self.link)
