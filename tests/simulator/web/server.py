"""The HTTPS server: latency, capacity, faults, the request log, and PVE's envelope around every
answer.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from aiohttp import web

from ..core.api import Ctx, Result, Simulation, dispatch
from ..core.auth import Caller
from ..core.faults import Fault, FaultPlan, RequestLog, Seen
from ..errors import ApiError, UnknownVerb
from ..initial.build import simulation
from ..options import Options
from . import handlers
from .bodies import check_head, read_parameters
from .forms import RawError, Unanswered
from .turns import Turns

handlers.load()

JSON_TYPE = "application/json;charset=UTF-8"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HEADERS = {"Server": "pve-api-daemon/3.0", "Cache-Control": "max-age=0", "Pragma": "no-cache"}
_JSON_HEADERS = {**_HEADERS, "Content-Type": JSON_TYPE}
_TEXT_HEADERS = {**_HEADERS, "Content-Type": "text/plain"}
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
_UPLOAD = re.compile(r"/nodes/[^/]+/storage/([^/]+)/upload")
_VERBS = ("GET", "POST", "PUT", "DELETE")


# A connection is closed without a word after IDLE_S idle seconds, with an error, or after its last
# request (pve-http-server: AnyEvent.pm, timeout and keep_alive; pve-manager: Service/pveproxy.pm).
# A request that is on its way at that moment gets no answer, and nothing is done.
IDLE_S = 5
REQUESTS_OF_A_CONNECTION = 100


class Dropped(Exception):
    """The connection was closed on purpose."""


class Server:
    """Answers the requests of the simulated cluster."""

    def __init__(self, simulation: Simulation, options: Options) -> None:
        self.sim = simulation
        self.options = options
        self.latency = options.latency_ms / 1000
        self.turns = Turns()
        self.log = RequestLog()
        self.faults = FaultPlan()
        self.requests_of: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        # The fault's request to the control plane, set by its owner: (method, path, body).
        self.steer: Callable[[str, str, Any], None] | None = None
        self.sim.cluster.tasks.faults = self.faults
        self.capacity = (
            asyncio.Semaphore(options.max_concurrency) if options.max_concurrency else None
        )

    def rebuild(self) -> None:
        """Back to the state at the start."""
        old = self.sim
        for tasks in old.cluster.tasks.by_node.values():
            for task in tasks:
                old.cluster.tasks.stop(task)
        for job in old.jobs:
            job.cancel()
        self.sim = simulation(self.options)
        self.sim.cluster.tasks.faults = self.faults
        self.sim.ca_pem, self.sim.server_pem = old.ca_pem, old.server_pem
        self.latency = self.options.latency_ms / 1000
        self.log.reset()
        self.faults.rules.clear()

    def context(self) -> Ctx:
        """A context of root, for changes without a request."""
        method = self.sim.schema.methods[("GET", "/version")]
        return Ctx(self.sim, "root@pam", None, method)

    # -- a request -------------------------------------------------------------------------------

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        if self.capacity is None:
            response = await self._serve(request)
        else:
            async with self.capacity:
                response = await self._serve(request)
        if request.transport is None:
            return response
        connection = request.transport.get_extra_info("ssl_object")
        count = self.requests_of.get(connection, 0) + 1
        self.requests_of[connection] = count
        if response.status >= 400 or count >= REQUESTS_OF_A_CONNECTION:
            response.force_close()
        return response

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        started = time.time()
        sim = self.sim
        await self._latency()
        verb = request.method
        raw_path = request.rel_url.raw_path
        path, kind = _split_path(unquote(raw_path) if "%" in raw_path else raw_path)
        if path is None:
            return web.Response(
                status=404, reason="no such file", text=f"no such file '{raw_path}'\n"
            )
        fault = self.faults.pick(verb, path) if self.faults.rules else None
        if fault is not None:
            await self._fault_before(request, fault)
        if self.sim is not sim:
            raise _drop(request)  # sent before the reset, it must not change the new state
        answer = Answer()
        try:
            await self._carry_out(request, verb, path, fault, answer)
        except Unanswered:
            self.log.add(Seen(verb, path, answer.route or path, 0, started, answer.who, None))
            raise _drop(request) from None
        if answer.status == 401:
            await asyncio.sleep(max(0.0, self.options.auth_delay_s - (time.time() - started)))
        elif answer.status == 595:
            await asyncio.sleep(self.sim.proxy_timeout)
        if self.sim is not sim:
            raise _drop(request)
        route = answer.route or path
        seen = Seen(verb, path, route, answer.status, started, answer.who, answer.params)
        self.log.add(seen)
        if fault is not None and fault.drop == "after":
            raise _drop(request)
        return await self._send(request, answer, fault, kind)

    async def _send(
        self, request: web.BaseRequest, answer: Answer, fault: Fault | None, kind: str
    ) -> web.StreamResponse:
        """Send the answer, or talk through the WebSocket that was asked for."""
        if answer.upgrade is not None and "upgrade" in request.headers:
            return await _upgraded(request, answer.upgrade)
        response = answer.response(kind)
        if fault is not None and fault.cut is not None:
            return await _cut(request, response, fault.cut)
        return response

    async def _carry_out(
        self, request: web.BaseRequest, verb: str, path: str, fault: Fault | None, answer: Answer
    ) -> None:
        """Put the result or the refusal into the answer."""
        try:
            if fault is not None and fault.status is not None:
                raise _faulty(fault)
            await self._answer(request, verb, path, answer)
        except Unanswered:
            raise
        except ApiError as error:
            answer.refuse(error)
        # a fault of the simulator itself must be visible to its users
        except Exception as error:
            traceback.print_exc()
            answer.refuse(ApiError(500, f"simulator fault: {error!r}\n"))

    async def _latency(self) -> None:
        if self.latency:
            await asyncio.sleep(self.latency)
            await self.turns.take()

    async def _fault_before(self, request: web.BaseRequest, fault: Fault) -> None:
        if fault.delay_ms:
            sim = self.sim
            await asyncio.sleep(fault.delay_ms / 1000)
            if self.sim is not sim:
                raise _drop(request)
        for method, path, body in fault.steer or ():
            if self.steer is not None:
                self.steer(method, path, body)
        if fault.drop == "before":
            self.log.add(Seen(request.method, request.path, "(dropped)", 0, time.time(), "", None))
            if request.transport is not None:
                request.transport.close()  # closed as pveproxy closes, not reset
            raise Dropped

    async def _answer(self, request: web.BaseRequest, verb: str, path: str, answer: Answer) -> None:
        sim = self.sim
        if verb not in _VERBS:
            raise UnknownVerb(verb)
        check_head(request)
        caller = sim.authority.identify(verb, path, request.headers)
        answer.who = caller.who if caller else ""
        found = sim.schema.find(verb, path)
        if found is not None:
            answer.route = found[0].path
        params = await read_parameters(request, self._check_upload(verb, path, caller))
        answer.params = params
        answer.accept(await dispatch(sim, verb, path, caller, params))

    def _check_upload(self, verb: str, path: str, caller: Caller | None) -> bool:
        """Whether the request is an upload.

        The right to upload is checked before the file is read, and refused without a body
        (pve-manager, HTTPServer.pm, auth_handler).
        """
        found = _UPLOAD.fullmatch(path)
        if verb != "POST" or found is None:
            return False
        if caller and caller.who != "root@pam":
            try:
                self.sim.acl.require(
                    caller.who, f"/storage/{found[1]}", ["Datastore.AllocateTemplate"]
                )
            except ApiError as error:
                error.empty = True
                raise
        return True


class Answer:
    """The answer to send, and its entry in the log."""

    __slots__ = (
        "empty",
        "envelope",
        "params",
        "raw",
        "reason",
        "route",
        "status",
        "text",
        "upgrade",
        "who",
    )

    def __init__(self) -> None:
        self.status = 200
        self.reason = "OK"
        self.envelope: dict[str, Any] = {}
        self.empty = False
        self.raw: bytes | None = None
        self.text = False
        self.who = ""
        self.route = ""
        self.params: Any = None
        self.upgrade: Callable[[web.WebSocketResponse], Awaitable[None]] | None = None

    def accept(self, result: Any) -> None:
        """Take over a handler's result."""
        if isinstance(result, Result):
            self.raw, self.text, self.upgrade = result.raw, result.text, result.upgrade
            self.envelope = {"data": result.data, **result.extra}
        else:
            self.envelope = {"data": result}

    def refuse(self, error: ApiError) -> None:
        """Take over a refusal."""
        self.status = error.status
        # Text from a path or parameter must not break the status line.
        self.reason = _CONTROL.sub(" ", error.message.split("\n", 1)[0].rstrip("\r"))
        self.empty = error.empty
        if isinstance(error, RawError):
            self.raw, self.text = error.message.encode(), True
            return
        self.envelope = {"data": None, "message": error.message}
        if error.errors:
            self.envelope["errors"] = error.errors

    def response(self, kind: str) -> web.Response:
        """The answer in the format that was asked for."""
        if self.empty:
            headers = {**_HEADERS, "Content-Length": "0"}
            return web.Response(status=self.status, reason=self.reason, headers=headers)
        if self.raw is not None:
            headers = _TEXT_HEADERS if self.text else _JSON_HEADERS
            return web.Response(
                status=self.status, reason=self.reason, body=self.raw, headers=headers
            )
        if kind == "extjs":
            envelope = {**self.envelope, "success": 1 if self.status == 200 else 0}
            if self.status != 200:
                envelope["status"] = self.status
            body = _dumps(envelope).encode()
            return web.Response(body=body, headers=_JSON_HEADERS)
        body = _dumps(self.envelope).encode()
        return web.Response(
            status=self.status, reason=self.reason, body=body, headers=_JSON_HEADERS
        )


