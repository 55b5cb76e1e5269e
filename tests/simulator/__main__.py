"""`pve-simulator`, in a clone `python -m tests.simulator`: starts the server and prints its
address.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import shutil
import signal
import ssl
import sys
import tempfile
from pathlib import Path

if __package__ in (None, ""):  # started as a file or directory
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    __package__ = "tests.simulator"

from aiohttp import web

from .initial.build import simulation
from .options import Options, UsageError, parse
from .web.bodies import request_of
from .web.certs import make_certificates
from .web.control import Control
from .web.server import Server


async def _listen(
    handler: web.Server, host: str, port: int, context: ssl.SSLContext
) -> tuple[asyncio.Server, int]:
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
    return server, server.sockets[0].getsockname()[1]


def _url(host: str, port: int) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


async def serve(options: Options, directory: Path) -> None:
    """Serve until a signal comes."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    ca_file, context = make_certificates(directory)
    server = Server(simulation(options), options)
    server.sim.ca_pem = ca_file.read_text(encoding="ascii")
    quiet = logging.getLogger("simulator")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    api = web.Server(
        server.handle,
        request_factory=request_of,
        access_log=None,
        logger=quiet,
        keepalive_timeout=300,
    )
    listening, port = await _listen(api, options.host, options.port, context)
    print(f"ready {_url(options.host, port)}", flush=True)
    print(f"ca {ca_file}", flush=True)
    servers = [listening]
    if options.control:
        control = Control(server, server.rebuild)
        plane = web.Server(
            control.handle, request_factory=request_of, access_log=None, logger=quiet
        )
        second, control_port = await _listen(plane, options.host, 0, context)
        servers.append(second)
        print(f"control {_url(options.host, control_port)}", flush=True)
    gc.collect()
    gc.freeze()
    await stop.wait()
    for one in servers:
        one.close()


def main(argv: list[str] | None = None) -> int:
    """Run; the exit status is 2 when it was started wrongly."""
    own: Path | None = None
    try:
        options = parse(argv)
        directory = options.ca_dir
        if directory is None:
            directory = own = Path(tempfile.mkdtemp(prefix="pve-simulator-"))
        with contextlib.suppress(ImportError):
            import uvloop

            asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
        asyncio.run(serve(options, directory))
    except UsageError as error:
        print(f"simulator: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    finally:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
