# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bridges and mapped devices of nodes: the cluster's listing lacks them, so they are read if a
guest needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.errors import NetworkError, NodeUnhealthy
from ..core.propstring import sub_keys
from .placement import NodeChoice, PlacementNeeds, choose_node
from .rules import PlacementRules
from .state import ClusterState

if TYPE_CHECKING:
    from ..api.client import Client
    from ..api.settings import ConnectionSettings


class KnownBridges:
    """Bridges by node; each node is asked once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.by_node: dict[str, frozenset[str] | None] = {}
        self._mappings: dict[str, dict[str, frozenset[str]]] = {}

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
        types = sorted({device.partition("/")[0] for device in needs.devices})
        for kind in types:
            if kind not in self._mappings:
                rows = self._client.get("cluster", "mapping", kind)
                self._mappings[kind] = {str(row["id"]): _nodes_of(row) for row in rows or []}
        found: dict[str, frozenset[str] | None] = {}
        for device in needs.devices:
            kind, _slash, name = device.partition("/")
            found[device] = self._mappings[kind].get(name)
        return replace(needs, devices=found)

    def try_read(self, node: str) -> None:
        """Note the bridges of a node, or that it does not answer."""
        try:
            self.on(node)
        except (NetworkError, NodeUnhealthy):
            self.by_node[node] = None


def _nodes_of(mapping: Mapping[str, Any]) -> frozenset[str]:
    """Return the nodes that have a mapped device or directory."""
    entries = [sub_keys(str(text)) for text in mapping.get("map") or ()]
    return frozenset(entry["node"] for entry in entries if "node" in entry)


def choose_with_bridges(
    cluster: ClusterState, needs: PlacementNeeds, rules: PlacementRules, bridges: KnownBridges
) -> NodeChoice:
    """Return the choice of a node that has the bridges; the best candidate is asked first."""
    needs = bridges.with_devices(needs)
    while True:
        choice = choose_node(cluster, needs, rules, bridges.by_node)
        if not needs.bridges or choice.node in bridges.by_node:
            return choice
        bridges.try_read(choice.node)
