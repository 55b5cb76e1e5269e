# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The listing of a cluster, read once for all lookups of one run of Ansible."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from ansible import constants

from ..module_utils._api.client import Client
from ..module_utils._inventory.listing import Rows, listed
from ..module_utils._inventory.names import listed_on

LOOK_EVERY = 0.05  # seconds, while another process reads it


class SharedListing:
    """What one login sees of one cluster, in files.

    Tasks are worked on in processes of their own, side by side, so nothing kept in memory would
    last from one to the next. The files are in the directory that Ansible makes for each run and
    removes at its end. Times are those of this machine, in seconds.
    """

    def __init__(self, client: Client) -> None:
        connection = client.connection
        who = (connection.endpoint.url, connection.token_id or connection.user, *connection.secrets)
        name = hashlib.sha256(repr(who).encode()).hexdigest()[:16]
        self._client = client
        self._place = os.path.join(constants.DEFAULT_LOCAL_TMP, f"pve_fleet_listing_{name}")

    def rows(self, since: float) -> Rows:
        """Return the VMs as this process or another one read them after that time.

        Raises FleetError.
        """
        return self._shared(self._place, since, lambda: listed(self._client))

    def node_rows(self, node: str, since: float) -> Rows:
        """Return the VMs of a node, read after that time too."""
        return self._shared(f"{self._place}_{node}", since, lambda: listed_on(self._client, node))

    def _shared(self, place: str, since: float, read: Callable[[], Rows]) -> Rows:
        known = _known(place, since)
        if known is not None:
            return known
        with _turn(place):
            known = _known(place, since)
            return _ask(place, read) if known is None else known


def _ask(place: str, read: Callable[[], Rows]) -> Rows:
    asked = time.time()
    try:
        rows = read()
    except BaseException:
        with suppress(OSError), open(f"{place}.failed", "w", encoding="utf-8"):
            pass
        raise
    _keep(place, asked, rows)
    return rows


@contextmanager
def _turn(place: str) -> Iterator[None]:
    """Wait until no other process reads the listing, which can then be used here too.

    Once one has failed, no process waits any longer: each would in turn wait for the same
    failure.
    """
    began = time.time()
    with ExitStack() as opened:
        waits = False
        with suppress(OSError):
            lock = opened.enter_context(open(f"{place}.lock", "w", encoding="utf-8"))
            waits = True
        while waits and not _has_failed_since(place, began):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(LOOK_EVERY)
            except OSError:  # a file system without locks
                break
        yield


def _has_failed_since(place: str, began: float) -> bool:
    try:
        return os.stat(f"{place}.failed").st_mtime >= began
    except OSError:
        return False


def _known(place: str, since: float) -> Rows | None:
    try:
        with open(f"{place}.json", encoding="utf-8") as stream:
            data = json.load(stream)
        rows: Rows = data["rows"]
        return rows if data["asked"] >= since else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(place: str, asked: float, rows: Rows) -> None:
    """Write the listing whole or not at all.

    Other processes may read or write it at the same time.
    """
    with suppress(OSError):
        where = os.path.dirname(place)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=where, delete=False) as stream:
            json.dump({"asked": asked, "rows": rows}, stream)
        os.replace(stream.name, f"{place}.json")
