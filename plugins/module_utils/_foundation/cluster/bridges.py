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
from ..core.parallel import side_by_side
from ..core.propstring import sub_keys
from .cards import Card, addresses_in, cards_in, why_in_use
from .placement import NodeChoice, PlacementNeeds, choose_node
from .rules import PlacementRules
from .state import ClusterState, NodeRow, VmRow

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
        self._mappings: dict[str, dict[str, list[dict[str, str]]]] = {}
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
        entries = self._entries(kind).items()
        return {name: frozenset(entry["node"] for entry in found) for name, found in entries}

    def _entries(self, kind: str) -> Mapping[str, list[dict[str, str]]]:
        if kind not in self._mappings:
            rows = self._client.get("cluster", "mapping", kind)
            self._mappings[kind] = {str(row["id"]): _entries_of(row) for row in rows or []}
        return self._mappings[kind]

    def with_cards(self, needs: PlacementNeeds, node: str, cluster: ClusterState) -> PlacementNeeds:
        """Return the needs, with the reason why a node has no PCI device for the VM; one request for
        each VM that runs there, and one more if it has a PCI device.
        """
        if not needs.cards or node in needs.busy:
            return needs
        entries = {
            name: [addresses_in(entry.get("path", "")) for entry in found if entry["node"] == node]
            for name, found in self._entries("pci").items()
        }
        rows = [row for row in cluster.guests if row.node == node and _may_hold(row, needs.vmid)]
        held = dict(
            zip((row.vmid for row in rows), side_by_side(self._cards_of, rows), strict=True)
        )
        return replace(needs, busy={**needs.busy, node: why_in_use(needs.cards, entries, held)})

    def _cards_of(self, row: VmRow) -> tuple[Card, ...]:
        """Return the PCI devices that a VM holds; none if that cannot be seen: PVE decides."""
        if row.planned:
            return row.cards
        try:
            cards = cards_in(self._client.get(*row.path, "config", params={"current": 1}) or {})
            # the listing may show a VM as running that was just stopped
            if cards and self._client.get(*row.path, "status", "current")["status"] == "running":
                return cards
        except FleetError:
            return ()
        return ()

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


def _entries_of(mapping: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the entries of a mapped device or directory, each with its node."""
    entries = [sub_keys(str(text)) for text in mapping.get("map") or ()]
    return [entry for entry in entries if "node" in entry]


def _may_hold(row: VmRow, vmid: int | None) -> bool:
    """Return whether a guest may hold a PCI device that another VM needs (pure)."""
    if row.type != "qemu" or row.vmid == vmid:
        return False
    return bool(row.cards) if row.planned else row.status == "running"


def choose_with_bridges(
    cluster: ClusterState, needs: PlacementNeeds, rules: PlacementRules, bridges: KnownBridges
) -> NodeChoice:
    """Return the choice of a node that has the bridges, whose PCI devices are free, and that is not
    in maintenance.

    The best candidate is asked first.
    """
    needs = bridges.with_devices(needs)
    while True:
        choice = choose_node(cluster, needs, rules, bridges.by_node)
        node = cluster.nodes[choice.node]
        if bridges.is_maintained(node):
            maintained = replace(node, maintenance=True)
            cluster = replace(cluster, nodes={**cluster.nodes, node.node: maintained})
        elif needs.cards and choice.node not in needs.busy:
            needs = bridges.with_cards(needs, choice.node, cluster)
        elif not needs.bridges or choice.node in bridges.by_node:
            return choice
        else:
            bridges.try_read(choice.node)
