"""Finds the handler of a request and runs it as PVE's own dispatcher does: route, rights, node,
parameters.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import NotImplementedHere, ParamError, PermError, ProxyError, PveError
from ..schema.definition import Method, Schema
from .acl import Acl
from .auth import Authority, Caller
from .contents import Received
from .locks import LockTable
from .state import Cluster

if TYPE_CHECKING:
    from aiohttp.web import WebSocketResponse

    from ..upkeep.scheduler import Scheduler
    from .tasks import Work

Handler = Callable[["Ctx", dict[str, Any]], Any]
HANDLERS: dict[tuple[str, str], Handler] = {}

CONFLICT = "duplicate parameter (already defined in URI) with conflicting values!"


@dataclass(slots=True)
class Result:
    """Data with the attributes that stand beside it in the envelope, or a raw body. `upgrade` talks
    through the WebSocket of a request that asks for it.
    """

    data: Any
    extra: dict[str, Any] = field(default_factory=dict)
    raw: bytes | None = None
    text: bool = False
    upgrade: Callable[[WebSocketResponse], Awaitable[None]] | None = None


class Simulation:
    """Everything that the handlers work on."""

    def __init__(self, cluster: Cluster, schema: Schema, version: str, key: bytes) -> None:
        self.cluster = cluster
        self.schema = schema
        self.acl = Acl(cluster, version)
        self.authority = Authority(self.acl, key)
        self.locks = LockTable()
        self.ca_pem = ""
        self.server_pem = ""
        self.proxy_timeout = 3.1
        self.jobs: set[asyncio.Task[None]] = set()
        self.scheduler: Scheduler

    def background(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something that no task of the cluster stands for."""
        task = asyncio.get_running_loop().create_task(job)
        self.jobs.add(task)
        task.add_done_callback(self.jobs.discard)
        return task


@dataclass(slots=True)
class Ctx:
    """One request as its handler sees it."""

    sim: Simulation
    who: str
    caller: Caller | None
    method: Method

    @property
    def cluster(self) -> Cluster:
        """The simulated cluster."""
        return self.sim.cluster

    @property
    def acl(self) -> Acl:
        """Accounts and rights."""
        return self.sim.acl

    def task(self, node: str, kind: str, ident: object, work: Work) -> str:
        """Start a worker for the caller."""
        return self.cluster.tasks.start(node, kind, ident, self.who, work)

    def may(self, path: str, *privs: str, any_of: bool = False) -> bool:
        """Whether the caller holds the privileges."""
        return self.who == "root@pam" or self.sim.acl.has(self.who, path, list(privs), any_of)

    def need(self, path: str, *privs: str, any_of: bool = False) -> None:
        """Refuse unless the caller holds the privileges."""
        if self.who != "root@pam":
            self.sim.acl.require(self.who, path, list(privs), any_of)

    def root_only(self, params: dict[str, Any], *names: str) -> None:
        """Refuse options that are only for root@pam with a ticket."""
        for name in names:
            if params.get(name) and self.who != "root@pam":
                raise ParamError({name: "Only root may use this option."})


def api(*routes: str) -> Callable[[Handler], Handler]:
    """Register a handler for `METHOD /path` routes."""

    def register(handler: Handler) -> Handler:
        for route in routes:
            verb, path = route.split(" ", 1)
            HANDLERS[(verb, path)] = handler
        return handler

    return register


def unknown_host(node: str) -> PveError:
    """The refusal for an unknown node name."""
    return PveError(
        f"hostname lookup '{node}' failed - failed to get address info for: {node}: Name or service"
        " not known"
    )


def merge(values: dict[str, str], params: dict[str, Any]) -> dict[str, Any]:
    """Path parameters and parameters of the request; a contradiction is refused."""
    merged: dict[str, Any] = dict(values)
    for name in sorted(params):
        if name in merged and merged[name] != params[name] and str(params[name]) != merged[name]:
            raise ParamError({name: CONFLICT})
        merged[name] = params[name]
    return merged


def check_rights(
    sim: Simulation, method: Method, caller: Caller | None, params: dict[str, Any]
) -> str:
    """Refuse unless the caller may call the method at all; the caller's name otherwise."""
    if caller is None:
        return ""
    if caller.token and not method.allow_token:
        raise PermError(
            f"URI '{_filled(method.path, params)}' not available with API token, need proper"
            " ticket.\n"
        )
    who = caller.who
    if who == "root@pam":
        return who
    if method.user == "all":
        return who
    if method.perm is not None:
        if not sim.acl.check(method.perm, who, params):
            raise PermError
    elif method.user is None:
        raise PermError("user != root@pam")
    return who


def _filled(path: str, params: dict[str, Any]) -> str:
    for name, value in params.items():
        path = path.replace("{" + name + "}", str(value))
    return path


def _proxied(path: str) -> bool:
    return path.startswith("/nodes/{node}/")


async def dispatch(
    sim: Simulation, verb: str, path: str, caller: Caller | None, params: dict[str, Any]
) -> Any:
    """The answer's data; every refusal is an ApiError."""
    found = sim.schema.find(verb, path)
    if found is None:
        raise NotImplementedHere(verb, path)
    method, values = found
    merged = merge(values, params)
    who = check_rights(sim, method, caller, merged)
    if _proxied(method.path):
        if merged["node"] == "localhost":  # whichever node was asked
            merged["node"] = sim.cluster.local
        node = sim.cluster.nodes.get(merged["node"])
        if node is None:
            raise unknown_host(merged["node"])
        if not node.online:
            raise ProxyError("No route to host")
    upload = merged.pop("tmpfilename") if isinstance(merged.get("tmpfilename"), Received) else None
    clean = sim.schema.check(method, merged)
    if upload is not None:
        clean["tmpfilename"] = upload
    handler = HANDLERS.get((verb, method.path))
    if handler is None:
        return fallback(method, verb, path)
    result = handler(Ctx(sim, who, caller, method), clean)
    if inspect.isawaitable(result):
        result = await result
    return result


def fallback(method: Method, verb: str, path: str) -> Any:
    """The answer of a part of the API that is in the schema but not simulated: empty, or not
    implemented.
    """
    kind = method.returns.get("type")
    if verb == "GET" and kind == "array":
        return []
    if verb == "GET" and kind == "object":
        return {}
    raise NotImplementedHere(verb, path)
