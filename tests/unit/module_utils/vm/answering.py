# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server that answers by a function of path and time, and whose tasks take five seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    FleetError,
    UnknownVm,
)
from tests.fake_api import FakeApi

GONE = UnknownVm(
    reason="unknown VM",
    answer="Configuration file 'nodes/pve2/qemu-server/100.conf' does not exist",
)


class Server(FakeApi):
    """Answers by a function of the path and the time, which starts at 0.

    Its tasks end with `ends`.
    """

    def __init__(
        self, answer: Callable[[tuple[Any, ...], float], Any], ends: FleetError | None = None
    ) -> None:
        super().__init__(self._answer)
        self.clock.now = 0.0
        self.at, self.ends = answer, ends
        self.waited: list[str] = []

    def _answer(self, request: Request) -> Any:
        if request.path[2:3] == ("tasks",) and request.path[-1] == "status":
            self.waited.append(request.path[3])
            self.clock.now += 5
            return self.ends or {"status": "stopped", "exitstatus": "OK"}
        return self.at(request.segments, self.clock.now)
