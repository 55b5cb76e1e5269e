# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writes that lead from one list of rules to another (pure).

Proxmox VE puts a new rule on top (API2/Firewall/Rules.pm, create_rule), and moves a rule before the
rule that is at the given position before the move (update_rule). After each write the list decides
about each packet as the old list or as the new one. If the direct way does not allow that, a rule
is added disabled, moved, and enabled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from .alignment import align
from .model import Rule
from .safety import Entry, entry_of, is_between

CREATE, UPDATE, MOVE, DELETE, POLICY = "create", "update", "move", "delete", "policy"


@dataclass(frozen=True)
class Policies:
    """The decision about packets that no rule matches, by direction; empty if it is unknown."""

    by_direction: tuple[tuple[str, str], ...] = ()

    def entries(self) -> list[Entry]:
        """Return the policies as the last rules of a list."""
        if not self.by_direction:
            return [entry_of("rest", Rule("group", "rest"))]
        return [entry_of(one, Rule(*one)) for one in self.by_direction]


@dataclass(frozen=True)
class Write:
    """One write, with the list that it leaves. POLICY stands for the request with the policies."""

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
    def entry(self) -> Entry:
        return entry_of((self.slot, self.rule.effect), self.rule)


Cells: TypeAlias = tuple[_Cell, ...]
_State: TypeAlias = "tuple[Cells, Policies]"


def _entries(cells: Cells, policies: Policies) -> list[Entry]:
    enabled = [cell.entry for cell in cells if cell.rule.enable]
    return [*enabled, *policies.entries()]


@dataclass(frozen=True)
class _Edit:
    """A change that is left to do: an insertion, an update, a move, a deletion or the policies."""

    kind: str
    slot: int = -1
    is_staged: bool = False


def transition(
    old: Sequence[Rule],
    new: Sequence[Rule],
    policies: tuple[Policies, Policies] = (Policies(), Policies()),
    *,
    is_enforced: bool = True,
) -> list[Write]:
    """Return the writes in order. Rules that are not enforced need no care."""
    return _Way(old, new, policies, is_enforced).writes()


