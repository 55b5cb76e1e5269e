# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that outlive a task's item: the next item of a loop finds the connection open."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import util
from typing import NamedTuple

from ..module_utils._foundation.api.client import Client
from ..module_utils._foundation.api.settings import ConnectionSettings
from ..module_utils._foundation.core.clock import Clock

# Proxmox VE closes a connection that is idle for five seconds. If it closes a connection just as a
# write is sent, it is unknown whether the write happened.
LONGEST_IDLE = 3.0
MAXIMUM = 8  # clients at once

Key = tuple[ConnectionSettings, tuple[tuple[str, str], ...]]


class _PooledClient(NamedTuple):
    """A client, and the time of its last return, in seconds of the clock."""

    client: Client
    returned: float


class Clients:
    """The clients of one process. A process that is forked from it starts without clients."""

    def __init__(
        self, clock: Clock | None = None, create: Callable[[ConnectionSettings], Client] = Client
    ) -> None:
        self._clock = clock or Clock()
        self._create = create
        self._pid = 0
        self._pool: dict[Key, _PooledClient] = {}

    @contextmanager
    def lend(
        self, connection: ConnectionSettings, environment: Mapping[str, str]
    ) -> Iterator[Client]:
        """Lend a client for this connection. After an error it is closed and not lent again.

        `environment` are the variables that the task sets. TLS reads variables too, so a client is
        reused only if they are the same.
        """
        self._forget_others()
        key = (connection, tuple(sorted(environment.items())))
        client = self._take(key) or self._create(connection)
        try:
            yield client
        except BaseException:
            client.close()
            raise
        self._pool[key] = _PooledClient(client, self._clock.monotonic())
        for oldest in list(self._pool)[:-MAXIMUM]:
            self._pool.pop(oldest).client.close()

    def _take(self, key: Key) -> Client | None:
        """Return the kept client for this connection, if there is one."""
        pooled = self._pool.pop(key, None)
        if pooled is None:
            return None
        pooled.client.requests.clear()  # each task has its own record
        if self._clock.monotonic() - pooled.returned > LONGEST_IDLE:
            pooled.client.close()
        return pooled.client

    def close(self) -> None:
        """Close all connections of this process."""
        if self._pid != os.getpid():
            return
        for pooled in self._pool.values():
            pooled.client.close()
        self._pool.clear()

    def _forget_others(self) -> None:
        """Forget the clients of another process: two processes must never use one connection."""
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._pool = {}
        util.Finalize(self, self.close, exitpriority=10)


CLIENTS = Clients()
