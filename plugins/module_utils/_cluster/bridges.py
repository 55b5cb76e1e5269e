# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bridges of nodes: the cluster's listing lacks them, so a node is asked for them if needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.errors import NetworkError, NodeUnhealthy
from .placement import NodeChoice, PlacementNeeds, choose_node
from .rules import PlacementRules
from .state import ClusterState

if TYPE_CHECKING:
    from .._api.client import Client
    from .._api.settings import ConnectionSettings


class KnownBridges:
    """Bridges by node; each node is asked once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.by_node: dict[str, frozenset[str] | None] = {}

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

    def try_read(self, node: str) -> None:
        """Note the bridges of a node, or that it does not answer."""
        try:
            self.on(node)
        except (NetworkError, NodeUnhealthy):
            self.by_node[node] = None


def choose_with_bridges(
    cluster: ClusterState, needs: PlacementNeeds, rules: PlacementRules, bridges: KnownBridges
) -> NodeChoice:
    """Return the choice of a node that has the bridges; the best candidate is asked first."""
    while True:
        choice = choose_node(cluster, needs, rules, bridges.by_node)
        if not needs.bridges or choice.node in bridges.by_node:
            return choice
        bridges.try_read(choice.node)