class _Way:
    """The way from the old list to the new one."""

    def __init__(
        self,
        old: Sequence[Rule],
        new: Sequence[Rule],
        policies: tuple[Policies, Policies],
        is_enforced: bool,
    ) -> None:
        alignment = align(old, new)
        self.is_enforced = is_enforced
        self.policies, self.new_policies = policies
        cells: list[_Cell] = []
        for slot in alignment.old:
            if slot.old is not None:
                cells.append(_Cell(slot.number, slot.old, slot.old == slot.new))
        self.cells: Cells = tuple(cells)
        self.goals: list[int] = []
        self.rules: dict[int, Rule] = {}
        for slot in alignment.new:
            if slot.new is not None:
                self.goals.append(slot.number)
                self.rules[slot.number] = slot.new
        self.settled = set(alignment.fixed)
        self.free_slot = len(old) + len(new)
        self.edits = self._edits(alignment.fixed)
        self.old_entries = _entries(self.cells, self.policies)

    def _edits(self, fixed: frozenset[int]) -> list[_Edit]:
        """Return the edits in the order in which they are tried: insertions from the last one, so
        that a block on top needs no moves.
        """
        present = {cell.slot for cell in self.cells}
        edits = [_Edit(CREATE, slot) for slot in reversed(self.goals) if slot not in present]
        edits += [_Edit(MOVE, slot) for slot in self.goals if slot in present - fixed]
        for cell in self.cells:
            if cell.slot in self.rules and not cell.is_new:
                edits.append(_Edit(UPDATE, cell.slot))
        if self.policies != self.new_policies:
            edits.append(_Edit(POLICY))
        gone = [cell.slot for cell in reversed(self.cells) if cell.slot not in self.rules]
        return edits + [_Edit(DELETE, slot) for slot in gone]

    # -- the search ------------------------------------------------------------------------------

    def writes(self) -> list[Write]:
        """Return the writes in order."""
        found: list[Write] = []
        while self.edits:
            step = self._next_edit()
            found += self._stage() if step is None else step
        return found

    def _next_edit(self) -> list[Write] | None:
        """Carry the first edit out that is safe, and return its writes."""
        for edit in self.edits:
            states = list(self._states(edit))
            if all(self._is_safe(cells, policies) for _write, cells, policies in states):
                self.edits.remove(edit)
                return self._accept(edit, states)
        return None

    def _accept(self, edit: _Edit, states: list[tuple[Write, Cells, Policies]]) -> list[Write]:
        if states:
            _write, self.cells, self.policies = states[-1]
        if edit.kind in (CREATE, MOVE):
            self.settled.add(edit.slot)
        return [write for write, _cells, _policies in states]

    def _is_safe(self, cells: Cells, policies: Policies) -> bool:
        if not self.is_enforced:
            return True
        goal = self._goal_entries()
        middle = _entries(cells, policies)
        if is_between(self.old_entries, goal, middle):
            return True
        # The list now is safe, so a list between it and the new one is safe too.
        return is_between(_entries(self.cells, self.policies), goal, middle)

    def _goal_entries(self) -> list[Entry]:
        goal = tuple(_Cell(slot, self.rules[slot], True) for slot in self.goals)
        return _entries(goal, self.new_policies)

    # -- the writes of an edit -------------------------------------------------------------------

    def _states(self, edit: _Edit) -> Iterator[tuple[Write, Cells, Policies]]:
        if edit.kind == CREATE:
            yield from self._create(edit.slot, self.rules[edit.slot])
        elif edit.kind == POLICY:
            rules = tuple(cell.rule for cell in self.cells)
            yield Write(POLICY, -1, None, {}, rules), self.cells, self.new_policies
        elif edit.kind == MOVE:
            if not self._is_in_place(edit.slot):
                pos = self._pos(edit.slot)
                yield self._moved(self.cells, pos, self._target(self.cells, edit.slot))
        elif edit.kind == UPDATE:
            yield self._updated(self._pos(edit.slot), self.rules[edit.slot])
        else:
            pos = self._pos(edit.slot)
            cells = self.cells[:pos] + self.cells[pos + 1 :]
            yield self._state(DELETE, pos, self.cells[pos].rule, {}, cells)

    def _create(self, slot: int, rule: Rule) -> Iterator[tuple[Write, Cells, Policies]]:
        cells = (_Cell(slot, rule, True), *self.cells)
        yield self._state(CREATE, 0, rule, rule.as_data(), cells)
        target = self._target(cells, slot)
        if target != 0:
            yield self._moved(cells, 0, target)

    def _updated(self, pos: int, rule: Rule) -> tuple[Write, Cells, Policies]:
        cell = self.cells[pos]
        cells = (*self.cells[:pos], _Cell(cell.slot, rule, True), *self.cells[pos + 1 :])
        return self._state(UPDATE, pos, rule, cell.rule.changes_to(rule), cells)

    def _moved(self, cells: Cells, pos: int, target: int) -> tuple[Write, Cells, Policies]:
        """Return the move that puts a rule at a position of the list without that rule."""
        others = cells[:pos] + cells[pos + 1 :]
        moved = (*others[:target], cells[pos], *others[target:])
        moveto = target if target <= pos else target + 1
        return self._state(MOVE, pos, cells[pos].rule, {"moveto": moveto}, moved)

    def _state(
        self, kind: str, pos: int, rule: Rule, data: dict[str, Any], cells: Cells
    ) -> tuple[Write, Cells, Policies]:
        result = tuple(cell.rule for cell in cells)
        return Write(kind, pos, rule, data, result), cells, self.policies

    def _pos(self, slot: int) -> int:
        return next(pos for pos, cell in enumerate(self.cells) if cell.slot == slot)

    def _is_in_place(self, slot: int) -> bool:
        """Return whether a rule already follows the order of the settled rules."""
        order = {number: place for place, number in enumerate(self.goals)}
        kept = [one.slot for one in self.cells if one.slot in self.settled or one.slot == slot]
        return kept == sorted(kept, key=lambda number: order[number])

    def _target(self, cells: Cells, slot: int) -> int:
        """Return the position behind the settled rule before it, in the list without the rule."""
        earlier = set(self.goals[: self.goals.index(slot)]) & self.settled
        others = [cell.slot for cell in cells if cell.slot != slot]
        places = [pos for pos, number in enumerate(others) if number in earlier]
        return places[-1] + 1 if places else 0

    # -- the way that is always safe -------------------------------------------------------------

    def _stage(self) -> list[Write]:
        """Replace an edit by safer ones, and return the writes that prepare them.

        A rule that is added disabled has no effect. When all new rules are there disabled, they
        are enabled from the first to the last, then the policies change, then the old rules go,
        from the last to the first: each list decides as the one before it or as the new one.
        """
        for kind in (CREATE, MOVE, UPDATE):
            for edit in self.edits:
                if edit.kind == kind and not edit.is_staged:
                    return self._staged(edit)
        raise AssertionError("a list of rules has no safe next write")

    def _staged(self, edit: _Edit) -> list[Write]:
        slot = edit.slot
        self.edits.remove(edit)
        if edit.kind != CREATE:
            slot = self._copy_slot(edit.slot)
        rule = self.rules[slot]
        states = list(self._create(slot, replace(rule, enable=False)))
        _write, self.cells, self.policies = states[-1]
        self.settled.add(slot)
        if rule.enable:
            self._add(_Edit(UPDATE, slot, is_staged=True))
        return [write for write, _cells, _policies in states]

    def _copy_slot(self, slot: int) -> int:
        """Give the rule a slot of its own; the old slot is deleted."""
        copy = self.free_slot
        self.free_slot += 1
        self.goals[self.goals.index(slot)] = copy
        self.rules[copy] = self.rules.pop(slot)
        self.settled.discard(slot)
        self.edits = [one for one in self.edits if one.slot != slot]
        self._add(_Edit(DELETE, slot))
        return copy

    def _add(self, edit: _Edit) -> None:
        """Add an edit in the order of the way that is always safe."""
        self.edits.append(edit)
        ranks = {CREATE: 0, MOVE: 0, UPDATE: 1, POLICY: 2, DELETE: 3}
        order = {slot: place for place, slot in enumerate(self.goals)}
        here = {cell.slot: -place for place, cell in enumerate(self.cells)}

        def rank(one: _Edit) -> tuple[int, int]:
            place = here if one.kind == DELETE else order
            return ranks[one.kind], place.get(one.slot, 0)

        self.edits.sort(key=rank)
