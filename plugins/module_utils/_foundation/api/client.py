# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client: reads, writes under the rules for writes, waits, and records its requests.

A client is composed of layers, each around the layer below it:

- requests: `ProxmoxerTransport` <- `LimitedRequests` <- `FormCheckLayer` <- `RetryingLayer`
  <- `CachingLayer`
- tasks: `TaskWaiter` <- `LimitedWaiter` <- `Tasks` <- `LimitedTasks`

A client does not change: another composition is another client over the same connections.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.clock import Clock
from ..core.quantities import whole_number
from .answers.typed import FormCheckLayer, PrintableLayer
from .endpoint import Endpoint
from .http.backend import ProxmoxerTransport
from .interface import PlanBook
from .layers.limiting import LimitedRequests, LimitedTasks, LimitedWaiter
from .layers.retrying import RetryingLayer
from .protocols import Limit, Notes, Progress, Sender, TaskRunner, Transport, Waiter
from .request import Again, Confirm, Request, Upload, UploadProgress, encode
from .settings import ConnectionSettings, ReadFile, resolve
from .task_poller import TaskPoller
from .tasks import OUTAGE, NoNotes, Tasks, TaskWaiter
from .upid import TaskResult

_FRESH = 30.0  # seconds


@dataclass
class ServerFacts:
    """Facts about a Proxmox VE that outlive a task.

    `release` is read once. `last_reading` is a reading that a task leaves to the next one.
    `privileges` were read at `privileges_at`.
    """

    release: tuple[int, ...] | None = None
    privileges: Mapping[str, Any] | None = None
    privileges_at: float = 0.0
    last_reading: object = None


@dataclass(frozen=True)
class ClientLayers:
    """The components of a client.

    `above` makes the layer above the retries, if any. `progress` is called while a task runs,
    `upload_progress` while a file is sent. `task_poller` is set if several threads wait for tasks.
    `notes` records tasks and steps, `plan_book` sees plans and writes. `other_sites`
    are clients by the name of the site. `known` is shared by all clients of one transport.
    """

    connection: ConnectionSettings
    transport: Transport
    clock: Clock
    rng: random.Random
    above: Callable[[Sender], Sender] | None = None
    limit: Limit | None = None
    progress: Progress | None = None
    upload_progress: UploadProgress | None = None
    task_poller: TaskPoller | None = None
    notes: Notes = NoNotes()
    plan_book: PlanBook = PlanBook()
    other_sites: Mapping[str, Client] = field(default_factory=dict)
    known: ServerFacts = field(default_factory=ServerFacts)


