# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one loop that looks again until a deadline."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import poll
from tests.fake_clock import FakeClock


def test_pauses_grow_and_the_last_is_cut_to_what_is_left() -> None:
    clock = FakeClock()
    lefts = list(poll(clock, 3, first=0.5, longest=1.0, factor=1.5))
    assert clock.slept == [0.5, 0.75, 1.0, 0.75]
    assert lefts == [3, 2.5, 1.75, 0.75, 0]


def test_the_first_look_is_made_at_once() -> None:
    clock = FakeClock()
    for _left in poll(clock, 60):
        break
    assert clock.slept == []


@pytest.mark.parametrize("seconds", [0, -5])
def test_without_time_there_is_one_look_and_no_pause(seconds: float) -> None:
    clock = FakeClock()
    assert list(poll(clock, seconds)) == [0.0]
    assert clock.slept == []


def test_a_look_that_takes_long_uses_up_the_time() -> None:
    clock = FakeClock()
    looks = 0
    for _left in poll(clock, 10, first=1):
        looks += 1
        clock.now += 20
    assert looks == 1
    assert clock.slept == []