def _split_path(path: str) -> tuple[str | None, str]:
    """(path below the format, format), e.g. ('/version', 'json') for /api2/json/version."""
    if path.startswith("/api2/json"):
        return path[10:] or "/", "json"
    if path.startswith("/api2/extjs"):
        return path[11:] or "/", "extjs"
    return None, ""


def _faulty(fault: Fault) -> ApiError:
    status = fault.status or 500
    message = fault.message or {
        595: "Connection refused",
        596: "Connection timed out",
        599: "Too many redirections",
        502: "Bad Gateway",
        503: "Service Unavailable",
    }.get(status, "got timeout")
    bare = status == 401 or status >= 595 or status in (502, 503)
    return ApiError(status, message if bare else message + "\n", empty=bare)


def _drop(request: web.BaseRequest) -> Dropped:
    if request.transport is not None:
        request.transport.abort()
    return Dropped()


async def _upgraded(
    request: web.BaseRequest, talk: Callable[[web.WebSocketResponse], Awaitable[None]]
) -> web.StreamResponse:
    """Talk through a WebSocket; the request ends with it."""
    connection = web.WebSocketResponse(max_msg_size=0)
    await connection.prepare(request)
    await talk(connection)
    return connection


async def _cut(request: web.BaseRequest, response: web.Response, kept: int) -> web.StreamResponse:
    """Send the head and the first bytes of the body, then close the connection."""
    body = bytes(response.body) if isinstance(response.body, (bytes, bytearray)) else b""
    stream = web.StreamResponse(status=response.status, reason=response.reason)
    stream.headers["Content-Type"] = response.headers.get("Content-Type", JSON_TYPE)
    stream.content_length = len(body)
    await stream.prepare(request)
    await stream.write(body[:kept])
    if request.transport is not None:
        request.transport.close()
    raise Dropped
