# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A clock that can be stopped: threads end at their next pause, and not before."""

from __future__ import annotations

import threading

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import (
    Clock,
    Stoppable,
)
from tests.fake_clock import FakeClock


class Stopped(Exception):
    """What the pauses raise."""


def test_until_it_is_stopped_it_is_the_clock_beneath() -> None:
    beneath = FakeClock()
    clock = Stoppable(beneath, Stopped())
    before = clock.monotonic()
    clock.sleep(3.5)
    assert clock.monotonic() == beneath.monotonic() == before + 3.5
    assert clock.time() == beneath.time()


def test_a_pause_that_begins_after_the_stop_raises_and_takes_no_time() -> None:
    beneath, error = FakeClock(), Stopped("given up")
    clock = Stoppable(beneath, error)
    clock.stop()
    before = beneath.monotonic()
    for _again in range(2):
        with pytest.raises(Stopped) as caught:
            clock.sleep(100.0)
        assert caught.value is error
    with pytest.raises(Stopped):
        clock.sleep(0.0)
    assert beneath.monotonic() == before
    assert clock.time() == beneath.time()  # telling the time is not a pause


def test_a_pause_that_is_under_way_raises_at_its_end() -> None:
    pausing, resume = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    class Held(Clock):
        def sleep(self, seconds: float) -> None:
            pausing.set()
            resume.wait(300)

    clock = Stoppable(Held(), Stopped())

    def work() -> None:
        try:
            clock.sleep(1.0)
        except Stopped as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert pausing.wait(300)
    clock.stop()
    assert not raised
    resume.set()
    thread.join(10)
    assert len(raised) == 1


def test_a_stop_of_one_clock_is_none_of_another() -> None:
    beneath = FakeClock()
    one, other = Stoppable(beneath, Stopped()), Stoppable(beneath, Stopped())
    one.stop()
    other.sleep(1.0)
