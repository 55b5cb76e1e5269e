# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writes that turn one list of rules into another (pure).

Proxmox VE puts a new rule on top (API2/Firewall/Rules.pm, create_rule). It moves a rule in front of
the rule that has the given position before the move (update_rule). After each write, the list
decides about each packet as the old list or as the new list does. If a direct write would break
that, a rule is added disabled, moved, and enabled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from .alignment import align
from .model import Rule
from .safety import RuleConflicts, RuleEntry, RuleOrder, entry_of, find_conflict

CREATE, UPDATE, MOVE, DELETE, POLICY = "create", "update", "move", "delete", "policy"
_TRIES = 3000
"""The number of direct tries of edits. All edits share it, which bounds the search."""
_FEWEST_TRIES = 4


@dataclass(frozen=True)
class DefaultPolicies:
    """The decision about packets that no rule matches, by direction; empty if it is unknown."""

    by_direction: tuple[tuple[str, str], ...] = ()

    def entries(self) -> list[RuleEntry]:
        """Return the policies as the last rules of a list."""
        if not self.by_direction:
            return [entry_of("rest", Rule("group", "rest"))]
        return [entry_of(one, Rule(*one)) for one in self.by_direction]


@dataclass(frozen=True)
class RuleWrite:
    """One write, with the list after it. POLICY is the request that sets the policies."""

    kind: str
    pos: int
    rule: Rule | None
    data: dict[str, Any] = field(default_factory=dict)
    result: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class _Cell:
    """A rule in the list, with the number of its slot; `is_new` if it has its final content."""

    slot: int
    rule: Rule
    is_new: bool

    @cached_property
    def entry(self) -> RuleEntry:
        return entry_of((self.slot, self.rule.effect), self.rule)


Cells: TypeAlias = tuple[_Cell, ...]


@dataclass
class _RuleEdit:
    """A remaining change: an insertion, an update, a move, a deletion or the policies.

    `blockers` are the entries that make it unsafe; it is tried again when one of them changes.
    """

    kind: str
    slot: int = -1
    is_staged: bool = False
    tries: int = 0
    blockers: int = 0
    is_done: bool = False
    max_tries: int = _FEWEST_TRIES

    @property
    def can_be_staged(self) -> bool:
        return self.kind in (CREATE, MOVE, UPDATE) and not self.is_staged

    @property
    def is_exhausted(self) -> bool:
        return self.can_be_staged and self.tries >= self.max_tries


def transition(
    old: Sequence[Rule],
    new: Sequence[Rule],
    policies: tuple[DefaultPolicies, DefaultPolicies] = (DefaultPolicies(), DefaultPolicies()),
    *,
    is_enforced: bool = True,
) -> list[RuleWrite]:
    """Return the writes in order. They are not checked if the rules are not enforced."""
    return _Search(old, new, policies, is_enforced).writes()


