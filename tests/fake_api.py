# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Proxmox VE that is a function: a real client over it needs no server and no time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.endpoint import Endpoint
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.protocols import Row
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import resolve
from tests.fake_clock import FakeClock

Answer = Callable[[Request], Any]


class FakeApi:
    """The lowest layer of a client: it answers each request with the value or the exception of
    `answer`.

    An exception that is returned is raised too. `asked` has every request in order; `clock` is the
    client's, and sleeping by it costs no time.
    """

    has_answered = True
    endpoint = Endpoint("pve", 8006)

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.clock = FakeClock()
        self.asked: list[Request] = []
        self.rows: list[Row] = []

    def send(self, request: Request) -> Any:
        """Return or raise the answer."""
        self.asked.append(request)
        found = self.answer(request)
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """There is nothing to close."""

    @property
    def paths(self) -> list[tuple[Any, ...]]:
        """The paths of all requests, in order."""
        return [request.segments for request in self.asked]

    def client(self, **options: Any) -> Client:
        """Return a client of this API. It makes one try unless `retries` says otherwise."""
        token = {"host": "pve", "token_id": "root@pam!fleet", "token_secret": "x", "retries": 1}
        connection = resolve({**token, **options}, {})
        return Client(connection, clock=self.clock, transport=self)
