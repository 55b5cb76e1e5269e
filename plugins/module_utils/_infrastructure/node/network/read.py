# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the network of a node, the addresses of the cluster, and the guests on a bridge."""

from __future__ import annotations

import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.state import read_members
from ...._foundation.core.errors import FleetError, NotFound, PermissionDenied
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.validate import is_address
from ...._guests.kinds.words import GUESTS, TYPES, kind_name
from .model import NodeInterfaces
from .settings import settings_of

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_RINGS = tuple(f"ring{number}_addr" for number in range(8))


def read_network(client: Client, node: str, *, tries: int | None = None) -> NodeInterfaces:
    """Return the network of a node as it will be after the next reload. Raises FleetError."""
    rows, pending = client.get_beside(
        "changes",
        "nodes",
        node,
        "network",
        tries=tries,
        attempted=f"Could not read the network of node {node}",
    )
    by_name = {row["iface"]: row for row in sorted(rows or [], key=lambda one: str(one["iface"]))}
    interfaces = {name: settings_of(row) for name, row in by_name.items()}
    return NodeInterfaces(interfaces, by_name, str(pending or ""))


def read_addresses(client: Client, node: str) -> tuple[frozenset[str], dict[str, str]]:
    """Return the addresses by which the API and corosync reach a node, and the addresses of all
    nodes with their owners.

    They are incomplete if the caller may not read the cluster's status.
    """
    owners: dict[str, str] = {}
    own: set[str] = set(_api_addresses(client))
    for address in own:
        owners[address] = "the API"
    for name, address in _cluster_addresses(client):
        owners[address] = f"node {name}"
        if name == node:
            own.add(address)
    return frozenset(own), owners


def _api_addresses(client: Client) -> list[str]:
    """Return the addresses of the hosts that the task connects to."""
    connection = client.connection
    endpoints = [connection.endpoint, *(server.endpoint for server in connection.others)]
    return [address for endpoint in endpoints for address in _addresses_of(endpoint.host)]


def _addresses_of(host: str) -> list[str]:
    if any(is_address(host, version) for version in (4, 6)):
        return [host]
    with suppress(OSError):
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return sorted({str(one[4][0]) for one in found})
    return []


def _cluster_addresses(client: Client) -> list[tuple[str, str]]:
    """Return the nodes with their addresses, one pair for each address."""
    found: list[tuple[str, str]] = []
    with suppress(PermissionDenied):
        for row in read_members(client):
            if row.get("ip"):
                found.append((str(row["name"]), str(row["ip"])))
    with suppress(PermissionDenied, NotFound):
        for row in client.get("cluster", "config", "nodes") or []:
            name = str(row.get("node") or row.get("name") or "")
            found += [(name, str(row[ring])) for ring in _RINGS if row.get(ring)]
    return found


def read_bridge_users(client: Client, node: str) -> dict[str, list[str]]:
    """Return the guests of a node by the bridge that they use, each as C(VM 100 (web1)).

    One request for the list, and one for each guest.
    """
    listed = client.get("cluster", "resources", type="vm") or []
    guests = [row for row in listed if row.get("node") == node and row["type"] in TYPES]

    def read(row: Mapping[str, Any]) -> tuple[str, Collection[str]]:
        kind = GUESTS[kind_name(row["type"])]
        label = f"{kind.noun} {row['vmid']}"
        if row.get("name"):
            label += f" ({row['name']})"
        try:
            config = client.get("nodes", node, kind.type, row["vmid"], "config")
        except FleetError as error:
            raise error.on(attempted=f"Could not read the bridges of {label}") from error
        return label, set(kind.bridges_in(config or {}).values())

    users: dict[str, list[str]] = {}
    for label, bridges in side_by_side(read, guests):
        for bridge in bridges:
            users.setdefault(bridge, []).append(label)
    return users
