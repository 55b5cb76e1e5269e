# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lowest layer: proxmoxer's API object, built once, over our own backend.

proxmoxer builds the URL and splits query and form. What is below HTTP status and text is ours,
because proxmoxer drops the message of an error and follows the environment of requests.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from .._core.clock import Clock
from .protocols import Row
from .request import Request, quoted
from .session import Answer, Session, read_data
from .settings import Connection


class ProxmoxerTransport:
    """Sends each request once; safe to use from several threads.

    No connection is made and proxmoxer is not imported before the first request.
    """

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._session = Session(connection, clock)
        self._backend = _Backend(self._session)
        self._api: Any = None

    @property
    def has_answered(self) -> bool:
        """Whether anything ever answered at the endpoint."""
        return self._session.has_answered

    @property
    def rows(self) -> list[Row]:
        """The record of the requests sent so far."""
        return self._session.rows

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        self._session.close()

    def send(self, request: Request) -> Any:
        """Return `data` of the answer to one try. Raises FleetError."""
        segments = [quoted(part) for part in request.segments]
        api = self._open()
        actions = {"GET": api.get, "POST": api.post, "PUT": api.put, "DELETE": api.delete}
        self._backend.begin(request)
        return actions[request.method](*segments, **request.values)

    def _open(self) -> Any:
        if self._api is None:
            from proxmoxer.core import ProxmoxResource

            self._api = ProxmoxResource(
                base_url=self._backend.get_base_url(),
                session=self._backend.get_session(),
                serializer=self._backend.get_serializer(),
            )
        return self._api


class _Backend:
    """A backend as proxmoxer's own are: base URL, session and serializer."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._thread = threading.local()  # the request that this thread is sending

    def begin(self, request: Request) -> None:
        """Note the request that proxmoxer will build next in this thread."""
        self._thread.request = request

    def get_base_url(self) -> str:
        """Return the URL that every path is appended to."""
        return self._session.base_url

    def get_session(self) -> _Backend:
        """Return what proxmoxer sends with."""
        return self

    def get_serializer(self) -> _Serializer:
        """Return what proxmoxer reads answers with."""
        return _Serializer()

    def request(
        self,
        method: str,
        url: str,
        data: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Return the answer to what proxmoxer has built. Raises FleetError."""
        request: Request = self._thread.request
        path = url[len(self._session.base_url) :]
        return self._session.send(
            method,
            path,
            data,
            params,
            timeout=request.timeout,
            number=request.number,
            record=request.record,
        )


class _Serializer:
    """Reads answers for proxmoxer."""

    def loads(self, answer: Answer) -> Any:
        """Return `data`. Raises NetworkError when the answer is not PVE's."""
        return read_data(answer)
