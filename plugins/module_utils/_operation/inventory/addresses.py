# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sources of addresses for each kind of hosts (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._guests.kinds.addresses import GuestAddress, agent_is_on
from ..._guests.kinds.words import CONTAINER, CT, VIRTUAL_MACHINE, VM


@dataclass(frozen=True)
class AddressSource:
    """The request for the addresses of a kind of guests, and the addresses in its configuration.

    `path` is below the path of the guest. `find_obstacle` returns from the configuration the reason
    why the guest cannot be asked, an empty text if it can. `needs_running`: the node answers null,
    or fails, for a guest that has stopped since the listing.
    """

    name: str
    path: tuple[str, ...]
    find_obstacle: Callable[[Mapping[str, Any]], str]
    configured: Callable[[Mapping[str, Any]], list[GuestAddress]]
    needs_running: bool = False


def _agent_obstacle(config: Mapping[str, Any]) -> str:
    agent = str(config.get("agent") or "0")
    return "" if agent_is_on(agent) else "agent not configured"


def _no_obstacle(_config: Mapping[str, Any]) -> str:
    """Return an empty text: the node itself reports the addresses of a container.

    Source: pve-container, LXC.pm (get_interfaces).
    """
    return ""


SOURCES: Mapping[str, AddressSource] = {
    VIRTUAL_MACHINE: AddressSource(
        name="agent",
        path=("agent", "network-get-interfaces"),
        find_obstacle=_agent_obstacle,
        configured=VM.addresses_in,
    ),
    CT: AddressSource(
        name="interfaces",
        path=("interfaces",),
        find_obstacle=_no_obstacle,
        configured=CONTAINER.addresses_in,
        needs_running=True,  # get_interfaces finds no process, or nsenter no network
    ),
}


def node_addresses(rows: Iterable[Mapping[str, Any]], node: str) -> list[GuestAddress]:
    """Return the address of a node in the rows of C(/cluster/status)."""
    for row in rows:
        if row.get("type") == "node" and row.get("name") == node and row.get("ip"):
            return [GuestAddress(str(row["ip"]), source="cluster")]
    return []
