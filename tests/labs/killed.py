# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that die at a write, as by kill -9, while the task of that write continues, ends or fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from unittest import mock

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from tests.labs.maintenance import Killed
from tests.modules.estate_lab import Lab

# The moments of a death, and the end of the task that the last write has started.
BEFORE, GOING, ENDED, ABORTED = "before it", "its task continues", "its task ends", "its task fails"
MOMENTS = (BEFORE, GOING, ENDED, ABORTED)
_ENDLESS, _SHORT = "default=600000", "default=5"
_LOGIN = "ticket"
_send = ProxmoxerTransport.send


@dataclass
class Death:
    """The end of a process at its n-th write; nothing is sent any more."""

    lab: Lab
    nth: int
    moment: str
    writes: int = 0
    last: str = ""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def send(self, transport: ProxmoxerTransport, request: Request) -> Any:
        """Send a request, unless the process is dead."""
        if self.last:
            raise Killed
        if request.method == "GET" or str(request.path[-1]) == _LOGIN:
            return _send(transport, request)
        with self._lock:
            self.writes += 1
            is_last = self.writes == self.nth
            if is_last:
                self.last = f"{request.method} /{'/'.join(map(str, request.path))}"
        if not is_last:
            return _send(transport, request)
        if self.moment != BEFORE:
            self.lab.simulator.steer("/settings", {"task_ms": _ENDLESS})
            _send(transport, request)
        raise Killed


def run_killed(lab: Lab, nth: int, moment: str, module: str, options: Mapping[str, Any]) -> str:
    """Run a module until it dies at its n-th write, and return this write; empty if it ended."""
    death = Death(lab, nth, moment)

    def send(transport: ProxmoxerTransport, request: Request) -> Any:
        return death.send(transport, request)

    with mock.patch.object(ProxmoxerTransport, "send", send), suppress(Killed):
        lab.run(module, **options)
    return death.last


def end_tasks(lab: Lab, moment: str) -> None:
    """Let the tasks of a dead run end, or interrupt them, and wait for that."""
    if moment == ABORTED:
        for node, upid in _active(lab):
            lab.client.write("DELETE", "nodes", node, "tasks", upid)
    lab.simulator.steer("/settings", {"task_ms": _SHORT})
    until = time.monotonic() + 30
    while is_working(lab):
        assert time.monotonic() < until, "the tasks do not end"
        time.sleep(0.005)


def is_working(lab: Lab) -> bool:
    """Return whether a task runs."""
    return any(_active(lab))


def _active(lab: Lab) -> Iterator[tuple[str, str]]:
    for node in ("pve1", "pve2", "pve3"):
        for row in lab.client.get("nodes", node, "tasks", source="active"):
            if not row.get("endtime"):
                yield node, str(row["upid"])
