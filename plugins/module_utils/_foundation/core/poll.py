# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Polling until a deadline. The clock is an argument."""

from __future__ import annotations

from collections.abc import Iterator

from .clock import Clock


def poll(
    clock: Clock, seconds: float, *, first: float = 0.25, longest: float = 2.0, factor: float = 1.5
) -> Iterator[float]:
    """Yield the remaining seconds: at once, after each pause, and a last time at the deadline.

    The pauses grow from `first` to `longest` seconds; the last one is cut to the remaining time.
    The code after the loop handles the timeout: `for remaining in poll(clock, 300): if is_done():
    return`, then raise.
    """
    deadline = clock.monotonic() + seconds
    pause = first
    while True:
        yield max(0.0, deadline - clock.monotonic())
        remaining = deadline - clock.monotonic()  # the caller's check has taken time
        if remaining <= 0:
            return
        clock.sleep(min(pause, remaining))
        pause = min(longest, pause * factor)
