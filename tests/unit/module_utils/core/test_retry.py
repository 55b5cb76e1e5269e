# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pauses and budgets with a clock that costs no time."""

from __future__ import annotations

import random

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.retry import (
    Backoff,
    NetworkBudget,
    TimeBudget,
)
from tests.fake_clock import FakeClock


def test_backoff_grows_to_its_cap() -> None:
    plain = Backoff(jitter=0)
    assert [plain.pause(number) for number in range(1, 8)] == [1, 2, 4, 8, 10, 10, 10]


def test_a_pause_after_very_many_tries_has_the_length_of_the_cap() -> None:
    assert Backoff(jitter=0).pause(5000) == 10


def test_jitter_makes_a_pause_longer_but_not_beyond_the_cap() -> None:
    backoff = Backoff(rng=random.Random(3))
    for number, plain in enumerate([1, 2, 4, 8], 1):
        assert plain <= backoff.pause(number) <= plain * 1.25
    assert backoff.pause(50) == 10


def test_network_budget_counts_tries() -> None:
    clock = FakeClock()
    budget = NetworkBudget(clock, Backoff(jitter=0), 30, 3)
    assert [budget.again(9), budget.again(9), budget.again(9)] == [True, True, False]
    assert clock.slept == [1, 2]


def test_network_budget_ends_with_its_time() -> None:
    clock = FakeClock()
    budget = NetworkBudget(clock, Backoff(jitter=0), 20)
    while budget.again():
        pass
    assert clock.slept == [1, 2, 4, 8, 5]


def test_network_budget_takes_a_limit_for_one_kind_of_failure() -> None:
    clock = FakeClock()
    budget = NetworkBudget(clock, Backoff(jitter=0), 30)
    assert [budget.again(3), budget.again(3), budget.again(3)] == [True, True, False]
    assert budget.again()


def test_time_budget_uses_its_span_and_no_more() -> None:
    clock = FakeClock()
    budget = TimeBudget(clock, 10)
    while budget.again():
        pass
    assert sum(clock.slept) == pytest.approx(10)
    assert clock.slept[:3] == [0.5, 0.75, 1.125]
    assert max(clock.slept) <= 5


def test_time_budget_of_nothing() -> None:
    clock = FakeClock()
    assert TimeBudget(clock, 0).again() is False
    assert clock.slept == []


def test_result_has_a_diff_only_when_asked() -> None:
    result = Result(True, {"vm": {"vmid": 100}}, {"before": "a", "after": "b"})
    assert result.as_dict() == {"changed": True, "vm": {"vmid": 100}}
    assert result.as_dict(diff=True)["diff"] == {"before": "a", "after": "b"}
