# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client: reads, writes under the rules for writes, waits, and keeps a record of what it sent."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from .._core.clock import Clock
from .._core.errors import FleetError, Locked, NetworkError, ValidationFailed
from .._core.retry import Backoff, NetworkBudget, TimeBudget
from .session import Call, Row, Session, open_session
from .settings import Connection, ReadFile, resolve
from .tasks import Progress, TaskResult, wait_for_task
from .upid import is_upid

if TYPE_CHECKING:
    from .board import TaskBoard

Happened = Callable[[], Any]
"""A look at the server after a lost answer: None when the write did not happen, else what it would have returned."""


class Ahead(Protocol):
    """Reads ahead; answers with a tuple of the data alone, or None where a question was not asked early."""

    def take(
        self,
        read: Callable[[tuple[str, ...], Mapping[str, str]], Any],
        segments: tuple[str, ...],
        query: dict[str, str],
    ) -> tuple[Any] | None: ...

    def saw(self, segments: tuple[str, ...], query: dict[str, str], data: Any) -> None: ...

    def wrote(self) -> None: ...


Admit = Callable[["tuple[str | int, ...]", Mapping[str, Any]], AbstractContextManager[Any]]
"""Holds a task back until there is room for it, by the path and data of the request that begins it."""

_UNKNOWN = "Whether it happened is unknown: look at the state before it is done again"


