# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Work on several things side by side, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def side_by_side(
    work: Callable[[Item], Outcome], items: Sequence[Item], workers: int
) -> list[Outcome]:
    """Return what `work` returned for each item, in their order, with at most `workers` at once.

    What it raises cancels everything that has not started; work that may fail for one item alone
    returns its failure.
    """
    most = max(1, min(workers, len(items)))
    if most == 1:
        return [work(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # not loaded for one thing alone

    pool = ThreadPoolExecutor(max_workers=most, thread_name_prefix="pve-fleet")
    try:
        return list(pool.map(work, items))
    finally:  # a task whose time is up does not wait for those that are at work
        pool.shutdown(wait=False, cancel_futures=True)


def all_at_once(work: Callable[[], None], workers: int) -> None:
    """Let as many workers do the same until each returns.

    What one of them raises is raised at once.
    """
    side_by_side(lambda _number: work(), range(workers), workers)
