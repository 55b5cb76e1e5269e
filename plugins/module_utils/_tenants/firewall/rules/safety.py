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

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from .model import Rule
from .overlap import Box, box_of, common_box


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