class Client:
    """One Proxmox VE. Safe to use from several threads; makes no request before it is asked for something."""

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        session: Session | None = None,
    ) -> None:
        self.connection = connection
        self.clock = clock or Clock()
        self.progress: Progress | None = None
        self.ahead: Ahead | None = None
        self.trouble: Callable[[FleetError], None] | None = None  # told of each lock and each failure of the server
        self.admit: Admit | None = None
        self.board: TaskBoard | None = None  # where many wait for tasks
        self.requests: list[Row] = []
        self._rng = rng or random.Random()
        self._session = session or open_session(connection, self.clock, self.requests)
        self._session.rows = self.requests
        self._version: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"Client({self.connection!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_unused: object) -> None:
        self.close()

    def view(self) -> Client:
        """Return a client of the same connections and the same record, with hooks of its own."""
        other = copy.copy(self)
        other.ahead = None  # it follows one task in one thread
        return other

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    @property
    def site(self) -> str:
        """The name of the site, or an empty text."""
        return self.connection.site

    @property
    def default_node(self) -> str:
        """The node that the settings name for when none is chosen, or an empty text."""
        return self.connection.node

    def get(
        self,
        *segments: str | int,
        params: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        tries: int | None = None,
        attempted: str = "",
        **query: Any,
    ) -> Any:
        """Return `data` of a GET on the path of these segments, as in `get("nodes", node, "qemu", 100, "config")`.

        The query comes from keywords, or from `params` where a key has a hyphen. `timeout` (seconds for the answer) and
        `tries` replace the connection's. Raises FleetError.
        """
        wanted = encode({**(params or {}), **query})
        network = self._network_budget(tries)
        locked = self._lock_budget()
        while True:
            try:
                return self._send("GET", segments, wanted, timeout, network.tries + locked.tries - 1)
            except (NetworkError, Locked) as error:
                self._tell(error)
                budget: NetworkBudget | TimeBudget = locked if isinstance(error, Locked) else network
                # A caller that limits the tries wants an answer soon, a wait for a lock included.
                if error.retryable and tries != 1 and budget.again():
                    continue
                raise _told(error, attempted, network.tries + locked.tries - 1) from error
            except FleetError as error:
                raise _told(error, attempted, network.tries + locked.tries - 1) from error

    def write(
        self,
        method: str,
        *segments: str | int,
        data: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        attempted: str = "",
        happened: Happened | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Return `data` of a POST, PUT or DELETE, or what `happened` returned after a lost answer.

        Sent again only when it was certainly not dispatched, when PVE refused it because of a lock, or when `happened`
        says that it did not happen. Otherwise a lost answer is a NetworkError whose next step says that the state is
        unknown. Raises FleetError.
        """
        return self._write(method, segments, {**(params or {}), **(data or {})}, attempted, happened, timeout, None)

    def wait(
        self, upid: str, *, timeout: float = 300.0, attempted: str = "", progress: Progress | None = None
    ) -> TaskResult:
        """Return how a task ended, see `wait_for_task`."""
        return wait_for_task(
            self, upid, timeout=timeout, attempted=attempted, progress=progress or self.progress, board=self.board
        )

    def task(
        self,
        method: str,
        *segments: str | int,
        data: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        attempted: str = "",
        timeout: float = 300.0,
        happened: Happened | None = None,
    ) -> TaskResult:
        """Return how the task ended that a write began; without a task (some versions answer null) it is over at once.

        A task that failed because of a lock did nothing, so the whole operation is sent again within the lock budget.
        """
        body = {**(params or {}), **(data or {})}
        with self.admit(segments, body) if self.admit is not None else nullcontext():
            return self._task(method, segments, body, attempted, timeout, happened)

    def _task(
        self,
        method: str,
        segments: tuple[str | int, ...],
        body: Mapping[str, Any],
        attempted: str,
        timeout: float,
        happened: Happened | None,
    ) -> TaskResult:
        locked = self._lock_budget()
        while True:
            answer = self._write(method, segments, body, attempted, happened, None, locked)
            if not is_upid(answer):
                return TaskResult("", "", "", "OK")
            try:
                return self.wait(answer, timeout=timeout, attempted=attempted)
            except Locked as error:
                self._tell(error)
                if not locked.again():
                    raise _told(error, attempted, locked.tries) from error

    def _tell(self, error: FleetError) -> None:
        if self.trouble is not None and (isinstance(error, Locked) or (error.status or 0) >= 500):
            self.trouble(error)

    def version(self) -> tuple[int, int]:
        """Return major and minor number of PVE, for example (9, 2); asked once."""
        if self._version is None:
            text = str((self.get("version", attempted="Could not ask for the version") or {}).get("version") or "0")
            numbers = [int(part) if part.isdigit() else 0 for part in text.replace("-", ".").split(".")]
            self._version = (numbers[0], numbers[1] if len(numbers) > 1 else 0)
        return self._version

    def counts(self) -> dict[str, int]:
        """Return how many requests were sent by method, for example `{"GET": 4, "POST": 1}`."""
        return dict(Counter(row[0] for row in list(self.requests)))

    def record(self) -> list[dict[str, Any]]:
        """Return the requests sent so far, for a person: method, path, status, milliseconds and try, no secret."""
        names = ("method", "path", "status", "ms", "try")
        return [dict(zip(names, row, strict=True)) for row in list(self.requests)]

    def _write(
        self,
        method: str,
        segments: tuple[str | int, ...],
        body: Mapping[str, Any],
        attempted: str,
        happened: Happened | None,
        timeout: float | None,
        lock_budget: TimeBudget | None,
    ) -> Any:
        wanted = encode(body)
        network = self._network_budget(None)
        locked = lock_budget or self._lock_budget()
        tries = 0
        while True:
            tries += 1
            try:
                return self._send(method, segments, wanted, timeout, tries)
            except Locked as error:
                self._tell(error)
                if locked.again():
                    continue
                raise _told(error, attempted, tries) from error
            except NetworkError as error:
                self._tell(error)
                failure = error
            except FleetError as error:
                raise _told(error, attempted, tries) from error
            more = failure.retryable and network.again()
            if failure.dispatched is not False:
                found = self._look(happened, _told(failure, attempted, tries))
                if found is not None:
                    return found
            if not more:
                raise _told(failure, attempted, tries) from failure

    def _look(self, happened: Happened | None, failure: FleetError) -> Any:
        """Return what a look finds; without one, or when it fails too, raise the failure: the state is unknown."""
        unknown = failure.on(next_step=_UNKNOWN, retryable=False)
        if happened is None:
            raise unknown
        try:
            return happened()
        except NetworkError as error:
            raise unknown from error

    def _send(
        self, method: str, segments: tuple[str | int, ...], values: dict[str, str], timeout: float | None, number: int
    ) -> Any:
        """Make one try and return `data`, unless it was read ahead."""
        if self.ahead is None or timeout is not None:
            return self._exchange(method, segments, values, timeout, number)
        if method != "GET":
            self.ahead.wrote()
            return self._exchange(method, segments, values, timeout, number)
        path = tuple(str(part) for part in segments)
        early = self.ahead.take(lambda below, query: self._exchange("GET", below, dict(query), None, 1), path, values)
        data = early[0] if early is not None else self._exchange(method, segments, values, timeout, number)
        self.ahead.saw(path, values, data)
        return data

    def _exchange(
        self, method: str, segments: tuple[str | int, ...], values: dict[str, str], timeout: float | None, number: int
    ) -> Any:
        """Make one request through proxmoxer and return `data`."""
        from proxmoxer.core import ProxmoxResource

        resource = ProxmoxResource(
            base_url=self._session.base_url,
            session=Call(self._session, timeout, number),
            serializer=self._session.serializer,
        )
        action = {"GET": resource.get, "POST": resource.post, "PUT": resource.put, "DELETE": resource.delete}[method]
        return action(*(_segment(part) for part in segments), **values)

    def _network_budget(self, tries: int | None) -> NetworkBudget:
        limit = self.connection.retries if tries is None else tries
        return NetworkBudget(self.clock, Backoff(rng=self._rng), limit)

    def _lock_budget(self) -> TimeBudget:
        return TimeBudget(self.clock, self.connection.lock_timeout)


def connect(
    options: Mapping[str, Any],
    environ: Mapping[str, str],
    clock: Clock | None = None,
    read_file: ReadFile | None = None,
) -> Client:
    """Return a client for what options, sites and environment say; makes no request. Raises ConfigurationError."""
    return Client(resolve(options, environ, read_file), clock=clock)


def encode(values: Mapping[str, Any]) -> dict[str, str]:
    """Return a query or form as PVE reads it: booleans as 1 and 0, numbers as text, None left out.

    Property strings and lists are the caller's to render; another type is refused with ValidationFailed.
    """
    encoded: dict[str, str] = {}
    for key, value in values.items():
        if value is None:
            continue
        if isinstance(value, bool):
            encoded[key] = "1" if value else "0"
        elif isinstance(value, (str, int, float)):
            encoded[key] = str(value)
        else:
            raise ValidationFailed(
                attempted=f"Could not send {key}",
                answer=f"a {type(value).__name__} cannot be sent to Proxmox VE",
                next_step="Render it as text first",
                reason="not rendered",
                dispatched=False,
            )
    return encoded


def _segment(part: str | int) -> str:
    """Return one part of a path, quoted whole; an empty or dotted one would lead to another path."""
    text = str(part)
    if text in ("", ".", ".."):
        raise ValidationFailed(
            attempted="Could not build a request",
            answer=f"{text!r} is no part of a path",
            next_step="Give the object's name",
            reason="empty name",
            dispatched=False,
        )
    return quote(text, safe="")


def _told(error: FleetError, attempted: str, tries: int) -> FleetError:
    """Return the error with what was attempted and how often, unless a room below knew better."""
    plain = f"Could not read {error.path}" if error.method == "GET" else f"{error.method} {error.path} failed".strip()
    return error.on(attempted=error.attempted or attempted or (plain if error.path else ""), tries=tries)
