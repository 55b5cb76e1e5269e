"""The death of a process at a write, as by kill -9: nothing is sent any more."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from unittest import mock

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from tests.labs.maintenance import Killed
from tests.modules.estate_lab import Lab

from .faults import KILLED, Write

_KILLED: Mapping[str, Any] = {"failed": True, "error": {"category": KILLED}, "msg": "killed"}
_send = ProxmoxerTransport.send


class _Death:
    """Ends a process before or after its n-th request with a method and a path."""

    def __init__(self, write: Write, after: bool) -> None:
        self._write = write
        self._after = after
        self._lock = threading.Lock()
        self._seen = 0
        self.is_dead = False

    def send(self, transport: ProxmoxerTransport, request: Request) -> Any:
        is_last = self._is_last(request)
        if self.is_dead or (is_last and not self._after):
            self.is_dead = True
            raise Killed
        answer = _send(transport, request)
        if is_last or self.is_dead:
            self.is_dead = True
            raise Killed
        return answer

    def _is_last(self, request: Request) -> bool:
        path = "/".join(map(str, ("", *request.path)))
        if (request.method, path) != (self._write.method, self._write.path):
            return False
        with self._lock:
            self._seen += 1
            return self._seen == self._write.nth


def run_killed(
    lab: Lab, write: Write, after: bool, options: Mapping[str, Any]
) -> tuple[Mapping[str, Any], bool]:
    """Run the module of a scenario until it dies, and return its result, and whether it died."""
    death = _Death(write, after)

    def send(transport: ProxmoxerTransport, request: Request) -> Any:
        return death.send(transport, request)

    with mock.patch.object(ProxmoxerTransport, "send", send):
        try:
            return lab.run(write.scenario.module, **options), False
        except Killed:
            return _KILLED, True
