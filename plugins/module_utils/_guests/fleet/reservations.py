# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resources reserved for the VMs of one run, visible to later decisions before PVE lists them."""

from __future__ import annotations

import threading
from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..._foundation.cluster.state import FRESH, ClusterState, StorageRow, VmRow, fetch_cluster_state
from ..._foundation.cluster.tenant import parse_tags
from ..._foundation.cluster.view import ClusterView
from ..guest.plan.capacity import Capacity
from ..kinds.kind import Kind

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def row_of(
    kind: Kind, config: Mapping[str, str], *, vmid: int, node: str, pool: str | None, status: str
) -> VmRow:
    """Return the row of a guest as the listing will show it."""
    figures = kind.figures_of(config)
    return VmRow(
        type=kind.type,
        vmid=vmid,
        node=node,
        name=kind.name_in(config),
        status=status,
        tags=tuple(parse_tags(config.get("tags") or "")),
        pool=pool,
        template=config.get("template") == "1",
        lock=None,
        cores=figures.cores,
        memory=figures.memory,
        disk=figures.disk,
        uptime=0,
        planned=True,
        cards=kind.cards_in(config) if status == "running" else (),
    )


def _with_planned(row: StorageRow, taken: Capacity) -> StorageRow:
    is_on_node = row.shared or row.node == taken.node
    if not is_on_node:
        return row
    size = taken.storages.get(row.storage, 0)
    return replace(row, planned=row.planned + size)


class KindView(ClusterView):
    """The guests of one kind while a run is planned; guests of other kinds are in `others`."""

    def __init__(self, client: Client, cluster: ClusterState) -> None:
        super().__init__(client, cluster.types)
        self.cluster = cluster

    def now(self) -> ClusterState:
        return self.cluster

    def fresh(self, cluster: ClusterState) -> ClusterState:
        return cluster


class PlanningView:
    """The cluster while a run is planned, by kind: as read, plus the guests planned so far."""

    def __init__(self, client: Client, cluster: ClusterState) -> None:
        rows: dict[str, dict[int, VmRow]] = {kind: {} for kind in cluster.types}
        for row in cluster.vms.values():
            rows[row.type][row.vmid] = row
        self._rows = rows
        self._taken = set(cluster.taken)
        self._views: dict[str, KindView] = {}
        for kind, vms in rows.items():
            others = [rows[other] for other in rows if other != kind]
            # The whole plan uses one reading; later changes are detected during execution.
            own = replace(
                cluster,
                vms=vms,
                others=ChainMap(*others, dict(cluster.others)),
                types=frozenset((kind,)),
                taken=self._taken,
                read_at=float("inf"),
            )
            self._views[kind] = KindView(client, own)

    def of(self, kind: str) -> KindView:
        """Return the view of the guests of one kind."""
        return self._views[kind]

    def row(self, vmid: int) -> VmRow | None:
        """Return a guest of any of the kinds."""
        return next((rows[vmid] for rows in self._rows.values() if vmid in rows), None)

    def put(self, row: VmRow) -> None:
        """Add a guest, or replace its row."""
        self._rows[row.type][row.vmid] = row
        self._taken.add(row.vmid)

    def take(self, taken: Capacity) -> None:
        """Count the memory and the storage that a guest will take as used on its node."""
        for view in self._views.values():
            nodes, row = dict(view.cluster.nodes), view.cluster.nodes.get(taken.node)
            if row is not None:
                nodes[taken.node] = replace(row, memory_used=row.memory_used + taken.memory)
            storages = tuple(_with_planned(storage, taken) for storage in view.cluster.storages)
            view.cluster = replace(view.cluster, nodes=nodes, storages=storages)

    def drop(self, vmid: int) -> None:
        """Remove a guest."""
        for rows in self._rows.values():
            rows.pop(vmid, None)
        self._taken.discard(vmid)

    def refresh(self, answers: ClusterState, gone: Iterable[int]) -> None:
        """Update names and power states of the guests of one kind from the answers of nodes, and
        remove the guests in `gone`.
        """
        for vmid in gone:
            self.drop(vmid)
        for row in answers.vms.values():
            if row.fresh:
                self.put(row)
        for kind, view in self._views.items():
            cluster = view.cluster
            if kind in answers.types:
                queried_nodes = cluster.queried_nodes | answers.queried_nodes
                view.cluster = replace(cluster, queried_nodes=queried_nodes)
            else:
                queried_others = cluster.queried_others | answers.queried_nodes
                view.cluster = replace(cluster, queried_others=queried_others)


class Reservations:
    """The planned rows of VMs that this run creates or changes; safe for several threads."""

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
        """Release a reservation."""
        with self._lock:
            self._rows.pop(vmid, None)

    def renumber(self, old: int, new: int, node: str) -> None:
        """Move a reservation to another VMID and node."""
        with self._lock:
            row = self._rows.pop(old, None)
            if row is not None:
                self._rows[new] = replace(row, vmid=new, node=node)

    def read(self, not_before: float) -> ClusterState:
        """Return a state read at `not_before` (monotonic clock) or later; threads share it."""
        with self._reading:
            if self._latest.read_at < not_before:
                self._latest = fetch_cluster_state(self._client, self.types)
            return self._latest

    def over(self, cluster: ClusterState, without: int, kind: str) -> ClusterState:
        """Return the state for guests of one kind, with the reservations of all guests but one."""
        with self._lock:
            rows = {vmid: row for vmid, row in self._rows.items() if vmid != without}
        whole = replace(cluster, vms={**cluster.vms, **rows}, taken=cluster.taken | rows.keys())
        return whole.of_type(kind)


class LiveView(ClusterView):
    """The cluster as one guest of a run sees it, with the reservations of the other guests."""

    def __init__(self, client: Client, reservations: Reservations, vmid: int, kind: str) -> None:
        super().__init__(client, {kind})
        self._kind = kind
        self._reservations = reservations
        self.vmid = vmid

    def now(self) -> ClusterState:
        return self._reservations.over(
            self._reservations.read(self.client.clock.monotonic()), self.vmid, self._kind
        )

    def fresh(self, cluster: ClusterState) -> ClusterState:
        now = self.client.clock.monotonic()
        if now - cluster.read_at <= FRESH:
            return cluster
        return self._reservations.over(self._reservations.read(now - FRESH), self.vmid, self._kind)

    def change_vmid(self, vmid: int, node: str) -> None:
        self._reservations.renumber(self.vmid, vmid, node)
        self.vmid = vmid
