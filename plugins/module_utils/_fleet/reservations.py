# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resources that the VMs of one run take, visible to later decisions before PVE shows them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .._cluster.state import FRESH, ClusterState, StorageRow, VmRow, fetch_cluster_state
from .._cluster.tenant import parse_tags
from .._cluster.view import ClusterView
from .._guest.plan.capacity import Capacity
from .._vm.kind import VM

if TYPE_CHECKING:
    from .._api.client import Client


def row_of(
    vmid: int,
    node: str,
    config: Mapping[str, str],
    *,
    pool: str | None,
    status: str,
    disk: int | None = None,
) -> VmRow:
    """Return the row of a VM as the listing will show it.

    `disk` is the size of its disks (bytes) if a better figure than the configuration's is known.
    """
    figures = VM.figures_of(config)
    return VmRow(
        type=VM.type,
        vmid=vmid,
        node=node,
        name=VM.name_in(config),
        status=status,
        tags=tuple(parse_tags(config.get("tags") or "")),
        pool=pool,
        template=config.get("template") == "1",
        lock=None,
        cores=figures.cores,
        memory=figures.memory,
        disk=figures.disk if disk is None else disk,
        uptime=0,
        planned=True,
    )


def _with_planned(row: StorageRow, taken: Capacity) -> StorageRow:
    is_on_node = row.shared or row.node == taken.node
    if not is_on_node:
        return row
    size = taken.storages.get(row.storage, 0)
    return replace(row, planned=row.planned + size)


class PlanningView(ClusterView):
    """The cluster while a run is planned: as read, plus the VMs planned so far."""

    def __init__(self, client: Client, cluster: ClusterState) -> None:
        super().__init__(client, cluster.types)
        self._vms = dict(cluster.vms)
        self._taken = set(cluster.taken)
        # The whole plan rests on one reading; later changes are noticed while the plan is executed.
        self.cluster = replace(cluster, vms=self._vms, taken=self._taken, read_at=float("inf"))

    def now(self) -> ClusterState:
        return self.cluster

    def fresh(self, cluster: ClusterState) -> ClusterState:
        return cluster

    def put(self, row: VmRow) -> None:
        """Show a VM as it will be."""
        self._vms[row.vmid] = row
        self._taken.add(row.vmid)

    def take(self, taken: Capacity) -> None:
        """Show the memory and the storage that a VM will take of its node."""
        nodes, row = dict(self.cluster.nodes), self.cluster.nodes.get(taken.node)
        if row is not None:
            nodes[taken.node] = replace(row, memory_used=row.memory_used + taken.memory)
        storages = tuple(_with_planned(storage, taken) for storage in self.cluster.storages)
        self.cluster = replace(self.cluster, nodes=nodes, storages=storages)

    def drop(self, vmid: int) -> None:
        """Show that a VM is gone."""
        self._vms.pop(vmid, None)
        self._taken.discard(vmid)

    def see(self, seen: ClusterState, gone: Iterable[int]) -> None:
        """Show names and power states as the nodes that were asked give them, without the VMs that
        are gone.
        """
        for vmid in gone:
            self.drop(vmid)
        for row in seen.vms.values():
            if row.fresh:
                self.put(row)
        self.cluster = replace(
            self.cluster, asked_nodes=self.cluster.asked_nodes | seen.asked_nodes
        )


class Reservations:
    """The VMs that this run will create or change, as they will be; safe for several threads."""

    def __init__(self, client: Client, cluster: ClusterState) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._rows: dict[int, VmRow] = {}
        self._latest = cluster
        self.types = cluster.types

    def put(self, row: VmRow) -> None:
        """Reserve the resources that a VM will take."""
        with self._lock:
            self._rows[row.vmid] = row

    def drop(self, vmid: int) -> None:
        """Give up a claim."""
        with self._lock:
            self._rows.pop(vmid, None)

    def renumber(self, old: int, new: int, node: str) -> None:
        """Move a claim to another number and node."""
        with self._lock:
            row = self._rows.pop(old, None)
            if row is not None:
                self._rows[new] = replace(row, vmid=new, node=node)

    def read(self, not_before: float) -> ClusterState:
        """Return a cluster state that was read then or later, by the client's monotonic clock.

        One reads for all.
        """
        with self._reading:
            if self._latest.read_at < not_before:
                self._latest = fetch_cluster_state(self._client, self.types)
            return self._latest

    def over(self, cluster: ClusterState, without: int) -> ClusterState:
        """Return the cluster state with all reservations except one VM's."""
        with self._lock:
            rows = {vmid: row for vmid, row in self._rows.items() if vmid != without}
        return replace(cluster, vms={**cluster.vms, **rows}, taken=cluster.taken | rows.keys())


class LiveView(ClusterView):
    """The cluster as one VM of a run sees it while the others are worked on too."""

    def __init__(self, client: Client, reservations: Reservations, vmid: int) -> None:
        super().__init__(client, reservations.types)
        self._reservations = reservations
        self.vmid = vmid

    def now(self) -> ClusterState:
        return self._reservations.over(
            self._reservations.read(self.client.clock.monotonic()), self.vmid
        )

    def fresh(self, cluster: ClusterState) -> ClusterState:
        now = self.client.clock.monotonic()
        if now - cluster.read_at <= FRESH:
            return cluster
        return self._reservations.over(self._reservations.read(now - FRESH), self.vmid)

    def claim(self, vmid: int, node: str) -> None:
        self._reservations.renumber(self.vmid, vmid, node)
        self.vmid = vmid
