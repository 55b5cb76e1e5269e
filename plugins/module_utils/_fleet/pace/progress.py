# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a fleet is, in words, for the line that shows progress."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..._api.protocols import Progress
from ..._core.shown import counted


class RunProgress:
    """Counts VMs that are done and at work; safe to use from several threads."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._done = 0
        self._busy = 0
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count a VM as running, and at the end as done."""
        with self._lock:
            self._busy += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1
                self._done += 1

    def __str__(self) -> str:
        with self._lock:
            return f"{self._done} of {counted(self._number, 'VM')} done, {self._busy} at work"

    def over(self, progress: Progress | None) -> Progress | None:
        """Return a progress callback that also shows the counts of the run, or None without one."""
        if progress is None:
            return None
        return lambda upid, seconds, _status: progress(upid, seconds, str(self))
