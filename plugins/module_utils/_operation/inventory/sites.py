# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the listing of one or several sites, in parallel."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.api.settings import ReadFile, named_site, resolve, site_names
from ..._foundation.core.errors import ConfigurationError, FleetError
from ..._foundation.core.parallel import SITES_AT_ONCE, side_by_side
from ..._guests.kinds.words import GUESTS
from .names import Rows, checked_rows, listed_on, lists_to_query, with_figures


@dataclass(frozen=True)
class SiteListing:
    """The answer of one site: rows of `/cluster/resources`, or the error of the request."""

    site: str
    rows: tuple[Mapping[str, Any], ...] = ()
    error: FleetError | None = None

    @property
    def shows_guests(self) -> bool:
        """Whether the user may see any VM or container."""
        return any("vmid" in row for row in self.rows)

    @property
    def offline(self) -> frozenset[str]:
        """The nodes that are listed as offline; their VMs stay in the listing for minutes."""
        offline: set[str] = set()
        for row in self.rows:
            is_node = row.get("type") == "node"
            if is_node and row.get("status") == "offline":
                offline.add(str(row.get("node")))
        return frozenset(offline)


def open_clients(
    options: Mapping[str, Any], environ: Mapping[str, str], read_file: ReadFile | None = None
) -> tuple[dict[str, Client], list[SiteListing]]:
    """Return a client for each site by name, and a listing with the error of each unusable site.

    These are all sites, or the site in the options; without sites there is one site named ''.
    No request is made. Raises ConfigurationError, except for an error of one of several sites.
    """
    names: list[str] = []
    host = str(options.get("host") or "")
    is_one_site = named_site(options, environ) or host.strip()
    if not is_one_site:
        names = list(site_names(options, environ, read_file))
    if not names:
        client = Client(resolve(options, environ, read_file)).printable()
        return {client.site: client}, []
    clients: dict[str, Client] = {}
    unusable: list[SiteListing] = []
    for name in names:
        try:
            connection = resolve({**options, "site": name}, environ, read_file)
        except ConfigurationError as error:
            attempted = error.attempted
            if attempted:
                attempted = f"{attempted} (site {name})"
            unusable.append(SiteListing(name, error=error.on(attempted=attempted)))
            continue
        clients[name] = Client(connection).printable()
    return clients, unusable


def read_listings(clients: Mapping[str, Client], kinds: Collection[str]) -> list[SiteListing]:
    """Return the listing of each site in this order; the listing of a failed site has its error.

    `kinds` are the kinds of hosts to show.
    """

    def read_one(site: str) -> SiteListing:
        client = clients[site]
        place = str(client.connection.endpoint)
        if site:
            place = f"site {site}"
        attempted = f"Could not list the guests of {place}"
        try:
            # Without a type, the answer contains the nodes too, including offline nodes.
            answer = client.get("cluster", "resources", attempted=attempted)
            rows = checked_rows(answer, attempted)
            return SiteListing(site, _completed(client, rows, kinds))
        except FleetError as error:
            return SiteListing(site, error=error)

    return side_by_side(read_one, list(clients), SITES_AT_ONCE)


def _completed(
    client: Client, rows: Sequence[Mapping[str, Any]], kinds: Collection[str]
) -> tuple[Mapping[str, Any], ...]:
    """Return the rows; for guests that are too new for the listing, with the figures of their node.

    One request for each kind and node with such guests; usually there are none. Raises FleetError.
    """
    lists = lists_to_query(rows, kinds)
    if not lists:
        return tuple(rows)

    def read(one: tuple[str, str]) -> tuple[str, Rows]:
        kind, node = one
        return node, listed_on(client, GUESTS[kind], node)

    return tuple(with_figures(rows, side_by_side(read, lists)))
