# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks that a list of rules decides about each packet as one of two other lists (pure).

Such a list accepts no packet that both others drop, and drops no packet that both accept. The check
compares pairs of rules, so it may refuse a safe list, but never accepts an unsafe one.

Rules have numbers, and a set of rules is an integer with one bit for each number: a list of 300
rules is checked with some 300 operations on integers.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class RuleEntry:
    """A rule in a list; a rule with the same key in two lists decides the same in both."""

    key: Hashable
    accepts: bool | None  # None if it is unknown, as for a group or the rules of another scope
    box: Box

    def contradicts(self, other: RuleEntry) -> bool:
        """Return whether the two may decide differently about a packet."""
        return self.accepts is None or other.accepts is None or self.accepts != other.accepts


def entry_of(key: Hashable, rule: Rule) -> RuleEntry:
    """Return the entry of a rule."""
    return RuleEntry(key, rule.accepts, box_of(rule))


class RuleConflicts:
    """Entries by their numbers, and the pairs that may decide differently about a packet."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._entries: list[RuleEntry] = []
        self._conflicting: list[int] = []

    def number(self, entry: RuleEntry) -> int:
        """Return the number of an entry; an entry with a new key gets the next number."""
        known = self._numbers.get(entry.key)
        if known is not None:
            return known
        fresh = len(self._entries)
        found = 0
        for number, other in enumerate(self._entries):
            if entry.contradicts(other) and common_box(entry.box, other.box) is not None:
                found |= 1 << number
                self._conflicting[number] |= 1 << fresh
        self._numbers[entry.key] = fresh
        self._entries.append(entry)
        self._conflicting.append(found)
        return fresh

    def of(self, number: int) -> int:
        """Return the set of entries that may decide differently about a packet of this entry."""
        return self._conflicting[number]

    def common_packet(self, number: int, first: int, second: int) -> int:
        """Return the set of two entries, one of each set, that match a packet of entry `number`.

        It is 0 if there is no such packet, and has one entry if both sets contain it. Both sets
        must contain only entries that conflict with entry `number`.
        """
        both = first & second
        if both:
            return both & -both
        box = self._entries[number].box
        others = [(one, self._entries[one].box) for one in _bits(second)]
        for one in _bits(first):
            common = common_box(box, self._entries[one].box)
            if common is None:
                continue
            for another, other in others:
                if common_box(common, other) is not None:
                    return 1 << one | 1 << another
        return 0


def _bits(numbers: int) -> Iterator[int]:
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest


class RuleOrder:
    """A list of entries by their numbers, with the set of entries before each."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = tuple(numbers)
        self._before: dict[int, int] = {}
        visited = 0
        for number in self.numbers:
            self._before[number] = visited
            visited |= 1 << number
        self._all = visited

    def before(self, number: int) -> int:
        """Return the set of entries before this one; all of them if it is not in the list."""
        return self._before.get(number, self._all)

    def difference(self, other: RuleOrder) -> int:
        """Return the set of entries that are in only one of the lists, or that moved."""
        found = self._all ^ other._all
        common = self._all & other._all
        mine = [number for number in self.numbers if common >> number & 1]
        theirs = [number for number in other.numbers if common >> number & 1]
        for one, another in zip(mine, theirs, strict=True):
            if one != another:
                found |= 1 << one | 1 << another
        return found


def find_conflict(
    conflicts: RuleConflicts, old: RuleOrder, new: RuleOrder, middle: RuleOrder
) -> int:
    """Return 0 if `middle` decides about each packet as `old` or as `new` does.

    Otherwise return the set of entries that can cause another decision.
    """
    visited = 0
    for number in middle.numbers:
        overtaken = conflicts.of(number) & ~visited
        by_old = overtaken & old.before(number)
        if by_old:
            by_new = overtaken & new.before(number)
            found = conflicts.common_packet(number, by_old, by_new) if by_new else 0
            if found:
                return found | 1 << number
        visited |= 1 << number
    return 0


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
        _union(rule.dport, _port_range) if has_ports else None,
        _union(rule.source, address_range),
        _union(rule.dest, address_range),
        _protocol(rule),
        _interface(rule.iface),
        _union(rule.sport, _port_range) if has_ports else None,
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


def _union(text: str, read: Callable[[str], tuple[int, int, int]]) -> Dimension:
    """Return the ranges of a list; None if only PVE knows one of them, such as an alias."""
    if not text:
        return None
    try:
        return tuple(sorted({read(part.strip()) for part in text.split(",")}))
    except ValueError:
        return None


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
