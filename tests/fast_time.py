# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clock that runs ahead: waiting costs next to nothing, and deadlines come as they would."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock

# The longest real pause, in seconds. The simulator's tasks are in real time and short.
LONGEST = 0.02


class FastTime:
    """Seconds that were waited for, but not spent; several threads wait side by side."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ahead = 0.0

    def monotonic(self) -> float:
        """Return the real and the skipped seconds."""
        return time.monotonic() + self._ahead

    def sleep(self, seconds: float) -> None:
        """Wait a moment, and be later by the whole time."""
        if seconds <= 0:
            return
        end = self.monotonic() + seconds
        time.sleep(min(seconds, LONGEST))
        with self._lock:
            self._ahead = max(self._ahead, end - time.monotonic())


@contextmanager
def fast_time() -> Iterator[FastTime]:
    """Let every real clock of the collection run ahead."""
    fast = FastTime()
    with (
        mock.patch.object(Clock, "monotonic", fast.monotonic),
        mock.patch.object(Clock, "sleep", fast.sleep),
    ):
        yield fast
