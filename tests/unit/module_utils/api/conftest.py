# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An HTTPS server that answers from a list, for what no simulator of Proxmox VE should have
to do.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


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
    """One answer: `data` or `body`; `drop` closes the connection instead, `delay` is in seconds."""

    data: Any = None
    status: int = 200
    reason: str = "OK"
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    delay: float = 0.0


def refusal(status: int, message: str, errors: dict[str, str] | None = None) -> Reply:
    """Return an error as PVE sends it: the reason phrase is the first line of the message."""
    body: dict[str, Any] = {"data": None, "message": message + "\n"}
    if errors:
        body["errors"] = errors
    return Reply(status=status, reason=message.splitlines()[0], body=json.dumps(body).encode())


class Scripted:
    """The server: `replies` are used up one by one, the last one stays."""

    def __init__(self, port: int, ca: Path) -> None:
        self.port = port
        self.ca = ca
        self.replies: list[Reply] = [Reply()]
        self.seen: list[Seen] = []
        self.connections = 0
        self._lock = threading.Lock()

    def next_reply(self) -> Reply:
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


def make_ca(directory: Path, name: str = "test CA") -> tuple[Any, Any, Path]:
    """Make a CA; return its certificate, its key and the path of its PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = _certificate(subject, subject, key.public_key(), key, ca=True)
    path = directory / f"{name.replace(' ', '-')}.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return certificate, key, path


def make_server_pair(
    directory: Path, ca: Any, ca_key: Any, address: str = "127.0.0.1"
) -> tuple[Path, Path]:
    """Make a server's certificate and key; return their paths."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
    certificate = _certificate(subject, ca.subject, key.public_key(), ca_key, address=address)
    certificate_path, key_path = directory / f"{address}.pem", directory / f"{address}.key"
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate_path, key_path


def _certificate(
    subject: Any,
    issuer: Any,
    public_key: Any,
    signing_key: Any,
    ca: bool = False,
    address: str = "",
) -> Any:
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if address:
        name = x509.IPAddress(ipaddress.ip_address(address))
        builder = builder.add_extension(x509.SubjectAlternativeName([name]), critical=False)
    return builder.sign(signing_key, hashes.SHA256())


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
            reply = script.next_reply()
            time.sleep(reply.delay)
            if reply.drop:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
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


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path, Path]:
    """Paths of the CA, another CA, the server's certificate and its key."""
    directory = tmp_path_factory.mktemp("tls")
    ca, ca_key, ca_path = make_ca(directory)
    other = make_ca(directory, "other CA")[2]
    return ca_path, other, *make_server_pair(directory, ca, ca_key)


@pytest.fixture
def script(certificates: tuple[Path, Path, Path, Path]) -> Iterator[Scripted]:
    """A server on 127.0.0.1 that answers `{"data": null}` until it gets other replies."""
    ca_path, _unused, certificate, key = certificates
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.daemon_threads = True
    script = Scripted(server.server_address[1], ca_path)
    server.RequestHandlerClass = _handler(script)
    server.handle_error = lambda *_unused: None  # type: ignore[method-assign]
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    yield script
    server.shutdown()
    with contextlib.suppress(OSError):
        server.server_close()
    thread.join()
