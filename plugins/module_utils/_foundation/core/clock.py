# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time as a value, so that tests need not wait."""

from __future__ import annotations

import threading
import time


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
