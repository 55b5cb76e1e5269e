# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Work side by side: in order, within bounds, and over at once when something goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.parallel import (
    all_at_once,
    side_by_side,
)

LONG = 300.0  # seconds that nothing here takes, however busy the machine is


class Watched:
    """Counts how many are at work at once; each waits until the expected number are, or a while."""

    def __init__(self, expected: int) -> None:
        self._full = threading.Barrier(expected) if expected > 1 else None
        self._lock = threading.Lock()
        self.busy = self.most = 0

    def work(self, item: int) -> int:
        with self._lock:
            self.busy += 1
            self.most = max(self.most, self.busy)
        if self._full is not None:
            self._full.wait(LONG)
        with self._lock:
            self.busy -= 1
        return item * item


@pytest.mark.parametrize(
    ("items", "workers", "at_once"),
    [(0, 4, 0), (1, 4, 1), (6, 1, 1), (6, 0, 1), (6, -1, 1), (6, 3, 3), (4, 9, 4)],
)
def test_answers_come_in_order_and_no_more_are_at_work_than_allowed(
    items: int, workers: int, at_once: int
) -> None:
    watched = Watched(at_once)
    assert side_by_side(watched.work, range(items), workers) == [
        item * item for item in range(items)
    ]
    assert watched.most == at_once


def test_one_worker_needs_no_thread() -> None:
    threads = side_by_side(lambda _item: threading.current_thread(), [1, 2], 1)
    assert threads == [threading.current_thread()] * 2
    assert threading.current_thread() not in side_by_side(
        lambda _item: threading.current_thread(), [1, 2], 2
    )


def test_a_failure_ends_what_has_not_started_and_waits_for_no_worker() -> None:
    started: list[int] = []
    release = threading.Event()

    def work(item: int) -> None:
        started.append(item)
        if item == 0:
            raise KeyError("no")
        release.wait(LONG)

    start = time.monotonic()
    with pytest.raises(KeyError):
        side_by_side(work, range(50), 2)
    assert time.monotonic() - start < LONG / 2
    release.set()
    assert len(started) <= 4  # two at work, and what was taken up before the failure was heard


def test_a_failure_in_the_only_thread_ends_the_rest() -> None:
    started: list[int] = []

    def work(item: int) -> None:
        started.append(item)
        raise KeyError("no")

    with pytest.raises(KeyError):
        side_by_side(work, range(5), 1)
    assert started == [0]


def test_workers_that_all_do_the_same() -> None:
    left = list(range(20))
    done: list[int] = []
    together = threading.Barrier(4)

    def work() -> None:
        together.wait(LONG)
        while True:
            try:
                done.append(left.pop())
            except IndexError:
                return

    all_at_once(work, 4)
    assert sorted(done) == list(range(20))


def test_without_workers_nothing_is_done() -> None:
    all_at_once(lambda: pytest.fail("not asked"), 0)


def test_what_one_worker_raises_is_heard_at_once() -> None:
    release = threading.Event()
    numbers = iter(range(3))

    def work() -> None:
        if next(numbers) == 0:
            raise KeyError("no")
        release.wait(LONG)

    start = time.monotonic()
    with pytest.raises(KeyError):
        all_at_once(work, 3)
    assert time.monotonic() - start < LONG / 2
    release.set()


def blocked(_item: int) -> set[int]:
    """Return the signals that the calling thread does not get."""
    return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}


def test_signals_are_left_to_the_main_thread() -> None:
    # A handler in Python runs in the main thread, which a signal wakes only if it gets it. Of two
    # signals at once, Linux gives the second to any thread that does not block it (complete_signal
    # in kernel/signal.c), and that thread may take both.
    before = blocked(0)
    for mask in side_by_side(blocked, range(4), 2):
        assert {signal.SIGINT, signal.SIGTERM, signal.SIGALRM} <= mask
    assert blocked(0) == before


def test_two_signals_at_once_end_a_process_that_waits_for_its_threads() -> None:
    # As Ansible ends a worker. Without the masks above about every tenth such process runs on.
    code = """
import os, signal
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.parallel import side_by_side

def end(number, frame):
    os._exit(7)

def work(number):
    if number == 0:
        print(flush=True)
    while True:
        pass

signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGTERM, end)
side_by_side(work, [0, 1], 2)
"""
    found_here = {**os.environ, "PYTHONPATH": os.environ["ANSIBLE_COLLECTIONS_PATH"]}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=found_here, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(LONG) == 7
        finally:
            process.kill()
