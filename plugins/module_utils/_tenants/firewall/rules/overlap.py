# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether rules can match the same packet (pure).

A name of unknown addresses, ports or protocols overlaps everything. So the answer "no" is always
right, and the answer "yes" may be wrong.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeAlias

from .model import Rule

Ranges: TypeAlias = tuple[tuple[int, int, int], ...]
"""Ranges of numbers, each with a family such as the IP version, its first and last number."""
Dimension: TypeAlias = "Ranges | None"
"""None matches everything."""
Box: TypeAlias = "tuple[Dimension, ...]"
"""The packets of a rule, one set for each property of a packet."""

_PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "ipv6-icmp": 58, "icmpv6": 58, "sctp": 132}
_DIRECTIONS = {"in": 0, "out": 1, "forward": 2}
_ICMP = ("icmp", "icmpv6", "ipv6-icmp", "1", "58")


def common_box(one: Box, other: Box) -> Box | None:
    """Return the packets that are in both boxes; None if there are none."""
    common: list[Dimension] = []
    for first, second in zip(one, other, strict=True):
        if first is None or first == second:
            common.append(second)
        elif second is None:
            common.append(first)
        else:
            both = _intersect(first, second)
            if not both:
                return None
            common.append(both)
    return tuple(common)


@lru_cache(maxsize=4096)
def box_of(rule: Rule) -> Box:
    """Return the packets of a rule, one set for each property of a packet."""
    has_ports = not rule.macro and rule.proto not in _ICMP
    return (
        None if rule.type == "group" else _single(_DIRECTIONS[rule.type]),
        _ports(rule.dport) if has_ports else None,
        _addresses(rule.source),
        _addresses(rule.dest),
        _protocol(rule),
        _interface(rule.iface),
        _ports(rule.sport) if has_ports else None,
    )


def _single(number: int) -> Ranges:
    return ((0, number, number),)


def _intersect(one: Ranges, other: Ranges) -> Ranges:
    found = []
    for family, first, last in one:
        for family2, first2, last2 in other:
            low, high = max(first, first2), min(last, last2)
            if family == family2 and low <= high:
                found.append((family, low, high))
    return tuple(found)


def _interface(name: str) -> Dimension:
    """Return the number of a guest's NIC; None for a host's interface, which can have two names."""
    if name.startswith("net") and name[3:].isdigit():
        return _single(int(name[3:]))
    return None


def _protocol(rule: Rule) -> Dimension:
    if rule.macro or not rule.proto:
        return None
    number = _PROTOCOLS.get(rule.proto)
    if number is None and rule.proto.isdigit():
        number = int(rule.proto)
    return None if number is None else _single(number)


def _addresses(text: str) -> Dimension:
    return _union(text, address_range)


def _ports(text: str) -> Dimension:
    return _union(text, _port_range)


def _union(text: str, read: Callable[[str], tuple[int, int, int]]) -> Dimension:
    """Return the ranges of a list; None if only PVE knows one of them, such as an alias."""
    if not text:
        return None
    try:
        return merged(read(part.strip()) for part in text.split(","))
    except ValueError:
        return None


def merged(ranges: Iterable[tuple[int, int, int]]) -> Ranges:
    """Return the ranges sorted, without duplicates."""
    return tuple(sorted(set(ranges)))


def address_range(text: str) -> tuple[int, int, int]:
    """Return the range of an address, a network or `first-last`. Raises ValueError."""
    first, dash, last = text.partition("-")
    if dash:
        low, high = ipaddress.ip_address(first), ipaddress.ip_address(last)
        return low.version, int(low), int(high)
    network = ipaddress.ip_network(text, strict=False)
    return network.version, int(network[0]), int(network[-1])


def _port_range(text: str) -> tuple[int, int, int]:
    first, _colon, last = text.partition(":")
    return 0, int(first), int(last or first)
