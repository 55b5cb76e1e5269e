# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Follow sites: read each at its interval, and deliver each new event once."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from ..._foundation.core.retry import Backoff
from ..._foundation.entry.sites_file import read_sites_file
from ..inventory.sites import open_clients
from .advance import advance
from .event import Event, without_secrets
from .model import EventOptions, EventReading
from .options import read_options
from .read_site import read_site
from .store import PositionStore

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_LOG = logging.getLogger("pve.fleet.events")
_MAX_THREADS = 64
# Seconds between two checks of the queue, and checks until the next event is offered anyway.
_PAUSE, _ATTEMPTS = 0.01, 1000


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
                    await self._queue.put(_copy(event))
                    self._offered.add(event["id"])
                if await _is_taken(self._queue):
                    self._store.mark_delivered(site, place)
                    self._offered.discard(event["id"])


def _copy(event: Event) -> Event:
    """Return an event that its receiver may change."""
    return dict(event)


async def _is_taken(queue: EventQueue) -> bool:
    """Wait until the queue is empty: then the rules have all events. False if others fill it."""
    inner: Any = getattr(queue, "queue", queue)
    for _attempt in range(_ATTEMPTS):
        if inner.empty():
            return True
        await asyncio.sleep(_PAUSE)
    return False
