# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the VMs of one run take, visible to decisions about its other VMs before PVE shows it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .._cluster.state import FRESH, ClusterState, StorageRow, VmRow, fetch_cluster_state
from .._cluster.tenant import parse_tags
from .._cluster.view import ClusterView
from .._vm.config.memory import memory_of
from .._vm.create.placement import cores_of
from .._vm.create.quota_race import figures_of
from .._vm.plan.room import Taken

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

    `disk` is what its disks count where that is known better.
    """
    return VmRow(
        vmid=vmid,
        node=node,
        name=config.get("name") or "",
        status=status,
        tags=tuple(parse_tags(config.get("tags") or "")),
        pool=pool,
        template=config.get("template") == "1",
        lock=None,
        cores=cores_of(config),
        memory=memory_of(config),
        disk=figures_of(config).disk if disk is None else disk,
        uptime=0,
        planned=True,
    )


def _with_planned(row: StorageRow, taken: Taken) -> StorageRow:
    is_on_node = row.shared or row.node == taken.node
    if not is_on_node:
        return row
    size = taken.storages.get(row.storage, 0)
    return replace(row, planned=row.planned + size)


class PlanningView(ClusterView):
    """The cluster while a run is planned: as it was read, with the VMs as planned so far."""

    def __init__(self, client: Client, cluster: ClusterState) -> None:
        super().__init__(client)
        self._vms = dict(cluster.vms)
        self._taken = set(cluster.taken)
        # One look is what the whole plan rests on; a change since then is seen when it is
        # carried out.
        self.cluster = replace(
            cluster,
            vms=self._vms,
            taken=self._taken,
            read_at=float("inf"),
        )

    def now(self) -> ClusterState:
        return self.cluster

    def fresh(self, cluster: ClusterState) -> ClusterState:
        return cluster

    def put(self, row: VmRow) -> None:
        """Show a VM as it will be."""
        self._vms[row.vmid] = row
        self._taken.add(row.vmid)

    def take(self, taken: Taken) -> None:
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
        self.cluster = replace(self.cluster, asked=self.cluster.asked | seen.asked)


class Reservations:
    """The VMs that this run will create or change, as they will be; safe for several threads."""

    def __init__(self, client: Client, cluster: ClusterState) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._rows: dict[int, VmRow] = {}
        self._latest = cluster

    def put(self, row: VmRow) -> None:
        """Claim what a VM will take."""
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
                self._latest = fetch_cluster_state(self._client)
            return self._latest

    def over(self, cluster: ClusterState, without: int) -> ClusterState:
        """Return the cluster state with all claims but that of one VM."""
        with self._lock:
            rows = {vmid: row for vmid, row in self._rows.items() if vmid != without}
        return replace(
            cluster,
            vms={**cluster.vms, **rows},
            taken=cluster.taken | rows.keys(),
        )


class LiveView(ClusterView):
    """The cluster as one VM of a run sees it while the others are worked on too."""

    def __init__(
        self,
        client: Client,
        reservations: Reservations,
        vmid: int,
    ) -> None:
        super().__init__(client)
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
