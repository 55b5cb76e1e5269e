# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types of ICMP packets, by their names in iptables and ip6tables (data)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

Kind = tuple[int, "int | None"]
"""The type and the code; None matches every code."""

ICMP: Mapping[str, Kind] = {
    "echo-reply": (0, None),
    "destination-unreachable": (3, None),
    "network-unreachable": (3, 0),
    "host-unreachable": (3, 1),
    "protocol-unreachable": (3, 2),
    "port-unreachable": (3, 3),
    "fragmentation-needed": (3, 4),
    "source-route-failed": (3, 5),
    "network-unknown": (3, 6),
    "host-unknown": (3, 7),
    "network-prohibited": (3, 9),
    "host-prohibited": (3, 10),
    "TOS-network-unreachable": (3, 11),
    "TOS-host-unreachable": (3, 12),
    "communication-prohibited": (3, 13),
    "host-precedence-violation": (3, 14),
    "precedence-cutoff": (3, 15),
    "source-quench": (4, None),
    "redirect": (5, None),
    "network-redirect": (5, 0),
    "host-redirect": (5, 1),
    "TOS-network-redirect": (5, 2),
    "TOS-host-redirect": (5, 3),
    "echo-request": (8, None),
    "router-advertisement": (9, None),
    "router-solicitation": (10, None),
    "time-exceeded": (11, None),
    "ttl-zero-during-transit": (11, 0),
    "ttl-zero-during-reassembly": (11, 1),
    "parameter-problem": (12, None),
    "ip-header-bad": (12, 0),
    "required-option-missing": (12, 1),
    "timestamp-request": (13, None),
    "timestamp-reply": (14, None),
    "address-mask-request": (17, None),
    "address-mask-reply": (18, None),
}
ICMPV6: Mapping[str, Kind] = {
    "destination-unreachable": (1, None),
    "no-route": (1, 0),
    "communication-prohibited": (1, 1),
    "beyond-scope": (1, 2),
    "address-unreachable": (1, 3),
    "port-unreachable": (1, 4),
    "failed-policy": (1, 5),
    "reject-route": (1, 6),
    "packet-too-big": (2, None),
    "time-exceeded": (3, None),
    "ttl-zero-during-transit": (3, 0),
    "ttl-zero-during-reassembly": (3, 1),
    "parameter-problem": (4, None),
    "bad-header": (4, 0),
    "unknown-header-type": (4, 1),
    "unknown-option": (4, 2),
    "echo-request": (128, None),
    "echo-reply": (129, None),
    "router-solicitation": (133, None),
    "router-advertisement": (134, None),
    "neighbor-solicitation": (135, None),
    "neighbour-solicitation": (135, None),
    "neighbor-advertisement": (136, None),
    "neighbour-advertisement": (136, None),
    "redirect": (137, None),
}
ICMP_TYPES: Mapping[str, Collection[str]] = {
    "icmp": ("any", *ICMP),
    "icmpv6": tuple(ICMPV6),
    "ipv6-icmp": tuple(ICMPV6),
}
"""The types that a rule can name, by protocol (pve-firewall: Firewall.pm, $icmp_type_names and
$icmpv6_type_names)."""


def icmp_type(text: str, version: int) -> Kind | None:
    """Return the type and code of a name or number; None if it is unknown."""
    if text.isdigit():
        return int(text), None
    return (ICMP if version == 4 else ICMPV6).get(text)
