# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the listing of one or several sites, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .._api.client import Client
from .._api.settings import ReadFile, resolve, site_names
from .._core.errors import ConfigurationError, FleetError
from .find import checked_rows

MOST_SITES_AT_ONCE = 16


@dataclass(frozen=True)
class Listing:
    """What one site answered: rows of `/cluster/resources`, or the error that it could not be read."""

    site: str
    rows: tuple[Mapping[str, Any], ...] = ()
    error: FleetError | None = None

    @property
    def shows_guests(self) -> bool:
        """Whether there is any VM or container that the user may see."""
        return any(row.get("type") in ("qemu", "lxc") for row in self.rows)

    @property
    def offline(self) -> frozenset[str]:
        """The nodes that are known to be down; what was last heard of their VMs stays in the listing for minutes."""
        return frozenset(
            str(row.get("node")) for row in self.rows if row.get("type") == "node" and row.get("status") == "offline"
        )


def open_clients(
    options: Mapping[str, Any], environ: Mapping[str, str], read_file: ReadFile | None = None
) -> tuple[dict[str, Client], list[Listing]]:
    """Return a client for each site by name, and a listing with the error of each site whose settings are of no use.

    These are all sites, or the one that is named; without sites one with the name ''. No request is made. Raises
    ConfigurationError where it is not about one of several sites.
    """
    one = any(str(value or "").strip() for value in (options.get("site"), environ.get("PROXMOX_SITE")))
    names = [] if one or str(options.get("host") or "").strip() else site_names(options, environ, read_file)
    if not names:
        client = Client(resolve(options, environ, read_file))
        return {client.site: client}, []
    clients: dict[str, Client] = {}
    unusable: list[Listing] = []
    for name in names:
        try:
            clients[name] = Client(resolve({**options, "site": name}, environ, read_file))
        except ConfigurationError as error:
            attempted = f"{error.attempted} (site {name})" if error.attempted else ""
            unusable.append(Listing(name, error=error.on(attempted=attempted)))
    return clients, unusable


def read_listings(clients: Mapping[str, Client]) -> list[Listing]:
    """Return what each site lists, in the order of the sites; a site that fails is told by its listing, not raised."""

    def one(site: str) -> Listing:
        try:
            # Without a type, because the same answer then tells which nodes are down.
            attempted = _attempted(site, clients[site])
            rows = clients[site].get("cluster", "resources", attempted=attempted)
            return Listing(site, tuple(checked_rows(rows, attempted)))
        except FleetError as error:
            return Listing(site, error=error)

    if len(clients) == 1:
        return [one(site) for site in clients]
    with ThreadPoolExecutor(max_workers=min(MOST_SITES_AT_ONCE, len(clients))) as pool:
        return list(pool.map(one, clients))


def _attempted(site: str, client: Client) -> str:
    return f"Could not list the VMs of {f'site {site}' if site else client.connection.endpoint}"
