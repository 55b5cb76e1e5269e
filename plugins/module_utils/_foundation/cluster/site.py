# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes, storages and bridges that a site may use; without a list, all of them (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from ..api.settings import ConnectionSettings
from ..core.errors import ConfigurationError

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


def _require(kind: str, names: Iterable[str], own: tuple[str, ...], site: str) -> None:
    foreign = sorted(set(names) - set(own))
    if own and foreign:
        raise ConfigurationError(
            attempted=f"{kind} '{foreign[0]}' could not be used",
            answer=f"site {site} uses {', '.join(own)}",
            next_step=f"Name one of them, or add it to {kind.lower()}s of that site",
            reason=NOT_OWN,
            dispatched=False,
        )
