# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which new guest gives way, for a rule that has nothing to do with VMs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    Conflict,
    FleetError,
    TaskFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.race import (
    PATIENCE,
    RaceReading,
    resolve_race,
)
from tests.fake_api import FakeApi


@dataclass
class AtMostOneBeside:
    """There is room for one other guest beside number 20."""

    others: Callable[[int], list[int]]
    known: frozenset[int] = frozenset()
    finished: frozenset[int] = frozenset()
    vmid: int = 20
    looks: list[int] = field(default_factory=list)

    def read(self) -> RaceReading:
        self.looks.append(len(self.looks))
        guests = dict.fromkeys(self.others(len(self.looks)), "container")

        def find_breach(those: Mapping[int, str]) -> str:
            return ", ".join(str(one) for one in sorted(those)) if len(those) > 1 else ""

        return RaceReading(guests, find_breach, self._is_finished)

    def _is_finished(self, vmid: int) -> bool:
        assert vmid > self.vmid, "that one stays, whatever is in its notes"
        assert vmid not in self.known, "that one stays, whatever is in its notes"
        return vmid in self.finished

    def removed(self, breach: str) -> FleetError:
        return Conflict(answer=breach, reason="removed")

    def not_removed(self, breach: str, failure: FleetError) -> FleetError:
        return failure.on(attempted=f"Left beside {breach}")


def outcome(rule: AtMostOneBeside) -> tuple[str, float]:
    """Return beside which guests the new one was removed, and after how many seconds."""
    clock = FakeApi(lambda _request: None).clock
    start, gone = clock.now, []
    try:
        resolve_race(clock, rule, lambda: gone.append(rule.vmid))
    except Conflict as error:
        assert gone == [20]
        return error.answer, clock.now - start
    assert gone == []
    return "", clock.now - start


def test_one_look_is_enough_where_the_rule_holds() -> None:
    rule = AtMostOneBeside(lambda _look: [30])
    assert outcome(rule) == ("", 0)
    assert rule.looks == [0]


def test_it_gives_way_at_once_to_lower_numbers_and_names_only_these() -> None:
    assert outcome(AtMostOneBeside(lambda _look: [10, 11, 30])) == ("10, 11", 0)


def test_it_gives_way_at_once_to_those_that_were_there_before() -> None:
    assert outcome(AtMostOneBeside(lambda _look: [30, 31], frozenset((30, 31)))) == ("30, 31", 0)


def test_it_gives_way_at_once_to_those_that_are_finished() -> None:
    """Their runs have looked before this guest was there, and will not look again."""
    rule = AtMostOneBeside(lambda _look: [30, 31], finished=frozenset((30, 31)))
    assert outcome(rule) == ("30, 31", 0)


def test_it_waits_where_those_that_are_finished_leave_room() -> None:
    rule = AtMostOneBeside(lambda look: [30, 31] if look < 3 else [30], finished=frozenset((30,)))
    assert outcome(rule)[0] == ""


def test_it_stays_when_higher_numbers_give_way() -> None:
    assert outcome(AtMostOneBeside(lambda look: [30, 31] if look < 3 else [30]))[0] == ""


def test_it_gives_way_in_the_end_when_higher_numbers_stay() -> None:
    breach, seconds = outcome(AtMostOneBeside(lambda _look: [30, 31]))
    assert breach == "30, 31"
    assert seconds >= PATIENCE


def test_a_guest_that_cannot_be_removed_has_the_error_of_its_removal() -> None:
    def refuse() -> None:
        raise TaskFailed(answer="no")

    clock = FakeApi(lambda _request: None).clock
    with pytest.raises(TaskFailed, match="Left beside 10, 11: no"):
        resolve_race(clock, AtMostOneBeside(lambda _look: [10, 11]), refuse)
