# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An HTTP server, mostly with TLS, that answers from a list, for what no simulator of Proxmox VE
should have to do.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.certificates import Pair


@dataclass
class Seen:
    """One request as the server saw it."""

    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    headers: dict[str, str]


@dataclass
class Reply:
    """One answer: `data` or `body`; `drop` closes the connection instead, `delay` is in seconds.

    `pauses` is a pause in seconds before each byte, from the byte at this place on: `(place,
    seconds)`. The place 0 is the first byte of the status line.
    """

    data: Any = None
    status: int = 200
    reason: str = "OK"
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    delay: float = 0.0
    pauses: tuple[int, float] | None = None


def refusal(status: int, message: str, errors: dict[str, str] | None = None) -> Reply:
    """Return an error as PVE sends it: the reason phrase is the first line of the message."""
    body: dict[str, Any] = {"data": None, "message": message + "\n"}
    if errors:
        body["errors"] = errors
    return Reply(status=status, reason=message.splitlines()[0], body=json.dumps(body).encode())


class Scripted:
    """The server: `replies` are used up one by one, the last one stays. `fixed` ones are for paths,
    below `/api2/json`.
    """

    def __init__(self, port: int, ca: Path) -> None:
        self.port = port
        self.ca = ca
        self.replies: list[Reply] = [Reply()]
        self.fixed: dict[str, Reply] = {}
        self.seen: list[Seen] = []
        self.connections = 0
        self._lock = threading.Lock()

    def next_reply(self, path: str) -> Reply:
        """Return the answer to a request for this path."""
        fixed = self.fixed.get(path.removeprefix("/api2/json"))
        if fixed is not None:
            return fixed
        with self._lock:
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    @property
    def options(self) -> dict[str, Any]:
        """Options that reach this server with a token."""
        return {
            "host": f"127.0.0.1:{self.port}",
            "token_id": "root@pam!test",
            "token_secret": "very-secret-token",
            "ca_path": str(self.ca),
        }


class _Slow(io.BytesIO):
    """A stream that writes byte by byte, with pauses."""

    def __init__(self, stream: Any, place: int, seconds: float) -> None:
        super().__init__()
        self._stream = stream
        self._rest = place
        self._seconds = seconds

    def write(self, data: Any) -> int:
        at_once = bytes(data)[: self._rest]
        self._stream.write(at_once)
        self._rest -= len(at_once)
        for number in bytes(data)[len(at_once) :]:
            time.sleep(self._seconds)
            self._stream.write(bytes([number]))
        return len(data)


def _handler(script: Scripted) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            script.connections += 1
            super().setup()

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            form = dict(parse_qsl(self.rfile.read(length).decode(), keep_blank_values=True))
            parts = urlsplit(self.path)
            headers = {key.lower(): value for key, value in self.headers.items()}
            script.seen.append(
                Seen(
                    self.command,
                    parts.path,
                    dict(parse_qsl(parts.query, keep_blank_values=True)),
                    form,
                    headers,
                )
            )
            reply = script.next_reply(parts.path)
            time.sleep(reply.delay)
            if reply.drop:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if reply.pauses is not None:
                self.wfile = _Slow(self.wfile, *reply.pauses)
            body = json.dumps({"data": reply.data}).encode() if reply.body is None else reply.body
            self.send_response(reply.status, reply.reason)
            self.send_header("Content-Type", "application/json;charset=UTF-8")
            self.send_header("Content-Length", str(len(body)))
            for key, value in reply.headers.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = _serve

        def log_message(self, *_unused: Any) -> None:
            pass

    return Handler


@contextmanager
def serving(ca: Path, pairs: Sequence[Pair]) -> Iterator[Scripted]:
    """A server on 127.0.0.1 that answers `{"data": null}` until it gets other replies.

    Each connection gets the next pair, in turn. Without a pair the server has no TLS.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.daemon_threads = True
    script = Scripted(server.server_address[1], ca)
    server.RequestHandlerClass = _handler(script)
    server.handle_error = lambda *_unused: None  # type: ignore[method-assign]
    if pairs:
        server.socket = _context(pairs).wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        with contextlib.suppress(OSError):
            server.server_close()
        thread.join()


def _context(pairs: Sequence[Pair]) -> ssl.SSLContext:
    contexts = []
    for pair in pairs:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        contexts.append(context)
    turns = itertools.cycle(contexts)

    def choose(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        """OpenSSL asks before it sends a certificate, even if the client names no server."""
        connection.context = next(turns)

    contexts[0].sni_callback = choose
    return contexts[0]
