# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Work on several things side by side, within bounds."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

# Signals with a handler in Python: Ansible's own, and the signal of its keyword `timeout`.
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


def leave_signals_to_the_main_thread() -> None:
    """Block the signals of a task in the calling thread, which is not the main one.

    Python runs handlers in the main thread alone. Of two signals in quick succession, as Ansible
    sends them to a worker, Linux may give both to a thread that is awake; then the main thread
    waits on, and the process does not end.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)


def side_by_side(
    work: Callable[[Item], Outcome], items: Sequence[Item], workers: int
) -> list[Outcome]:
    """Return the result of `work` for each item, in their order, with at most `workers` at once.

    An exception cancels every item that has not started; work that may fail for one item alone
    returns its failure.
    """
    maximum = max(1, min(workers, len(items)))
    if maximum == 1:
        return [work(item) for item in items]
    pool = ThreadPoolExecutor(
        max_workers=maximum,
        thread_name_prefix="pve-fleet",
        initializer=leave_signals_to_the_main_thread,
    )
    try:
        return list(pool.map(work, items))
    finally:  # a task whose time is up does not wait for the workers that are busy
        pool.shutdown(wait=False, cancel_futures=True)


def all_at_once(work: Callable[[], None], workers: int) -> None:
    """Call `work` in that number of threads and return when every call has returned.

    An exception of one call is raised at once.
    """
    side_by_side(lambda _number: work(), range(workers), workers)
