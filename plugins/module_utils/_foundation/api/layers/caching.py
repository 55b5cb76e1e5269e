# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer that sends each read once, and the client to plan many things from the same answers."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from ...core.errors import FleetError
from ..client import Client
from ..protocols import Sender
from ..request import Request

_Question = tuple[tuple["str | int", ...], tuple[tuple[str, str], ...], str]
"""Path, query, and the attribute beside the data."""


class CachingLayer:
    """Answers a repeated read from memory, failures included. It refuses writes.

    An answer may be returned again, so callers must not change it. Safe to use from several
    threads.
    """

    def __init__(self, below: Sender) -> None:
        self._below = below
        self._known: dict[_Question, tuple[Any, FleetError | None]] = {}
        self._lock = threading.Lock()

    def send(self, request: Request) -> Any:
        """Return `data` of the first answer. Raises FleetError, and TypeError for a write."""
        if request.method != "GET":
            raise TypeError(
                f"{request.method} {request.segments}: a client for planning was asked to write"
            )
        question = (request.segments, tuple(sorted(request.values.items())), request.beside)
        with self._lock:
            known = self._known.get(question)
        if known is None:
            known = self._send(request)
            with self._lock:
                self._known[question] = known
        answer, failure = known
        if failure is not None:
            raise failure.on(attempted=request.attempted or failure.attempted) from None
        return answer

    def _send(self, request: Request) -> tuple[Any, FleetError | None]:
        try:
            return self._below.send(request), None
        except FleetError as error:
            return None, error


class CachingReader(Client):
    """A client of the same Proxmox VE that sends each read once and cannot write."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._assemble(replace(client._layers, above=CachingLayer))

    @classmethod
    def around(cls, client: Client) -> CachingReader:
        """Return the client itself if it already caches, else a caching client around it."""
        if isinstance(client, cls):
            return client
        return cls(client)

    def direct(self) -> Client:
        """Return the client without the cache."""
        return self._client
