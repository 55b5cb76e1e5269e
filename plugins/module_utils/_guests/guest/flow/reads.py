# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requests that a plan of any guest needs: they return the answers of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.bridges import KnownBridges
from ...._foundation.cluster.placement import Bridges
from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.errors import FleetError, NotFound, NotSupported, PermissionDenied
from ...kinds.model import Actual, GuestSource
from ...kinds.nics import NicMtu
from ..plan.allocation import Definitions
from ..plan.archive import read_archived
from ..plan.copies import in_snapshot
from ..plan.refusals import mtus_of_bridges, mtus_of_vnets

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


class GuestReads:
    """The requests of one plan; bridges, definitions and contents are requested once."""

    def __init__(self, client: Client, bridges: Bridges | None = None) -> None:
        self.client = client
        self.bridges = KnownBridges(client)
        self.bridges.by_node.update(bridges or {})
        self._definitions: Definitions | None = None
        self._contents: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def bridges_on(self, node: str, wanted: Collection[str]) -> frozenset[str] | None:
        """Return the bridges of a node, None if no bridge is needed."""
        return self.bridges.on(node) if wanted else None

    def mtus_on(self, node: str, nics: Sequence[NicMtu]) -> dict[str, int]:
        """Return the MTUs of the bridges of a node; one request if a NIC has an MTU, and two more
        if it is connected to a VNet.
        """
        if not nics:
            return {}
        mtus = mtus_of_bridges(self.client.get("nodes", node, "network") or [])
        if all(nic.bridge in mtus for nic in nics):
            return mtus
        try:
            vnets = self.client.get("cluster", "sdn", "vnets") or []
            zones = self.client.get("cluster", "sdn", "zones") or []
        except FleetError:  # SDN is optional before Proxmox VE 8.1
            return mtus
        return {**mtus_of_vnets(vnets, zones), **mtus}

    def definitions(self) -> Definitions:
        """Return the definitions of all storages, by name."""
        if self._definitions is None:
            rows = self.client.get("storage")
            self._definitions = {str(row["storage"]): row for row in rows}
        return self._definitions

    def contents(self, node: str, storage: str) -> list[dict[str, Any]]:
        """Return the volumes of a storage, as a node lists them."""
        place = (node, storage)
        if place not in self._contents:
            self._contents[place] = self.client.get("nodes", node, "storage", storage, "content")
        return self._contents[place]

    def pools(self) -> frozenset[str]:
        """Return the pools that the caller may see."""
        rows = self.client.get("pools")
        return frozenset(str(row["poolid"]) for row in rows)

    def may_hide_pools(self) -> bool:
        """Return whether the caller lacks Pool.Audit on some pools.

        PVE leaves the pool of a guest out of its listing without that privilege (API2/Cluster.pm).
        """
        held = self.client.get("access", "permissions", path="/pool") or {}
        privileges = held.get("/pool") or {}
        return not privileges.get("Pool.Audit")

    def snapshot_names(self, actual: Actual) -> tuple[str, ...]:
        """Return the names of the snapshots of a guest."""
        rows = self.client.get(*actual.path, "snapshot")
        return tuple(str(row["name"]) for row in rows if row["name"] != "current")

    def snapshot(
        self, actual: Actual, name: str
    ) -> tuple[tuple[str, ...], Mapping[str, Any] | None]:
        """Return the snapshots of a guest, and the configuration in one of them if it exists."""
        names = self.snapshot_names(actual)
        if name not in names:
            return names, None
        return names, self.client.get(*actual.path, "config", snapshot=name)

    def cloned_state(self, actual: Actual, source: GuestSource | None) -> Actual:
        """Return the guest in the state that is cloned: now, or a snapshot. Raises NotFound."""
        if source is None or not source.snapshot:
            return actual
        names, config = self.snapshot(actual, source.snapshot)
        return in_snapshot(actual, source.snapshot, names, config)

    def migration(self, actual: Actual, target: str) -> Mapping[str, Any]:
        """Return PVE's answer about a move to a node; one request.

        The answer covers every node: PVE accepts a target and ignores it (qemu-server:
        API2/Qemu.pm, migrate_vm_precondition, from its first version on). The request has no
        target, so a caching client sends it once for all nodes.
        """
        answer: Mapping[str, Any] = self.client.get(
            *actual.path,
            "migrate",
            attempted=f"Could not ask whether {actual.label} can move to node {target}",
        )
        return answer

    def keeps_connections(self, actual: Actual, answer: Mapping[str, Any], target: str) -> bool:
        """Return whether both nodes can migrate the tracked connections of a running VM; one
        request (pve-manager: www/manager6/window/Migrate.js). It needs Sys.Audit on the node, and
        an older node does not know it: the connections are then not kept.
        """
        if not answer.get("has-dbus-vmstate"):
            return False
        path = ("nodes", target, "capabilities", actual.kind.type, "migration")
        attempted = f"Could not ask what node {target} can migrate"
        try:
            found = self.client.get(*path, attempted=attempted) or {}
        except (PermissionDenied, NotFound, NotSupported):
            return False
        return bool(found.get("has-dbus-vmstate"))


@dataclass(frozen=True)
class FoundVolume:
    """A volume on a storage: the nodes that have it, and the other volumes that were listed."""

    volume: str
    having: frozenset[str]
    others: frozenset[str]
    is_shared: bool

    @property
    def nodes(self) -> frozenset[str] | None:
        """The nodes on which the volume can be used, None for any."""
        return None if self.is_shared else self.having


def find_file(
    reads: GuestReads, volume: str, node: str | None, cluster: ClusterState
) -> FoundVolume:
    """Return a volume as the storages list it; one request for each node that may have it."""
    storage = volume.partition(":")[0]
    rows = [row for row in cluster.storages if row.storage == storage and row.available]
    if node:
        rows = [row for row in rows if row.node == node]
    having: set[str] = set()
    others: set[str] = set()
    for row in sorted(rows, key=lambda row: row.node):
        volumes = {str(entry["volid"]) for entry in reads.contents(row.node, storage)}
        others |= volumes
        if volume in volumes:
            having.add(row.node)
            if row.shared:
                break
    is_shared = any(row.shared for row in rows)
    return FoundVolume(volume, frozenset(having), frozenset(others), is_shared)


def read_archive(client: Client, volume: str, node: str) -> Mapping[str, str]:
    """Return the configuration in an archive.

    Raises FleetError if PVE cannot read it: it is gone or damaged, or its key is missing.
    """
    answer = client.get(
        "nodes",
        node,
        "vzdump",
        "extractconfig",
        params={"volume": volume},
        attempted=f"Could not read the configuration in {volume}",
    )
    return read_archived(str(answer))
