# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares two lists of rules: rules that stay, move, change, are added or removed (pure)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from .model import FIELDS, Rule


@dataclass(frozen=True)
class RuleSlot:
    """One rule in both lists, or in one of them; None for a list that does not have it."""

    number: int
    old: Rule | None
    new: Rule | None


@dataclass(frozen=True)
class RuleAlignment:
    """The slots of each list, in its order. `fixed` are the numbers of slots that do not move."""

    old: tuple[RuleSlot, ...]
    new: tuple[RuleSlot, ...]
    fixed: frozenset[int]


def align(old: Sequence[Rule], new: Sequence[Rule]) -> RuleAlignment:
    """Return the alignment that turns the old rules into the new ones with the fewest writes."""
    pairs = _with_changed(old, new, _equal_pairs(old, new))
    slots_of_old: dict[int, RuleSlot] = {}
    slots_of_new: dict[int, RuleSlot] = {}
    for goal, origin in pairs.items():
        slot = RuleSlot(origin, old[origin], new[goal])
        slots_of_old[origin] = slots_of_new[goal] = slot
    for origin, rule in enumerate(old):
        slots_of_old.setdefault(origin, RuleSlot(origin, rule, None))
    for goal, rule in enumerate(new):
        slots_of_new.setdefault(goal, RuleSlot(len(old) + goal, None, rule))
    goals = sorted(pairs)
    fixed = increasing([pairs[goal] for goal in goals])
    return RuleAlignment(
        tuple(slots_of_old[place] for place in range(len(old))),
        tuple(slots_of_new[place] for place in range(len(new))),
        frozenset(pairs[goals[place]] for place in fixed),
    )


def increasing(numbers: Sequence[int]) -> list[int]:
    """Return the places of a longest increasing subsequence."""
    ends: list[int] = []  # the place at which the best sequence of each length ends
    values: list[int] = []
    before: list[int] = []
    for place, number in enumerate(numbers):
        length = bisect_left(values, number)
        before.append(ends[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        values[length : length + 1] = [number]
    found: list[int] = []
    place = ends[-1] if ends else -1
    while place >= 0:
        found.append(place)
        place = before[place]
    return found[::-1]


def _equal_pairs(old: Sequence[Rule], new: Sequence[Rule]) -> dict[int, int]:
    """Return the place in the old list for each new rule that already exists.

    Duplicates are paired from both ends, so adding another equal rule moves none of them.
    """
    pairs: dict[int, int] = {}
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        pairs[start] = start
        start += 1
    last_old, last_new = len(old), len(new)
    while last_old > start and last_new > start and old[last_old - 1] == new[last_new - 1]:
        last_old, last_new = last_old - 1, last_new - 1
        pairs[last_new] = last_old
    places: dict[Rule, deque[int]] = defaultdict(deque)
    for place in range(start, last_old):
        places[old[place]].append(place)
    for goal in range(start, last_new):
        if places[new[goal]]:
            pairs[goal] = places[new[goal]].popleft()
    return pairs


def _with_changed(
    old: Sequence[Rule], new: Sequence[Rule], pairs: dict[int, int]
) -> dict[int, int]:
    """Return the pairs, with pairs of rules that change: first within gaps, then anywhere."""
    goals = sorted(pairs)
    fixed = [(-1, -1)]
    origins = [pairs[goal] for goal in goals]
    fixed += [(goals[place], origins[place]) for place in increasing(origins)]
    fixed.append((len(new), len(old)))
    taken = set(pairs.values())
    found = dict(pairs)
    for (goal, origin), (next_goal, next_origin) in zip(fixed, fixed[1:], strict=False):
        free_new = [place for place in range(goal + 1, next_goal) if place not in pairs]
        free_old = [place for place in range(origin + 1, next_origin) if place not in taken]
        found.update(_similar(old, new, free_old, free_new))
    paired = set(found.values())
    unpaired_old = [place for place in range(len(old)) if place not in paired]
    unpaired_new = [place for place in range(len(new)) if place not in found]
    found.update(_similar(old, new, unpaired_old, unpaired_new))
    return found


def _similar(
    old: Sequence[Rule], new: Sequence[Rule], free_old: list[int], free_new: list[int]
) -> dict[int, int]:
    """Return pairs of similar rules in order; each rule of the shorter list is in a pair."""
    is_old_shorter = len(free_old) <= len(free_new)
    short, long = (free_old, free_new) if is_old_shorter else (free_new, free_old)
    shorter, longer = (old, new) if is_old_shorter else (new, old)
    found: dict[int, int] = {}
    begin = 0
    for index, place in enumerate(short):
        end = len(long) - (len(short) - index) + 1
        likeness = [_likeness(shorter[place], longer[at]) for at in long[begin:end]]
        best = begin + likeness.index(max(likeness))
        begin = best + 1
        goal, origin = (long[best], place) if is_old_shorter else (place, long[best])
        found[goal] = origin
    return found


def _likeness(one: Rule, other: Rule) -> int:
    """Return how many properties two rules have in common."""
    return sum(getattr(one, name) == getattr(other, name) for name in FIELDS)