class Client:
    """One Proxmox VE.

    Safe to use from several threads; creating a client sends no request.
    """

    def __init__(
        self,
        connection: ConnectionSettings,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        transport: Transport | None = None,
    ) -> None:
        clock = clock or Clock()
        transport = transport or ProxmoxerTransport(connection, clock)
        self._assemble(ClientLayers(connection, transport, clock, rng or random.Random()))

    def _assemble(self, layers: ClientLayers) -> None:
        self._layers = layers
        self.connection = layers.connection
        self.clock = layers.clock
        self.requests = layers.transport.rows
        connection, clock = layers.connection, layers.clock
        sender: Sender = layers.transport
        waiter: Waiter = TaskWaiter(
            self,
            outage=max(OUTAGE, connection.retry_timeout),
            progress=layers.progress,
            task_poller=layers.task_poller,
            notes=layers.notes,
        )
        if layers.limit is not None:
            sender = LimitedRequests(sender, layers.limit)
            waiter = LimitedWaiter(waiter, layers.limit)
        sender = RetryingLayer(
            FormCheckLayer(sender), layers.transport, connection, clock, layers.rng
        )
        if layers.above is not None:
            sender = layers.above(sender)
        tasks: TaskRunner = Tasks(sender, waiter, clock, connection.lock_timeout)
        if layers.limit is not None:
            tasks = LimitedTasks(tasks, layers.limit)
        self._sender, self._waiter, self._tasks = sender, waiter, tasks

    def __repr__(self) -> str:
        return f"Client({self.connection!r})"

    @property
    def endpoint(self) -> Endpoint:
        """The server that answers: that of the connection, or one of its other hosts."""
        return self._layers.transport.endpoint

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_unused: object) -> None:
        self.close()

    def direct(self) -> Client:
        """Return a client without a cache: this client."""
        return self

    def watched(self, progress: Progress, upload_progress: UploadProgress) -> Client:
        """Return a client that calls `progress` while a task runs, and `upload_progress` while a
        file is sent.
        """
        return self._with(progress=progress, upload_progress=upload_progress)

    def noted(self, notes: Notes) -> Client:
        """Return a client that records its tasks and the steps reported to it."""
        return self._with(notes=notes)

    def with_plan_book(self, plan_book: PlanBook) -> Client:
        """Return a client whose plans and writes this book sees."""
        return self._with(plan_book=plan_book)

    def with_other_sites(self, clients: Mapping[str, Client]) -> Client:
        """Return a client that knows the clients of other sites, by name."""
        return self._with(other_sites=clients)

    def for_threads(self, clock: Clock) -> Client:
        """Return a client for work in several threads, with this clock.

        It polls the tasks of a node together, and does not cache.
        """
        alone = self._with(clock=clock, above=None)
        return alone._with(task_poller=TaskPoller(alone))

    def printable(self) -> Client:
        """Return a client whose answers contain only printable texts: for answers that are shown,
        and never written back.
        """
        return self._with(above=PrintableLayer)

    def limited(self, limit: Limit, progress: Progress | None) -> Client:
        """Return a client whose tasks start when `limit` has room, and that shows `progress`."""
        return self._with(limit=limit, progress=progress)

    def _with(self, **layers: Any) -> Client:
        other = Client.__new__(Client)
        other._assemble(replace(self._layers, **layers))
        return other

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        self._layers.transport.close()

    @property
    def progress(self) -> Progress | None:
        """The function that is called while a task runs, or None."""
        return self._layers.progress

    @property
    def notes(self) -> Notes:
        """The recorder of tasks and steps."""
        return self._layers.notes

    @property
    def plan_book(self) -> PlanBook:
        """The keeper of plans."""
        return self._layers.plan_book

    @property
    def other_sites(self) -> Mapping[str, Client]:
        """The clients of other sites, by name."""
        return self._layers.other_sites

    def note(self, summary: str) -> None:
        """Record a step that was carried out."""
        self._layers.notes.step(summary)

    @property
    def login(self) -> str:
        """The user, or the full name of the token, of this client."""
        return self.connection.login

    @property
    def site(self) -> str:
        """The name of the site, or an empty text."""
        return self.connection.site

    @property
    def default_node(self) -> str:
        """The default node in the settings, or an empty text."""
        return self.connection.node

    @property
    def preferred_nodes(self) -> tuple[str, ...]:
        """The preferred nodes in the settings, used without a default node."""
        return self.connection.preferred_nodes

    @property
    def node_preference(self) -> tuple[str, ...]:
        """The default node, or else the preferred nodes; empty if the settings name none."""
        return (self.default_node,) if self.default_node else self.preferred_nodes

    def get(
        self,
        *segments: str | int,
        params: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        tries: int | None = None,
        attempted: str = "",
        **query: Any,
    ) -> Any:
        """Return `data` of a GET on the path of these segments, as in `get("nodes", node, "qemu",
        100, "config")`.

        The query comes from keywords, or from `params` if a key has a hyphen. `timeout` (seconds
        for the answer) and `tries` replace the connection's. Raises FleetError.
        """
        values = encode({**(params or {}), **query})
        return self._sender.send(
            Request("GET", segments, values, attempted=attempted, timeout=timeout, tries=tries)
        )

    def get_beside(
        self, attribute: str, *segments: str | int, tries: int | None = None, attempted: str = ""
    ) -> tuple[Any, Any]:
        """Return `data` of a GET, and the value of an attribute beside it in PVE's answer, or None.

        Raises FleetError.
        """
        answer = self._sender.send(
            Request("GET", segments, {}, attempted=attempted, tries=tries, beside=attribute)
        )
        return answer["data"], answer.get(attribute)

    def write(
        self,
        method: str,
        *segments: str | int,
        data: Mapping[str, Any] | None = None,
        attempted: str = "",
        confirm: Confirm | None = None,
        timeout: float | None = None,
        again: Again | None = None,
    ) -> Any:
        """Return `data` of a POST, PUT or DELETE, or the result of `confirm` after a lost answer.

        `data` is sent as the form of a POST or PUT, and as the query of a DELETE. `RetryingLayer`
        describes when the request is sent again. Otherwise a lost answer is a NetworkError whose
        next step says that the state is unknown. Raises FleetError.
        """
        values = encode(data or {})
        request = Request(
            method,
            segments,
            values,
            attempted=attempted,
            timeout=timeout,
            confirm=confirm,
            again=again,
        )
        self._layers.plan_book.require(request)
        self._layers.known.privileges = None
        return self._sender.send(request)

    def wait(
        self,
        upid: str,
        *,
        timeout: float = 300.0,
        attempted: str = "",
        progress: Progress | None = None,
    ) -> TaskResult:
        """Wait for a task and return its result, see `TaskWaiter`. `timeout` is in seconds."""
        return self._waiter.wait(upid, timeout, attempted, progress)

    def task(
        self,
        method: str,
        *segments: str | int,
        data: Mapping[str, Any] | None = None,
        attempted: str = "",
        timeout: float = 300.0,
        confirm: Confirm | None = None,
        upload: Upload | None = None,
    ) -> TaskResult:
        """Start a task with a write, and return its result, see `Tasks`. `timeout` is in seconds.

        The answer to an upload may take this time too.
        """
        values = encode(data or {})
        request = Request(method, segments, values, attempted=attempted, confirm=confirm)
        self._layers.plan_book.require(request)
        if upload is not None:
            upload = replace(upload, progress=self._layers.upload_progress)
            request = replace(request, upload=upload, timeout=timeout)
        return self._tasks.run(request, timeout)

    def privileges(self) -> Mapping[str, Any]:
        """Return the privileges of the login by path. They are kept for some seconds, so that a
        task of several plans reads them once.
        """
        known, now = self._layers.known, self.clock.monotonic()
        if known.privileges is None or now - known.privileges_at > _FRESH:
            known.privileges = self.get("access", "permissions") or {}
            known.privileges_at = now
        return known.privileges

    def version(self) -> tuple[int, int]:
        """Return major and minor number of PVE, for example (9, 2); read once."""
        release = self.release()
        return release[0], release[1]

    def release(self) -> tuple[int, ...]:
        """Return all numbers of the version of PVE, for example (9, 2, 11), at least two.

        Read once.
        """
        known = self._layers.known
        if known.release is None:
            answer = self.get("version", attempted="Could not ask for the version") or {}
            known.release = _release(str(answer.get("version") or "0"))
        return known.release

    def leave_reading(self, reading: object) -> None:
        """Leave a reading to the next task that uses this connection, such as the next item of a
        loop.
        """
        self._layers.known.last_reading = reading

    def take_reading(self) -> object:
        """Return the reading that the previous task left, or None. It can be taken once."""
        known = self._layers.known
        reading, known.last_reading = known.last_reading, None
        return reading

    def counts(self) -> dict[str, int]:
        """Return how many requests were sent by method, for example `{"GET": 4, "POST": 1}`."""
        return dict(Counter(row[0] for row in list(self.requests)))

    def record(self) -> list[dict[str, Any]]:
        """Return the requests sent so far, for people: method, path, status, milliseconds and try;
        no secrets.
        """
        names = ("method", "path", "status", "ms", "try")
        return [dict(zip(names, row, strict=True)) for row in list(self.requests)]


def connect(
    options: Mapping[str, Any],
    environ: Mapping[str, str],
    clock: Clock | None = None,
    read_file: ReadFile | None = None,
) -> Client:
    """Return a client for the connection of options, sites and environment; makes no request.

    Raises ConfigurationError.
    """
    return Client(resolve(options, environ, read_file), clock=clock)


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, at least two; 0 stands for a part that is not a number."""
    numbers = [whole_number(part) or 0 for part in version.replace("-", ".").split(".")]
    return (numbers[0], *(numbers[1:] or [0]))
