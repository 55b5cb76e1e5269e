# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client that asks each question once: for planning many things from one look."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from .._core.errors import FleetError
from .client import Client


class Remembering(Client):
    """The same Proxmox VE as the client's; what was read once is not read again. It cannot write.

    What is returned may be returned again, so it must not be changed. Safe to use from several threads.
    """

    def __init__(self, client: Client) -> None:
        self.__dict__.update(client.view().__dict__)  # the same connections and the same record
        self._client = client.view()
        self._known: dict[tuple[Any, ...], Any] = {}
        self._guard = threading.Lock()

    def get(
        self,
        *segments: str | int,
        params: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        tries: int | None = None,
        attempted: str = "",
        **query: Any,
    ) -> Any:
        """Return what a GET returned the first time, or raise again what it raised."""
        wanted = {**(params or {}), **query}
        key = (segments, tuple(sorted(wanted.items())))
        with self._guard:
            known = self._known.get(key)
        if known is None:
            try:
                known = (self._client.get(*segments, params=wanted, timeout=timeout, tries=tries), None)
            except FleetError as error:
                known = (None, error)
            with self._guard:
                self._known[key] = known
        answer, failure = known
        if failure is not None:
            raise failure.on(attempted=attempted or failure.attempted) from None
        return answer

    def _write(self, method: str, segments: tuple[str | int, ...], *_rest: Any) -> Any:
        """Refuse: a plan changes nothing."""
        raise TypeError(f"{method} {segments}: a client for planning was asked to write")
