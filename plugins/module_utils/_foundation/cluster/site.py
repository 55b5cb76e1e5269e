# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes, storages and bridges that a site may use; without a list, all of them. A site that is
draining gets no new guest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..api.settings import ACTIVE, ConnectionSettings
from ..core.errors import ConfigurationError, NotFound
from .find.names import NETWORK, NODE, STORAGE, find_unknown
from .state import ClusterState
from .tenant import PREFIX

if TYPE_CHECKING:
    from ..api.client import Client

NOT_OWN = "not the site's own"


def require_own_node(connection: ConnectionSettings, node: str) -> None:
    """Raise ConfigurationError for a node that the site does not use."""
    _require("Node", [node], connection.own_nodes, connection.site)


def require_own_storages(connection: ConnectionSettings, storages: Iterable[str]) -> None:
    """Raise ConfigurationError for a storage that the site does not use."""
    _require("Storage", storages, connection.own_storages, connection.site)


def require_own_bridges(connection: ConnectionSettings, bridges: Iterable[str]) -> None:
    """Raise ConfigurationError for a bridge that the site does not use."""
    _require("Bridge", bridges, connection.own_bridges, connection.site)


def require_new_guests(connection: ConnectionSettings) -> None:
    """Raise ConfigurationError if no new guest may be created at the site (pure)."""
    if connection.state == ACTIVE:
        return
    raise ConfigurationError(
        f"No guest was created: site {connection.site} is {connection.state}, so it gets no new "
        "guest",
        "Choose another site, or set the state of this site to active",
        f"{connection.state} site",
    )


def require_known_lists(unknown: Iterable[NotFound]) -> None:
    """Raise the first error of `unknown_in_lists` (pure)."""
    for error in unknown:
        raise error


def unknown_in_lists(client: Client, cluster: ClusterState) -> Iterator[NotFound]:
    """Yield the error of each name in the lists of the site that the cluster does not have.

    A storage that the login may not see can exist. Bridges need one request for each node.
    """
    connection = client.connection
    lists = (
        ("nodes", NODE, connection.own_nodes),
        ("storages", STORAGE, connection.own_storages),
        ("bridges", NETWORK, connection.own_bridges),
    )
    for key, kind, names in lists:
        for name in names:
            what = f"{key} of site {connection.site}"
            error = find_unknown(client, cluster, what, kind, name, PREFIX)
            if error is not None:
                yield error


def _require(kind: str, names: Iterable[str], own: tuple[str, ...], site: str) -> None:
    foreign = sorted(set(names) - set(own))
    if own and foreign:
        raise ConfigurationError(
            f"{kind} '{foreign[0]}' could not be used: site {site} uses {', '.join(own)}",
            f"Name one of them, or add it to {kind.lower()}s of that site",
            NOT_OWN,
        )
