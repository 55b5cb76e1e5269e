# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts about nodes that the cluster's listing lacks, read if a guest needs them: bridges, mapped
devices, and the record of an unfinished maintenance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.errors import FleetError, NetworkError, NodeUnhealthy
from ..core.propstring import sub_keys
from .placement import NodeChoice, PlacementNeeds, choose_node
from .rules import PlacementRules
from .state import ClusterState, NodeRow

if TYPE_CHECKING:
    from ..api.client import Client
    from ..api.settings import ConnectionSettings

# How the record of a maintenance begins in the notes of its node: _infrastructure/node/record.py.
_RECORD = "<!-- pve.fleet maintenance "
# A node that waits for its maintenance still has its guests.
_PENDING = _RECORD + '{"phase":"pending"'


class KnownBridges:
    """Bridges by node; each node is asked once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.by_node: dict[str, frozenset[str] | None] = {}
        self._mappings: dict[str, dict[str, frozenset[str]]] = {}
        self._maintained: dict[str, bool] = {}

    @property
    def connection(self) -> ConnectionSettings:
        """The connection of the requests for bridges."""
        return self._client.connection

    def on(self, node: str) -> frozenset[str]:
        """Return the bridges and VNets of a node. Raises NetworkError if it does not answer."""
        known = self.by_node.get(node)
        if known is None:
            known = frozenset(
                str(row["iface"])
                for row in self._client.get("nodes", node, "network", type="any_bridge")
            )
            self.by_node[node] = known
        return known

    def with_devices(self, needs: PlacementNeeds) -> PlacementNeeds:
        """Return the needs with the nodes of each mapped device; one request for each type.

        A mapping that the caller may not see stays unknown: PVE decides.
        """
        found: dict[str, frozenset[str] | None] = {}
        for device in needs.devices:
            kind, _slash, name = device.partition("/")
            found[device] = self.mappings(kind).get(name)
        return replace(needs, devices=found)

    def mappings(self, kind: str) -> Mapping[str, frozenset[str]]:
        """Return the nodes of each mapping of a type that the caller may see."""
        if kind not in self._mappings:
            rows = self._client.get("cluster", "mapping", kind)
            self._mappings[kind] = {str(row["id"]): _nodes_of(row) for row in rows or []}
        return self._mappings[kind]

    def try_read(self, node: str) -> None:
        """Note the bridges of a node, or that it does not answer."""
        try:
            self.on(node)
        except (NetworkError, NodeUnhealthy):
            self.by_node[node] = None

    def is_maintained(self, node: NodeRow) -> bool:
        """Return whether the notes of a node contain the record of a maintenance that has started.

        A caller who may not read the notes does not see the memory of the node either, unless the
        right is on the node alone: then PVE refuses the request (pve-manager: PVE/API2/NodeConfig.pm).
        """
        if node.memory and node.node not in self._maintained:
            try:
                config = self._client.get("nodes", node.node, "config", tries=1) or {}
            except FleetError:
                config = {}
            notes = str(config.get("description") or "")
            self._maintained[node.node] = _RECORD in notes and _PENDING not in notes
        return self._maintained.get(node.node, False)


def _nodes_of(mapping: Mapping[str, Any]) -> frozenset[str]:
    """Return the nodes that have a mapped device or directory."""
    entries = [sub_keys(str(text)) for text in mapping.get("map") or ()]
    return frozenset(entry["node"] for entry in entries if "node" in entry)


def choose_with_bridges(
    cluster: ClusterState, needs: PlacementNeeds, rules: PlacementRules, bridges: KnownBridges
) -> NodeChoice:
    """Return the choice of a node that has the bridges and is not in maintenance.

    The best candidate is asked first.
    """
    needs = bridges.with_devices(needs)
    while True:
        choice = choose_node(cluster, needs, rules, bridges.by_node)
        node = cluster.nodes[choice.node]
        if bridges.is_maintained(node):
            maintained = replace(node, maintenance=True)
            cluster = replace(cluster, nodes={**cluster.nodes, node.node: maintained})
        elif not needs.bridges or choice.node in bridges.by_node:
            return choice
        else:
            bridges.try_read(choice.node)
