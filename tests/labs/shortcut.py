# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A shortcut for requests of this process to a simulator that runs in a thread of it.

The collection's client is unchanged down to the adapter of `requests`. A request takes the
shortcut if HTTP and TLS would add nothing to it: the client trusts the server's CA, no fault of
connections is set, and the body is not streamed. Every other request takes a connection.
"""

from __future__ import annotations

import concurrent.futures
import io
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import RemoteDisconnected
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse
from urllib3.exceptions import ProtocolError

from tests.simulator.threaded import PlainAnswer, PlainRequest, ThreadedSimulator
from tests.simulator.web.server import Dropped

# Of a header, or the path with its query: aiohttp refuses more than 8190 bytes.
MOST = 4096

_running: dict[str, ThreadedSimulator] = {}
_send = HTTPAdapter.send


@contextmanager
def shortcut(simulator: ThreadedSimulator) -> Iterator[None]:
    """Give requests of this process to this simulator the shortcut."""
    place = urlsplit(simulator.url).netloc
    _running[place] = simulator
    # For good: it passes on requests to other places.
    mock.patch.object(HTTPAdapter, "send", _send_shortly).start()
    try:
        yield
    finally:
        del _running[place]


def _send_shortly(
    adapter: HTTPAdapter,
    request: requests.PreparedRequest,
    stream: bool = False,
    timeout: Any = None,
    *others: Any,
    **more: Any,
) -> requests.Response:
    """Stand in for HTTPAdapter.send."""
    simulator = _running.get(urlsplit(str(request.url)).netloc)
    answer = None
    if simulator is not None and _is_short(request) and _trusts(adapter, simulator):
        answer = _ask(simulator, request, timeout)
    if answer is None:
        return _send(adapter, request, stream, timeout, *others, **more)
    raw = HTTPResponse(
        body=io.BytesIO(answer.body),
        headers=answer.headers,
        status=answer.status,
        # HTTP has bytes here, which Python's client reads as Latin-1.
        reason=answer.reason.encode().decode("latin-1").strip(),
        preload_content=False,
    )
    return adapter.build_response(request, raw)


def _trusts(adapter: HTTPAdapter, simulator: ThreadedSimulator) -> bool:
    context = adapter.poolmanager.connection_pool_kw.get("ssl_context")
    return context is not None and simulator.trusted_by(context)


def _is_short(request: requests.PreparedRequest) -> bool:
    """Return whether HTTP can carry the request as it is, in one piece."""
    head = [str(request.url), *map(str, request.headers.values())]
    if any(len(text) > MOST or not text.isascii() for text in head):
        return False
    return request.body is None or isinstance(request.body, (str, bytes))


def _ask(
    simulator: ThreadedSimulator, request: requests.PreparedRequest, timeout: Any
) -> PlainAnswer | None:
    """Return the answer, or None if the request needs a connection. Raises errors of requests."""
    body = request.body or b""
    if isinstance(body, str):
        body = body.encode()
    plain = PlainRequest(str(request.method), request.path_url, request.headers, body)
    _connect, read = timeout
    try:
        return simulator.exchange(plain, read)
    except concurrent.futures.TimeoutError as error:
        raise requests.exceptions.ReadTimeout(error, request=request) from error
    except Dropped:
        lost = RemoteDisconnected("Remote end closed connection without response")
        broken = ProtocolError("Connection aborted.", lost)
        raise requests.exceptions.ConnectionError(broken, request=request) from None
