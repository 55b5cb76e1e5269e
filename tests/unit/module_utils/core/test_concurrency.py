# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of concurrent tasks: they hold in any order, no task waits forever, and failures lower
them for a while.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import TaskTimeout
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.parallel import (
    ConcurrencyLimiter,
    ConcurrencyLimits,
    Resource,
    within_limits,
)
from tests.fake_clock import FakeClock

NODE1, NODE2, ALL = ("node", "n1"), ("node", "n2"), ("all", "")
RESOURCES: list[Resource] = [ALL, NODE1, NODE2, ("storage", "s"), ("template", "9000")]


@given(
    works=st.lists(
        st.lists(st.frozensets(st.sampled_from(RESOURCES)), min_size=1, max_size=3), max_size=12
    ),
    most=st.builds(ConcurrencyLimits, *[st.integers(0, 3)] * 4),
    workers=st.integers(1, 6),
    shake=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_bounds_hold_and_all_is_done(
    works: list[list[frozenset[Resource]]], most: ConcurrencyLimits, workers: int, shake: bool
) -> None:
    """Each work is a row of tasks.

    Whatever is asked for, it is let in within the bounds, and all of it in the end.
    """
    gates, busy, lock = (
        ConcurrencyLimiter(most, time.monotonic),
        Counter[Resource](),
        threading.Lock(),
    )
    waiting = [(work, work[0]) for work in works]
    finished: list[int] = []
    over: list[str] = []

    def go() -> None:
        while True:
            work = gates.first(waiting)
            if work is None:
                return
            for at, resources in enumerate(work):
                if at:
                    gates.enter(resources)
                with lock:
                    busy.update(resources)
                    over.extend(
                        f"{one}" for one in resources if 0 < getattr(most, one[0]) < busy[one]
                    )
                if shake:
                    gates.back_off(resources)
                with lock:
                    busy.subtract(resources)
                gates.leave(resources, well=not shake)
            finished.append(1)

    threads = [threading.Thread(target=go, daemon=True) for _number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert len(finished) == len(works)
    assert over == []


def test_whoever_has_room_goes_first() -> None:
    """One that waits for a busy node does not hold up those that want another one."""
    gates = ConcurrencyLimiter(ConcurrencyLimits(node=1), FakeClock().monotonic)
    waiting = [("a", frozenset({NODE1})), ("b", frozenset({NODE1})), ("c", frozenset({NODE2}))]
    assert [gates.first(waiting), gates.first(waiting)] == ["a", "c"]
    gates.leave(frozenset({NODE1}))
    assert gates.first(waiting) == "b"
    assert gates.first(waiting) is None


def test_trouble_halves_and_success_brings_back() -> None:
    clock = FakeClock()
    gates = ConcurrencyLimiter(ConcurrencyLimits(node=8), clock.monotonic)
    use = frozenset({NODE1})
    for _number in range(8):
        gates.enter(use)
    gates.back_off(use)
    gates.back_off(use)  # the others that were at work complain too
    assert gates.limits() == {NODE1: 4}
    clock.sleep(5)
    gates.back_off(use)
    assert gates.limits() == {NODE1: 2}
    for _number in range(7):
        gates.leave(use, well=False)
    clock.sleep(5)
    gates.back_off(use)
    clock.sleep(5)
    gates.back_off(use)
    assert gates.limits() == {NODE1: 1}
    gates.leave(use)
    seen = []
    for _number in range(40):
        gates.enter(use)
        gates.leave(use)
        seen.append(gates.limits()[NODE1])
    assert seen == sorted(seen)
    assert seen[-1] == 8


def test_a_run_that_is_given_up_lets_no_task_in() -> None:
    gates = ConcurrencyLimiter(ConcurrencyLimits(node=1), FakeClock().monotonic)
    use = frozenset({NODE1})
    gates.enter(use)
    failed: list[str] = []

    def wait() -> None:
        try:
            gates.enter(use)
        except TaskTimeout as error:
            failed.append(error.answer)

    thread = threading.Thread(target=wait)
    thread.start()
    gates.close()
    thread.join(300)
    assert failed == ["the run was given up"]
    assert gates.first([("a", frozenset())]) is None


def test_work_within_limits_uses_every_free_node() -> None:
    """Three guests of one node and one of another: the other node does not wait for the first."""
    limits = ConcurrencyLimits(all=2, node=1, storage=2)
    nodes = {"a": NODE1, "b": NODE1, "c": NODE1, "d": NODE2}
    items = [(name, frozenset({ALL, node})) for name, node in nodes.items()]
    met = threading.Barrier(2)
    order: list[str] = []

    def work(name: str) -> str:
        if name in "ad":
            met.wait(300)
        order.append(name)
        return name.upper()

    assert within_limits(work, items, limits, time.monotonic) == ["A", "B", "C", "D"]
    assert set(order[:2]) == {"a", "d"}


def test_an_error_ends_the_work_within_limits() -> None:
    def work(_name: str) -> None:
        raise TaskTimeout(attempted="x", answer="over")

    items = [(str(number), frozenset({NODE1})) for number in range(9)]
    with pytest.raises(TaskTimeout):
        within_limits(work, items, ConcurrencyLimits(node=1), time.monotonic)
