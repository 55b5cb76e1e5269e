# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that outlive a task's item: the next item of a loop finds the connection open."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import util

from ..module_utils._api.client import Client
from ..module_utils._api.settings import Connection
from ..module_utils._core.clock import Clock
from ._prefetch import Prefetcher

# Proxmox VE closes a connection that is idle for five seconds. One that it closes just as a write
# is sent would leave open whether the write happened.
LONGEST_IDLE = 3.0
MAXIMUM = 8  # clients at once

Key = tuple[Connection, tuple[tuple[str, str], ...]]


@dataclass
class Kept:
    """A client, what it learned from the items of a loop, and when it was last returned, in
    seconds.
    """

    client: Client
    prefetcher: Prefetcher = field(default_factory=Prefetcher)
    returned: float = 0.0


class Clients:
    """The clients of one process. A process that was forked from it starts without any."""

    def __init__(
        self, clock: Clock | None = None, make: Callable[[Connection], Client] = Client
    ) -> None:
        self._clock = clock or Clock()
        self._make = make
        self._pid = 0
        self._kept: dict[Key, Kept] = {}

    @contextmanager
    def lend(self, connection: Connection, environment: Mapping[str, str]) -> Iterator[Kept]:
        """Lend a client for this connection. After an error it is closed and not lent again.

        `environment` is what the task sets: TLS reads variables too, so connections differ by it.
        """
        self._forget_others()
        key = (connection, tuple(sorted(environment.items())))
        kept = self._kept.pop(key, None)
        self.stop_guessing()
        if kept is None:
            kept = Kept(self._make(connection))
        else:
            kept.client.requests.clear()  # the record is one of a task
            if self._clock.monotonic() - kept.returned > LONGEST_IDLE:
                kept.client.close()
        try:
            yield kept
        except BaseException:
            kept.client.close()
            raise
        kept.returned = self._clock.monotonic()
        self._kept[key] = kept
        for oldest in list(self._kept)[:-MAXIMUM]:
            self._kept.pop(oldest).client.close()

    def stop_guessing(self) -> None:
        """Let no other client use what it has asked for the next item."""
        for kept in self._kept.values():
            kept.prefetcher.stop_guessing()

    def close(self) -> None:
        """Close all connections of this process."""
        if self._pid != os.getpid():
            return
        for kept in self._kept.values():
            kept.client.close()
        self._kept.clear()

    def _forget_others(self) -> None:
        """Forget what another process opened: a connection must never be used by two."""
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._kept = {}
        util.Finalize(self, self.close, exitpriority=10)


CLIENTS = Clients()
