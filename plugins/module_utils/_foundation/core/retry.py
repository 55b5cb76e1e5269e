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


@dataclass
class NetworkBudget:
    """A span of time in seconds that starts with the first `again`, with growing pauses.

    `limit` is the maximum of tries, if any.
    """

    clock: Clock
    backoff: Backoff
    seconds: float
    limit: int | None = None
    tries: int = field(default=1, init=False)
    _end: float | None = field(default=None, init=False)

    def again(self, maximum: int | None = None) -> bool:
        """Wait and return True, or return False if time or tries are used up.

        `maximum` limits the tries for this failure; a number of tries in the settings replaces it.
        The last pause is cut to the remaining time.
        """
        limit = maximum if self.limit is None else self.limit
        if limit is not None and self.tries >= limit:
            return False
        now = self.clock.monotonic()
        if self._end is None:
            self._end = now + self.seconds
        remaining = self._end - now
        if remaining <= 0:
            return False
        self.clock.sleep(min(self.backoff.pause(self.tries), remaining))
        self.tries += 1
        return True


@dataclass
class TimeBudget:
    """A span of time in seconds that starts with the first `again`, with pauses that grow from
    `first` up to `cap`.
    """

    clock: Clock
    seconds: float
    first: float = 0.5
    factor: float = 1.5
    cap: float = 5.0
    tries: int = field(default=1, init=False)
    _pause: float = field(default=0.0, init=False)  # the last one
    _end: float | None = field(default=None, init=False)

    def again(self) -> bool:
        """Wait and return True, or return False if the time is used up.

        The last pause is cut to the remaining time.
        """
        now = self.clock.monotonic()
        if self._end is None:
            self._end = now + self.seconds
        remaining = self._end - now
        if remaining <= 0:
            return False
        self._pause = min(self.cap, self._pause * self.factor) if self._pause else self.first
        self.clock.sleep(min(self._pause, remaining))
        self.tries += 1
        return True

    def reset(self) -> None:
        """Start a new span of time, after a success."""
        self._end = None
        self._pause = 0.0
        self.tries = 1
