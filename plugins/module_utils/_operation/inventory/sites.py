# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the listing of one or several sites, in parallel, and correct rows that are still wrong.

The listing takes name, template flag, power state and figures of a guest from the last statistics
of its VMID (pve-manager: PVE/API2Tools.pm, extract_vm_stats). Until pvestatd has run, within ten
seconds, the row of a new guest contains none of them, or the values of a removed VM with the same
VMID.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.api.settings import ReadFile, named_site, resolve, site_names
from ..._foundation.cluster.state import CREATION_LOCKS
from ..._foundation.core.errors import (
    ApiError,
    ConfigurationError,
    FleetError,
    NetworkError,
    NodeUnhealthy,
)
from ..._foundation.core.parallel import LISTINGS_AT_ONCE, side_by_side
from ..._guests.kinds.kind import Kind
from ..._guests.kinds.words import GUESTS, VM
from .kinds import is_guest, kind_of

Rows = list[dict[str, Any]]


def listed(client: Client) -> Rows:
    """Return the VMs of `/cluster/resources`. Raises FleetError."""
    attempted = "Could not list the VMs"
    answer = client.get("cluster", "resources", type="vm", attempted=attempted)
    rows = checked_rows(answer, attempted)
    return [dict(row) for row in rows if row.get("type") == VM.type]


def checked_rows(answer: Any, attempted: str) -> list[Mapping[str, Any]]:
    """Return the rows of a listing.

    Raises ApiError for an answer that is not a listing: it must not count as an empty listing.
    """
    if not isinstance(answer, list):
        raise ApiError(
            f"{attempted}: the answer is not a list",
            "Check that host and port lead to Proxmox VE, and the proxies on the way",
            "not a listing",
        )
    return [row for row in answer if isinstance(row, Mapping)]


# Fields that come from the statistics. The tags, the pool and the lock in the listing are current.
_FIGURES = frozenset(
    "name status uptime cpu mem maxmem maxdisk diskread diskwrite netin netout memhost".split()
)


def listed_on(client: Client, kind: Kind, node: str) -> Rows:
    """Return the guests in the list of a node, none if it does not answer. Raises FleetError."""
    attempted = f"Could not list the {kind.noun}s of node {node}"
    try:
        answer = client.get(*kind.path(node), attempted=attempted)
    except (NetworkError, NodeUnhealthy):
        return []
    return [dict(row) for row in checked_rows(answer, attempted)]


def lists_to_query(
    rows: Sequence[Mapping[str, Any]], kinds: Collection[str] = tuple(GUESTS)
) -> list[tuple[str, str]]:
    """Return pairs of kind and node: the lists with guests of these kinds whose row in the listing
    is recognizably incomplete or doubtful (pure).

    These are guests without a name, guests whose creation is in progress, and guests with the same
    name and tags: one of these may have the VMID of a removed guest. Nodes that are not online are
    left out.
    """
    guests = [row for row in rows if is_guest(row, kinds)]
    online = {row.get("node") for row in rows if row.get("status") == "online"}
    counts = Counter(map(_identity, guests))
    lists: set[tuple[str, str]] = set()
    for row in guests:
        if row.get("node") in online and _is_unverified(row, counts):
            lists.add((kind_of(row), str(row["node"])))
    return sorted(lists)


def _identity(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row.get("name", "")), str(row.get("tags", ""))


def _is_unverified(row: Mapping[str, Any], counts: Mapping[tuple[str, str], int]) -> bool:
    """Return whether the row may show the values of another guest.

    A template may have a copy on each node, so its name may be listed several times.
    """
    if not row.get("name") or row.get("lock") in CREATION_LOCKS:
        return True
    return not row.get("template") and counts[_identity(row)] > 1


def with_figures(
    rows: Sequence[Mapping[str, Any]], of_nodes: Iterable[tuple[str, Rows]]
) -> list[dict[str, Any]]:
    """Return the rows of the listing with the figures of guests that nodes report (pure)."""
    known: dict[tuple[str, int], Mapping[str, Any]] = {}
    for node, guests in of_nodes:
        for one in guests:
            known[node, int(one["vmid"])] = one
    found: list[dict[str, Any]] = []
    for row in rows:
        merged = dict(row)
        guest = known.get((str(row.get("node")), int(row["vmid"]))) if is_guest(row) else None
        if guest is not None:
            merged.update({key: guest[key] for key in guest if key in _FIGURES})
            merged["maxcpu"] = guest.get("cpus")
            # a node sends the flag for templates only
            merged["template"] = guest.get("template", 0)
        found.append(merged)
    return found


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
        nodes = [row for row in self.rows if row.get("type") == "node"]
        return frozenset(str(row.get("node")) for row in nodes if row.get("status") == "offline")


def open_clients(
    options: Mapping[str, Any], environ: Mapping[str, str], read_file: ReadFile | None = None
) -> tuple[dict[str, Client], list[SiteListing]]:
    """Return a client for each site by name, and a listing with the error of each unusable site.

    These are all sites, or the site in the options; without sites there is one site named ''.
    No request is made. Raises ConfigurationError, except for an error of one of several sites.
    """
    is_one_site = named_site(options, environ) or str(options.get("host") or "").strip()
    names = [] if is_one_site else list(site_names(options, environ, read_file))
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
            if attempted and f"(site {name})" not in attempted:
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
        place = f"site {site}" if site else str(client.connection.endpoint)
        attempted = f"Could not list the guests of {place}"
        try:
            # Without a type, the answer contains the nodes too, including offline nodes.
            answer = client.get("cluster", "resources", attempted=attempted)
            rows = checked_rows(answer, attempted)
            return SiteListing(site, _completed(client, rows, kinds))
        except FleetError as error:
            return SiteListing(site, error=error)

    return side_by_side(read_one, list(clients), LISTINGS_AT_ONCE)


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
