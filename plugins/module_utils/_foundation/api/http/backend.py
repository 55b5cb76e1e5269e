# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lowest layer: one try of a request, by proxmoxer.

proxmoxer joins the URL, and decides between query and form. `session` sends the HTTP request,
because proxmoxer drops the message of an error, and requests reads the environment.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

try:
    from proxmoxer.core import ProxmoxResource
except ImportError:  # reported by `require_libraries`
    ProxmoxResource = None

from ...core.clock import Clock
from ...core.errors import ConfigurationError
from ..request import Request, quoted
from ..settings import ConnectionSettings
from .session import HttpAnswer, HttpRequest, Session, read_beside, read_data
from .transport import requests


def require_libraries() -> None:
    """Raise ConfigurationError if this Python cannot import a library that every request needs."""
    for library, imported in (("proxmoxer", ProxmoxResource), ("requests", requests)):
        if imported is None:
            raise ConfigurationError(
                f"Could not connect to Proxmox VE: the Python library {library} cannot be "
                f"imported by {sys.executable}",
                f"Install it for this Python: pip install {library}",
                f"missing library {library}",
            )


class ProxmoxerTransport(Session):
    """Sends each request once; safe to use from several threads.

    The first request opens a connection.
    """

    def __init__(self, connection: ConnectionSettings, clock: Clock) -> None:
        require_libraries()
        super().__init__(connection, clock)

    def send(self, request: Request) -> Any:
        """Return `data` of the answer to one try. Raises FleetError."""
        segments = [quoted(part) for part in request.segments]
        exchange = _Exchange(self, request)
        api = ProxmoxResource(base_url="", session=exchange, serializer=exchange)
        calls = {"GET": api.get, "POST": api.post, "PUT": api.put, "DELETE": api.delete}
        return calls[request.method](*segments, **request.values)


@dataclass(frozen=True)
class _Exchange:
    """One request, and its answer: in place of the `requests` session and the serializer that
    proxmoxer uses.
    """

    session: Session
    wanted: Request

    def request(
        self,
        method: str,
        url: str,
        data: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> HttpAnswer:
        """Return the answer to the request that proxmoxer built. Raises FleetError."""
        wanted = self.wanted
        return self.session.send_http(
            HttpRequest(method, url, data, params, wanted.timeout, wanted.number, wanted.upload)
        )

    def loads(self, answer: HttpAnswer) -> Any:
        """Return `data`, or an object that also has the requested attribute beside it.

        Raises NetworkError if the answer is not from Proxmox VE.
        """
        if self.wanted.beside:
            return read_beside(answer, self.wanted.beside)
        return read_data(answer)
