# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The listing of a cluster, asked for once by all lookups of one run of Ansible."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from ansible import constants

from ..module_utils._api.client import Client
from ..module_utils._inventory.find import listed

Rows = list[dict[str, Any]]
LOOK_EVERY = 0.05  # seconds, while another process asks


class SharedListing:
    """What one login sees of one cluster, in a file.

    Tasks are worked on in processes of their own, side by side, so nothing kept in memory would last from one to the
    next. The file is in the directory that Ansible makes for each run and removes at its end. Times are those of this
    machine, in seconds.
    """

    def __init__(self, client: Client) -> None:
        connection = client.connection
        who = (connection.endpoint.url, connection.token_id or connection.user, *connection.secrets)
        name = hashlib.sha256(repr(who).encode()).hexdigest()[:16]
        self._client = client
        self._place = os.path.join(constants.DEFAULT_LOCAL_TMP, f"pve_fleet_listing_{name}")

    def rows(self, since: float) -> Rows:
        """Return the VMs as this process or another one was told after that time. Raises FleetError."""
        known = self._known(since)
        if known is not None:
            return known
        with self._turn():
            known = self._known(since)
            return self._ask() if known is None else known

    def _ask(self) -> Rows:
        asked = time.time()
        try:
            rows = listed(self._client)
        except BaseException:
            with suppress(OSError), open(f"{self._place}.failed", "w", encoding="utf-8"):
                pass
            raise
        self._keep(asked, rows)
        return rows

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until no other process asks, for it may be told what we want to know.

        Once one has failed, nobody waits any longer: otherwise each would in turn wait for the same failure.
        """
        began = time.time()
        with ExitStack() as opened:
            waits = False
            with suppress(OSError):
                lock = opened.enter_context(open(f"{self._place}.lock", "w", encoding="utf-8"))
                waits = True
            while waits and not self._has_failed_since(began):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(LOOK_EVERY)
                except OSError:  # a file system without locks
                    break
            yield

    def _has_failed_since(self, began: float) -> bool:
        try:
            return os.stat(f"{self._place}.failed").st_mtime >= began
        except OSError:
            return False

    def _known(self, since: float) -> Rows | None:
        try:
            with open(f"{self._place}.json", encoding="utf-8") as stream:
                data = json.load(stream)
            rows: Rows = data["rows"]
            return rows if data["asked"] >= since else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _keep(self, asked: float, rows: Rows) -> None:
        """Write the listing whole or not at all; other processes may read or write it at the same time."""
        with suppress(OSError):
            where = os.path.dirname(self._place)
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=where, delete=False) as stream:
                json.dump({"asked": asked, "rows": rows}, stream)
            os.replace(stream.name, f"{self._place}.json")
