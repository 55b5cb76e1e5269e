# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS 1.2 before a server, which negotiates again in the middle of a connection, with another
certificate. Python's `ssl` cannot do this.
"""

from __future__ import annotations

import contextlib
import select
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from OpenSSL import SSL

from tests.certificates import Pair
from tests.scripted import Scripted, serving

_SIZE = 65536


class Connection:
    """One connection of a client, and the one behind it to the server without TLS."""

    def __init__(self, client: socket.socket, port: int, good: Pair, later: Pair, at: int) -> None:
        self._client = client
        self._later = _context(later)
        self._at = at
        self._tls = SSL.Connection(_context(good), client)
        self._behind = socket.create_connection(("127.0.0.1", port))
        self._exchanges = 0

    def pass_on(self) -> None:
        """Pass on the data of both sides, until one of them ends."""
        is_asking = False
        with self._behind:
            self._tls.set_accept_state()
            self._tls.do_handshake()
            self._client.setblocking(False)
            while True:
                asked = self._read()
                if asked is not None:
                    self._behind.sendall(asked)
                    self._exchanges += not is_asking
                    is_asking = True
                if select.select([self._behind], [], [], 0)[0]:
                    answer = self._behind.recv(_SIZE)
                    if not answer:
                        return
                    if is_asking and self._exchanges == self._at:
                        self._renegotiate()
                    is_asking = False
                    self._tls.sendall(answer)
                elif asked is None:
                    select.select([self._client, self._behind], [], [])

    def _read(self) -> bytes | None:
        """Return the data that the client has sent, None if there is none now."""
        try:
            return self._tls.recv(_SIZE)
        except SSL.WantReadError:
            return None

    def _renegotiate(self) -> None:
        """Ask for another handshake. Raises SSL.Error if the client refuses it."""
        self._tls.set_context(self._later)
        self._tls.renegotiate()
        self._tls.do_handshake()
        while self._tls.renegotiate_pending() or not self._is_negotiated():
            if self._read() is None:
                select.select([self._client], [], [])

    def _is_negotiated(self) -> bool:
        return b"finished successfully" in self._tls.get_state_string()


def _context(pair: Pair) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_max_proto_version(SSL.TLS1_2_VERSION)
    context.use_certificate_chain_file(str(pair.certificate))
    context.use_privatekey_file(str(pair.key))
    # A session that continues needs no certificate.
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_options(SSL.OP_NO_TICKET)
    return context


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, *_unused: Any) -> None:
        pass


@contextmanager
def renegotiating(ca: Path, good: Pair, later: Pair, at: int = 2) -> Iterator[Scripted]:
    """A server whose connections begin with a good certificate.

    Before the answer to request number `at` of a connection it asks for a handshake, in which it
    would show the other certificate, and does not answer without that.
    """

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(SSL.Error, OSError):
                Connection(self.request, behind, good, later, at).pass_on()

    with serving(ca, []) as script, _Server(("127.0.0.1", 0), Handler) as server:
        behind = script.port
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        thread.start()
        script.port = server.server_address[1]
        try:
            yield script
        finally:
            server.shutdown()
            thread.join()
