# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a list of rules between two others decides about each packet as one of them (pure).

Then it allows nothing that neither allows, and drops nothing that both allow. The check compares
pairs of rules, so it may refuse a list that is safe, and never accepts an unsafe list.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .alignment import increasing
from .model import Rule
from .overlap import Box, box_of, common_box


@dataclass(frozen=True)
class Entry:
    """A rule in a list; a rule with the same key in two lists decides the same in both."""

    key: Hashable
    accepts: bool | None  # None if it is unknown, as for a group or the rules of another scope
    box: Box

    def contradicts(self, other: Entry) -> bool:
        """Return whether the two may decide differently about a packet."""
        return self.accepts is None or other.accepts is None or self.accepts != other.accepts


def entry_of(key: Hashable, rule: Rule) -> Entry:
    """Return the entry of a rule."""
    return Entry(key, rule.accepts, box_of(rule))


Entries: TypeAlias = Sequence[Entry]


def is_between(old: Entries, new: Entries, middle: Entries) -> bool:
    """Return whether `middle` decides about each packet as `old` or as `new` does."""
    before = _Overtaken(old, middle)
    if not before.others and len(middle) == len(old):
        return True
    after = _Overtaken(new, middle)
    for entry in middle:
        by_old = list(before.of(entry))
        if by_old and _share_packet(by_old, list(after.of(entry))):
            return False
    return True


def _share_packet(by_old: Sequence[Box], by_new: Sequence[Box]) -> bool:
    for one in by_old:
        for two in by_new:
            if common_box(one, two) is not None:
                return True
    return False


class _Overtaken:
    """The rules of a list that an entry of the middle list overtakes."""

    def __init__(self, reference: Entries, middle: Entries) -> None:
        self.reference = reference
        self.places = {entry.key: place for place, entry in enumerate(reference)}
        self.middle = {entry.key: place for place, entry in enumerate(middle)}
        common = [entry for entry in reference if entry.key in self.middle]
        kept = increasing([self.middle[entry.key] for entry in common])
        self.in_order = {common[place].key for place in kept}
        self.others = [entry for entry in reference if entry.key not in self.in_order]

    def of(self, entry: Entry) -> Iterator[Box]:
        """Return the packets about which the reference decides differently, by entries that come
        before this one there, and not in the middle list.
        """
        place = self.places.get(entry.key)
        candidates = self.others if entry.key in self.in_order else self.reference
        here = self.middle[entry.key]
        for one in candidates:
            if one.key == entry.key:
                continue
            if not entry.contradicts(one) or (place is not None and self.places[one.key] > place):
                continue
            common = common_box(entry.box, one.box)
            if common is not None and self.middle.get(one.key, here + 1) > here:
                yield common
