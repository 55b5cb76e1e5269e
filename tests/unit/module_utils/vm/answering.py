# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A client that answers by a function, with a clock that the tests own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._core.errors import FleetError, NotFound
from tests.fake_clock import FakeClock

GONE = NotFound(reason="unknown VM", answer="Configuration file 'nodes/pve2/qemu-server/100.conf' does not exist")


class Server:
    """Answers GETs by a function of the path and the time."""

    def __init__(self, answer: Callable[[tuple[Any, ...], float], Any], ends: FleetError | None = None) -> None:
        self.answer, self.ends, self.clock = answer, ends, FakeClock()
        self.clock.now = 0.0
        self.asked: list[tuple[Any, ...]] = []
        self.waited: list[str] = []

    def get(self, *path: Any, **_query: Any) -> Any:
        self.asked.append(path)
        found = self.answer(path, self.clock.now)
        if isinstance(found, FleetError):
            raise found
        return found

    def wait(self, upid: str, **_more: Any) -> None:
        self.waited.append(upid)
        self.clock.now += 5
        if self.ends is not None:
            raise self.ends
