# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of retries in number and time. Clock and randomness are arguments."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from .clock import Clock


@dataclass(frozen=True)
class Backoff:
    """Growing pauses in seconds: base, base * factor, and so on.

    Each pause is longer by a random share of at most `jitter`. No pause is longer than `cap`.
    """

    base: float = 1.0
    factor: float = 2.0
    cap: float = 10.0
    jitter: float = 0.25
    rng: random.Random = field(default_factory=random.Random, compare=False)

    def pause(self, number: int) -> float:
        """Return the pause after try `number`, which counts from 1."""
        exponent = min(max(0, number - 1), 64)  # a far larger power is not a float
        plain = min(self.cap, self.base * self.factor**exponent)
        return min(self.cap, plain * (1 + self.jitter * self.rng.random()))


class NetworkBudget:
    """A span of time in seconds that starts with the first `again`, with growing pauses.

    The number of tries is limited too if it is set.
    """

    def __init__(
        self, clock: Clock, backoff: Backoff, seconds: float, tries: int | None = None
    ) -> None:
        self._clock = clock
        self._backoff = backoff
        self._seconds = seconds
        self._limit = tries
        self._end: float | None = None
        self.tries = 1

    def again(self, maximum: int | None = None) -> bool:
        """Wait and return True, or return False if time or tries are used up.

        `maximum` limits the tries for this failure; a number of tries in the settings replaces it.
        The last pause is cut to the remaining time.
        """
        limit = maximum if self._limit is None else self._limit
        if limit is not None and self.tries >= limit:
            return False
        now = self._clock.monotonic()
        if self._end is None:
            self._end = now + self._seconds
        remaining = self._end - now
        if remaining <= 0:
            return False
        self._clock.sleep(min(self._backoff.pause(self.tries), remaining))
        self.tries += 1
        return True


class TimeBudget:
    """A span of time in seconds that starts with the first `again`, with pauses that grow up to
    `cap`.
    """

    def __init__(
        self,
        clock: Clock,
        seconds: float,
        *,
        first: float = 0.5,
        factor: float = 1.5,
        cap: float = 5.0,
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._first = first
        self._factor = factor
        self._cap = cap
        self._pause = first
        self._end: float | None = None
        self.tries = 1

    def again(self) -> bool:
        """Wait and return True, or return False if the time is used up.

        The last pause is cut to the remaining time.
        """
        now = self._clock.monotonic()
        if self._end is None:
            self._end = now + self._seconds
        remaining = self._end - now
        if remaining <= 0:
            return False
        self._clock.sleep(min(self._pause, remaining))
        self._pause = min(self._cap, self._pause * self._factor)
        self.tries += 1
        return True

    def reset(self) -> None:
        """Start a new span of time, after a success."""
        self._end = None
        self._pause = self._first
        self.tries = 1
