"""The ports of a server: its API and its control plane, with a certificate of its own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from ..initial.build import simulation
from ..options import Options, UsageError
from .bodies import request_of
from .certs import make_certificates
from .control import Control
from .server import IDLE_S, Server


@dataclass(frozen=True)
class Ports:
    """The addresses of a running server, and what answers there."""

    url: str
    control_url: str
    ca_file: Path
    server: Server
    control: Control
    api: web.Server


@contextlib.asynccontextmanager
async def listening(options: Options, directory: Path) -> AsyncIterator[Ports]:
    """Build the cluster and serve it. Raises UsageError."""
    ca_file, server_pem, context = make_certificates(directory)
    server = Server(simulation(options), options)
    server.sim.ca_pem = ca_file.read_text(encoding="ascii")
    server.sim.server_pem = server_pem
    quiet = logging.getLogger("simulator")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    api = web.Server(
        server.handle,
        request_factory=request_of,
        access_log=None,
        logger=quiet,
        keepalive_timeout=IDLE_S,
    )
    control = Control(server, server.rebuild)
    plane = web.Server(control.handle, request_factory=request_of, access_log=None, logger=quiet)
    listener, url = await _listen(api, options.host, options.port, context)
    listeners, control_url = [listener], ""
    if options.control:
        listener, control_url = await _listen(plane, options.host, 0, context)
        listeners.append(listener)
    try:
        yield Ports(url, control_url, ca_file, server, control, api)
    finally:
        for one in listeners:
            one.close()
        for handler in (api, plane):
            await handler.shutdown(0.01)  # 0: without a limit


async def _listen(
    handler: web.Server, host: str, port: int, context: ssl.SSLContext
) -> tuple[asyncio.Server, str]:
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(
            handler, host, port, ssl=context, backlog=1024, reuse_address=True
        )
    except OSError as error:
        reason = (
            "the port is in use"
            if error.errno == errno.EADDRINUSE
            else str(error.strerror or error)
        )
        raise UsageError(f"cannot listen on {host}:{port}: {reason}") from None
    return server, _url(host, server.sockets[0].getsockname()[1])


def _url(host: str, port: int) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
