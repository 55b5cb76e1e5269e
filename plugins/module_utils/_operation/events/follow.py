# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The event source: its options; read each site at its interval, and deliver each new event once."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from ..._foundation.cluster.quota import Limits, read_limits
from ..._foundation.cluster.tenant import PREFIX
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import parse_options
from ..._foundation.core.retry import Backoff
from ..._foundation.entry.sites_file import read_sites_file
from ..._foundation.spec.fleet import with_defaults
from ..._foundation.spec.generated.cluster_events import cluster_events_spec
from ..._foundation.spec.generated.connection import connection_spec
from ..._foundation.spec.generated.drift_info import drift_info_spec
from ..inventory.sites import open_clients
from .advance import advance
from .event import without_secrets
from .model import EventOptions, EventReading
from .read_site import read_site
from .store import PositionStore

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_LOG = logging.getLogger("pve.fleet.events")
_MAX_THREADS = 64
# Seconds between two checks of the queue, and checks until the next event is offered anyway.
_PAUSE, _ATTEMPTS = 0.01, 1000
_HOUR = 3600
_WHAT = "The options of the event source were refused"
# Keys that ansible-rulebook adds to the arguments of a source.
_OF_THE_CALLER = ("eda_feedback_queue",)


class EventQueue(Protocol):
    """The queue of ansible-rulebook."""

    async def put(self, data: Any) -> None:
        """Add an event when there is room."""


async def follow_sites(queue: EventQueue, args: Mapping[str, Any]) -> None:
    """Put the events of all sites into the queue until the task is cancelled.

    Raises FleetError, before any request, for a mistake in the options, for a site whose settings
    are wrong, and for a position that another source uses.
    """
    wanted, connection, state_file = read_options(args)
    clients, unusable = open_clients(connection, os.environ, read_sites_file)
    for listing in unusable:
        if listing.error is not None:
            raise listing.error
    for client in clients.values():
        for warning in client.connection.warnings:
            _LOG.warning(warning)
    store = PositionStore(state_file)
    try:
        await Follower(clients, wanted, store, queue).run()
    finally:
        store.close()
        for client in clients.values():
            client.close()


class Follower:
    """Follows sites until it is cancelled.

    Each site has its own thread for requests: a site that does not answer does not delay others.
    """

    def __init__(
        self,
        clients: Mapping[str, Client],
        wanted: EventOptions,
        store: PositionStore,
        queue: EventQueue,
    ) -> None:
        self._clients = clients
        self._wanted = wanted
        self._store = store
        self._queue = queue
        self._turn = asyncio.Lock()  # only one batch of events at a time
        self._offered: set[str] = set()  # IDs of events in the queue that are not noted yet
        workers = min(_MAX_THREADS, max(1, len(clients)))
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="pve-fleet-events")

    async def run(self) -> None:
        """Follow all sites. Raises the first error that is not about a site."""
        sites = [asyncio.ensure_future(self._follow(site)) for site in self._clients]
        try:
            await asyncio.gather(*sites)
        finally:
            for one in sites:
                one.cancel()
            await asyncio.gather(*sites, return_exceptions=True)
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _follow(self, site: str) -> None:
        backoff = Backoff(self._wanted.interval, cap=self._wanted.longest_pause)
        failures = 0
        await self.deliver(site)
        while True:
            reading = await self._read(site)
            failures = failures + 1 if reading.error is not None else 0
            self.take_over(site, reading)
            await self.deliver(site)
            pause = backoff.pause(failures) if failures else self._wanted.interval
            await asyncio.sleep(pause)

    async def _read(self, site: str) -> EventReading:
        loop = asyncio.get_running_loop()
        position = self._store.position(site)
        client = self._clients[site]
        work = loop.run_in_executor(self._threads, read_site, client, position, self._wanted)
        reading = await work
        client.requests.clear()  # it would grow without limit: this process never ends
        return reading

    def take_over(self, site: str, reading: EventReading) -> None:
        """Write the next position with its events, unless nothing changed."""
        before = self._store.position(site)
        after, events = advance(before, reading, self._wanted)
        if not events and not before.is_new and replace(after, taken=before.taken) == before:
            return
        secrets = self._clients[site].connection.secrets
        cleaned = [without_secrets(event, secrets) for event in events]
        self._store.save(site, after, cleaned)

    async def deliver(self, site: str) -> None:
        """Put the events of the file into the queue, and note each event that the rules have taken.

        An event that was not taken yet is noted later. After an interruption it is delivered again
        with the same ID.
        """
        async with self._turn:
            for place, event in self._store.undelivered(site):
                if event["id"] not in self._offered:
                    await self._queue.put(dict(event))  # its receiver may change it
                    self._offered.add(event["id"])
                if await _is_taken(self._queue):
                    self._store.mark_delivered(site, place)
                    self._offered.discard(event["id"])


async def _is_taken(queue: EventQueue) -> bool:
    """Wait until the queue is empty: then the rules have all events. False if others fill it."""
    inner: Any = getattr(queue, "queue", queue)
    for _attempt in range(_ATTEMPTS):
        if inner.empty():
            return True
        await asyncio.sleep(_PAUSE)
    return False


def read_options(given: Mapping[str, Any]) -> tuple[EventOptions, dict[str, Any], str]:
    """Return the options of the source and of the connection, and the path of the position
    (pure).

    Raises ValidationFailed.
    """
    named = {name: value for name, value in given.items() if name not in _OF_THE_CALLER}
    own = cluster_events_spec()
    options = parse_options({**connection_spec(), **own}, named, _WHAT)
    login = {name: value for name, value in options.items() if name not in own}
    max_age = None
    if options.get("backup_max_age") is not None:
        max_age = _between("backup_max_age", options, 1, 24 * 366) * _HOUR
    wanted = EventOptions(
        interval=_between("interval", options, 1, 86400),
        slow_interval=_between("slow_interval", options, 60, 30 * 86400),
        longest_pause=_between("longest_pause", options, 1, 86400),
        prefix=options["tenant_prefix"] or PREFIX,
        storage_limit=_between("storage_limit", options, 1, 100),
        quota_limit=_between("quota_limit", options, 1, 1000),
        quotas=_quotas(options),
        max_age=max_age,
        drift=_drift(options),
    )
    path = str(options["state_file"] or "")
    if not path.strip():
        raise validate.refused("state_file", path, "is empty", "Give the path of a file")
    return wanted, login, path


def _between(name: str, options: Mapping[str, Any], minimum: float, maximum: float) -> float:
    value = float(options[name])
    if not minimum <= value <= maximum:
        step = f"Give a number from {minimum:g} to {maximum:g}"
        raise validate.refused(name, options[name], "is out of range", step)
    return value


def _quotas(options: Mapping[str, Any]) -> dict[str, Limits]:
    """Return the limits by tenant, without tenants that have no limit."""
    given = options.get("quotas") or {}
    found: dict[str, Limits] = {}
    for tenant in given:
        params = {"tenant": tenant, "quotas": given, "tenant_prefix": options["tenant_prefix"]}
        limits = read_limits(params)
        if limits:
            found[str(tenant).lower()] = limits
    return found


def _drift(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of module drift_info. Raises ValidationFailed for a mistake in them."""
    given = options.get("drift")
    if given is None:
        return None
    spec = drift_info_spec()
    found = with_defaults(spec, parse_options(spec, given, "The option drift was refused"))
    if not (found.get("vms") or found.get("containers")):
        step = "Give vms or containers, as for module drift_info"
        raise validate.refused("drift", sorted(given), "has no guests", step)
    return found