class _Search:
    """The search for the writes that turn the old list into the new one."""

    def __init__(
        self,
        old: Sequence[Rule],
        new: Sequence[Rule],
        policies: tuple[DefaultPolicies, DefaultPolicies],
        is_enforced: bool,
    ) -> None:
        alignment = align(old, new)
        self.is_enforced = is_enforced
        self.policies, self.new_policies = policies
        self.cells: Cells = tuple(
            _Cell(slot.number, slot.old, slot.old == slot.new)
            for slot in alignment.old
            if slot.old is not None
        )
        self.goals: list[int] = []
        self.rules: dict[int, Rule] = {}
        for slot in alignment.new:
            if slot.new is not None:
                self.goals.append(slot.number)
                self.rules[slot.number] = slot.new
        self.settled = set(alignment.fixed)
        self.free_slot = len(old) + len(new)
        self.edits = self._edits(alignment.fixed)
        self.conflicts = RuleConflicts()
        self.goal: RuleOrder | None = None
        if is_enforced:
            self.old = self.now = self._order(self.cells, self.policies)

    def _order(self, cells: Cells, policies: DefaultPolicies) -> RuleOrder:
        """Return the order of the enabled rules, followed by the policies."""
        entries = [cell.entry for cell in cells if cell.rule.enable]
        return RuleOrder([self.conflicts.number(one) for one in (*entries, *policies.entries())])

    def _edits(self, fixed: frozenset[int]) -> list[_RuleEdit]:
        """Return the edits in the order in which they are tried.

        The last new rule is inserted first, so a block of new rules on top needs no moves.
        """
        present = {cell.slot for cell in self.cells}
        edits = [_RuleEdit(CREATE, slot) for slot in reversed(self.goals) if slot not in present]
        edits += [_RuleEdit(MOVE, slot) for slot in self.goals if slot in present - fixed]
        for cell in self.cells:
            if cell.slot in self.rules and not cell.is_new:
                edits.append(_RuleEdit(UPDATE, cell.slot))
        if self.policies != self.new_policies:
            edits.append(_RuleEdit(POLICY))
        gone = [cell.slot for cell in reversed(self.cells) if cell.slot not in self.rules]
        edits += [_RuleEdit(DELETE, slot) for slot in gone]
        for edit in edits:
            edit.max_tries = max(_FEWEST_TRIES, _TRIES // len(edits))
        return edits

    # -- the search ------------------------------------------------------------------------------

    def writes(self) -> list[RuleWrite]:
        """Return the writes in order."""
        found: list[RuleWrite] = []
        while self.edits:
            found += self._safe_edits() or self._stage()
        return found

    def _safe_edits(self) -> list[RuleWrite]:
        """Carry out each edit that is safe when it is tried, and return the writes."""
        found: list[RuleWrite] = []
        is_progress = True
        while is_progress and not found:
            before = self.edits
            for edit in before:
                found += self._try(edit)
            self.edits = [edit for edit in before if not edit.is_done]
            is_progress = len(self.edits) < len(before)
        return found

    def _try(self, edit: _RuleEdit) -> list[RuleWrite]:
        """Carry out an edit if it is safe, and return its writes."""
        if edit.blockers or edit.is_exhausted:
            return []
        states = list(self._states(edit))
        edit.blockers = self._find_conflict(states)
        edit.tries += 1
        if edit.blockers:
            return []
        edit.is_done = True
        self._set_state(states)
        if edit.kind in (CREATE, MOVE):
            self.settled.add(edit.slot)
        return [write for write, _cells, _policies in states]

    def _set_state(self, states: list[tuple[RuleWrite, Cells, DefaultPolicies]]) -> None:
        if not states:
            return
        _write, self.cells, self.policies = states[-1]
        if self.is_enforced:
            before, self.now = self.now, self._order(self.cells, self.policies)
            self._unblock(before.difference(self.now))

    def _unblock(self, changed: int) -> None:
        for edit in self.edits:
            if edit.blockers & changed:
                edit.blockers = 0

    def _find_conflict(self, states: list[tuple[RuleWrite, Cells, DefaultPolicies]]) -> int:
        """Return the entries that make one of the lists unsafe; 0 if there are none."""
        if not self.is_enforced:
            return 0
        goal = self._goal_order()
        for _write, cells, policies in states:
            middle = self._order(cells, policies)
            # The current list is safe, so a list between it and the new one is also safe.
            by_now = find_conflict(self.conflicts, self.now, goal, middle)
            by_old = by_now and find_conflict(self.conflicts, self.old, goal, middle)
            if by_old:
                return by_now | by_old
        return 0

    def _goal_order(self) -> RuleOrder:
        if self.goal is None:
            cells = tuple(_Cell(slot, self.rules[slot], True) for slot in self.goals)
            self.goal = self._order(cells, self.new_policies)
        return self.goal

    # -- the writes of an edit -------------------------------------------------------------------

    def _states(self, edit: _RuleEdit) -> Iterator[tuple[RuleWrite, Cells, DefaultPolicies]]:
        if edit.kind == CREATE:
            yield from self._create(edit.slot, self.rules[edit.slot])
        elif edit.kind == POLICY:
            rules = tuple(cell.rule for cell in self.cells)
            yield RuleWrite(POLICY, -1, None, {}, rules), self.cells, self.new_policies
        elif edit.kind == MOVE:
            if not self._is_in_place(edit.slot):
                pos = self._pos(edit.slot)
                yield self._moved(self.cells, pos, self._target(self.cells, edit.slot))
        elif edit.kind == UPDATE:
            pos, rule = self._pos(edit.slot), self.rules[edit.slot]
            cells = (*self.cells[:pos], _Cell(edit.slot, rule, True), *self.cells[pos + 1 :])
            data = self.cells[pos].rule.changes_to(rule)
            yield self._state(UPDATE, pos, rule, data, cells)
        else:
            pos = self._pos(edit.slot)
            cells = self.cells[:pos] + self.cells[pos + 1 :]
            yield self._state(DELETE, pos, self.cells[pos].rule, {}, cells)

    def _create(self, slot: int, rule: Rule) -> Iterator[tuple[RuleWrite, Cells, DefaultPolicies]]:
        cells = (_Cell(slot, rule, True), *self.cells)
        yield self._state(CREATE, 0, rule, rule.as_data(), cells)
        target = self._target(cells, slot)
        if target != 0:
            yield self._moved(cells, 0, target)

    def _moved(
        self, cells: Cells, pos: int, target: int
    ) -> tuple[RuleWrite, Cells, DefaultPolicies]:
        """Return the move of a rule; `target` is its new position among the other rules."""
        others = cells[:pos] + cells[pos + 1 :]
        moved = (*others[:target], cells[pos], *others[target:])
        moveto = target if target <= pos else target + 1
        return self._state(MOVE, pos, cells[pos].rule, {"moveto": moveto}, moved)

    def _state(
        self, kind: str, pos: int, rule: Rule, data: dict[str, Any], cells: Cells
    ) -> tuple[RuleWrite, Cells, DefaultPolicies]:
        result = tuple(cell.rule for cell in cells)
        return RuleWrite(kind, pos, rule, data, result), cells, self.policies

    def _pos(self, slot: int) -> int:
        return next(pos for pos, cell in enumerate(self.cells) if cell.slot == slot)

    def _is_in_place(self, slot: int) -> bool:
        """Return whether a rule is already in the right order with the settled rules."""
        order = {number: place for place, number in enumerate(self.goals)}
        sequence = [one.slot for one in self.cells if one.slot in self.settled or one.slot == slot]
        return sequence == sorted(sequence, key=lambda number: order[number])

    def _target(self, cells: Cells, slot: int) -> int:
        """Return the position among the other rules, after all settled rules that precede it."""
        earlier = set(self.goals[: self.goals.index(slot)]) & self.settled
        others = [cell.slot for cell in cells if cell.slot != slot]
        places = [pos for pos, number in enumerate(others) if number in earlier]
        return places[-1] + 1 if places else 0

    # -- edits that are always safe --------------------------------------------------------------

    def _stage(self) -> list[RuleWrite]:
        """Replace an edit by safer ones, and return the writes that prepare them.

        A rule that is added disabled has no effect. When all new rules have been added, they are
        enabled from first to last, then the policies change, then the old rules are removed from
        last to first. Each list then decides as the list before it or as the new list does.
        """
        candidates = [edit for edit in self.edits if edit.can_be_staged]
        found: list[RuleWrite] = []
        if candidates:
            candidates.sort(key=lambda edit: _KINDS.index(edit.kind))
            chosen = [candidates[0], *(edit for edit in candidates[1:] if edit.is_exhausted)]
            for edit in chosen:
                found += self._staged(edit)
            self._sort_edits()
            return found
        # each edit is tried again, as if nothing blocked it
        for edit in self.edits:
            edit.blockers = 0
        found = self._safe_edits()
        if self.edits and not found:
            raise AssertionError("a list of rules has no safe next write")
        return found

    def _staged(self, edit: _RuleEdit) -> list[RuleWrite]:
        slot = edit.slot
        self.edits = [one for one in self.edits if one is not edit]
        if edit.kind != CREATE:
            slot = self._copy_slot(edit.slot)
        rule = self.rules[slot]
        states = list(self._create(slot, replace(rule, enable=False)))
        self._set_state(states)
        self.settled.add(slot)
        if rule.enable:
            self.edits.append(_RuleEdit(UPDATE, slot, is_staged=True))
        return [write for write, _cells, _policies in states]

    def _copy_slot(self, slot: int) -> int:
        """Return a new slot for the new content of a rule, and add an edit that deletes the old."""
        copy = self.free_slot
        self.free_slot += 1
        self.goals[self.goals.index(slot)] = copy
        self.rules[copy] = self.rules.pop(slot)
        self.settled.discard(slot)
        self.edits = [one for one in self.edits if one.slot != slot]
        self.edits.append(_RuleEdit(DELETE, slot))
        # The order of the goal changes, and unblocks the edits that this affects.
        before, self.goal = self.goal, None
        if before is not None:
            self._unblock(before.difference(self._goal_order()))
        return copy

    def _sort_edits(self) -> None:
        """Sort the edits into the order that is always safe."""
        order = {slot: place for place, slot in enumerate(self.goals)}
        here = {cell.slot: -place for place, cell in enumerate(self.cells)}

        def rank(one: _RuleEdit) -> tuple[int, int]:
            place = here if one.kind == DELETE else order
            return _RANKS[one.kind], place.get(one.slot, 0)

        self.edits.sort(key=rank)


_KINDS = (CREATE, MOVE, UPDATE)
_RANKS = {CREATE: 0, MOVE: 0, UPDATE: 1, POLICY: 2, DELETE: 3}
