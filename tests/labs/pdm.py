# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Proxmox Datacenter Manager that lists its remotes.

From proxmox-datacenter-manager: server/src/api/remotes/mod.rs (list_remotes empties the token),
lib/pdm-api-types/src/remotes.rs (Remote, NodeUrl), server/src/auth/mod.rs (auth_token_prefix), and
proxmox-auth-api (extract_auth_data: PREFIX=ID:SECRET).
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.certificates import Authority

TOKEN_ID, SECRET = "automation@pdm!ansible", "33333333-0000-4000-8000-000000000001"


class Manager:
    """A manager with these remotes: for each its type, and its nodes with their addresses."""

    def __init__(self, directory: Path, remotes: Mapping[str, tuple[str, list[str]]]) -> None:
        self.remotes = dict(remotes)
        self.requests: list[str] = []
        authority = Authority(directory, "manager CA")
        self.ca = authority.file
        pair = authority.issue("manager")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def options(self) -> dict[str, Any]:
        """The key C(pdm) of a sites file."""
        host = f"https://127.0.0.1:{self._server.server_address[1]}"
        return {"host": host, "token_id": TOKEN_ID, "token_secret": SECRET, "ca_path": str(self.ca)}

    def answer(self, path: str, authorization: str) -> tuple[int, Any]:
        """Return the status and the data of a GET."""
        self.requests.append(path)
        if authorization != f"PDMAPIToken={TOKEN_ID}:{SECRET}":
            return 401, None
        if path != "/api2/json/remotes/remote":
            return 404, None
        return 200, [
            {"type": kind, "id": name, "nodes": nodes, "authid": "root@pam!pdm", "token": ""}
            for name, (kind, nodes) in self.remotes.items()
        ]

    def __enter__(self) -> Manager:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(manager: Manager) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, data = manager.answer(self.path, self.headers.get("Authorization", ""))
            body = json.dumps({"data": data, "digest": "0" * 64}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json;charset=UTF-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_unused: Any) -> None:
            """Write nothing."""

    return Handler
