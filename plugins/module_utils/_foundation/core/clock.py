# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time as a value, so that tests need not wait, and pauses that grow while code waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator


class Clock:
    """The real clock. A test passes its own clock with the same three methods."""

    def monotonic(self) -> float:
        """Return seconds that never decrease."""
        return time.monotonic()

    def time(self) -> float:
        """Return seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        if seconds > 0:
            time.sleep(seconds)


class Stoppable(Clock):
    """A clock whose pauses raise an error once it is stopped: threads cannot be ended in another
    way.
    """

    def __init__(self, clock: Clock, error: Exception) -> None:
        self._clock = clock
        self._error = error
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Make every pause from now on raise the error."""
        self._stopped.set()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def time(self) -> float:
        return self._clock.time()

    def sleep(self, seconds: float) -> None:
        if not self._stopped.is_set():
            self._clock.sleep(seconds)
        if self._stopped.is_set():
            raise self._error


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
