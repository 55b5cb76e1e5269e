"""A simulator in a thread of this process, for tests that make many requests.

It listens as every simulator does. `exchange` hands it a request of this process without a
connection, for the same handlers: most of the time of a request is TLS and HTTP.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import HttpVersion11, StreamReader, web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.http_writer import StreamWriter
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from .options import UsageError, parse
from .process import Simulator, SimulatorError
from .skipping import CLOCK
from .web.bodies import request_of
from .web.listen import Ports, listening

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class PlainRequest:
    """A request as HTTP would carry it; `target` is its path and query, quoted."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class PlainAnswer:
    """The answer as HTTP would carry it."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


class ThreadedSimulator(Simulator):
    """A running simulator, as `Simulator`, in a thread instead of a process."""

    _ports: Ports
    _loop: asyncio.AbstractEventLoop
    _end: asyncio.Event
    _own_process = 0  # in which it runs: a fork has a copy of this object, but not the thread

    def start(self) -> ThreadedSimulator:
        """Start it and wait until it is ready."""
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        try:
            started.result(self.timeout)
        except UsageError as error:
            raise SimulatorError(f"simulator: {error}") from None
        self._own_process = os.getpid()
        return self

    def stop(self) -> None:
        """Stop it."""
        if self._own_process == os.getpid():
            self._own_process = 0
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    def _run(self, started: Future[None]) -> None:
        directory = Path(tempfile.mkdtemp(prefix="pve-simulator-"))
        try:
            CLOCK.run(self._serve(directory, started))
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    async def _serve(self, directory: Path, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        async with listening(parse(self.args), directory) as ports:
            self._ports = ports
            self.url, self.control = ports.url, ports.control_url
            self._protocol = ports.api()
            self.ca = str(ports.ca_file)
            self._certificate = ssl.PEM_cert_to_DER_cert(ports.server.sim.ca_pem)
            started.set_result(None)
            await self._end.wait()

    def trusted_by(self, context: ssl.SSLContext) -> bool:
        """Return whether a client with this context trusts the CA of the server."""
        return context.verify_mode == ssl.CERT_REQUIRED and (
            self._certificate in context.get_ca_certs(binary_form=True)
        )

    def exchange(self, request: PlainRequest, timeout: float | None) -> PlainAnswer | None:
        """Return the answer of the API, or None if the request needs a connection.

        Raises TimeoutError, and Dropped if the server closes the connection without an answer.
        """
        if self._own_process != os.getpid() or self._ports.server.faults.break_connections():
            return None
        return CLOCK.result(self._hand_over(self._ports.server.handle, request), timeout)

    def _exchange(self, method: str, target: str, data: bytes | None) -> tuple[int, bytes]:
        """Return status and body of an answer of the control plane."""
        if self._own_process != os.getpid():
            return super()._exchange(method, target, data)
        request = PlainRequest(method, target, body=data or b"")
        answer = CLOCK.result(self._hand_over(self._ports.control.handle, request), None)
        return answer.status, answer.body

    def _hand_over(self, handler: Handler, request: PlainRequest) -> Future[PlainAnswer]:
        return asyncio.run_coroutine_threadsafe(self._answer(handler, request), self._loop)

    async def _answer(self, handler: Handler, request: PlainRequest) -> PlainAnswer:
        """Be the HTTP parser: make aiohttp's request of a plain one."""
        path, _mark, query = request.target.partition("?")
        message = RawRequestMessage(
            method=request.method,
            path=request.target,
            version=HttpVersion11,
            headers=CIMultiDictProxy(CIMultiDict(request.headers)),
            raw_headers=(),
            should_close=False,
            compression=None,
            upgrade=False,
            chunked=False,
            url=URL.build(path=path, query_string=query, encoded=True),
        )
        payload = StreamReader(self._protocol, len(request.body) + 1, loop=self._loop)
        payload.feed_data(request.body)
        payload.feed_eof()
        writer = StreamWriter(self._protocol, self._loop)  # is not used without a connection
        task: Any = asyncio.current_task()
        answer = await handler(request_of(message, payload, self._protocol, writer, task))
        assert isinstance(answer, web.Response)
        body = answer.body or b""
        assert isinstance(body, bytes)
        headers = {**answer.headers, "Content-Length": str(len(body))}
        return PlainAnswer(answer.status, answer.reason or "", headers, body)
