# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a cluster: nodes, VMs, storages and pools from one C(GET /cluster/resources).

Status and name in the listing lag about 10 seconds behind. Node, lock, tags and pool of a VM come
from the cluster's configuration and do not lag. Decisions read again what must be current.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._core.errors import NetworkError, NodeUnhealthy
from .._core.parallel import side_by_side
from .tenant import parse_tags

if TYPE_CHECKING:
    from .._api.client import Client

# Seconds after which a cluster state is read again before a write that rests on it.
FRESH = 5.0
NODES_AT_ONCE = 8
# How often VMs are looked for that move while the nodes list theirs.
_LOOKS = 3


@dataclass(frozen=True)
class VmRow:
    """One VM of the listing; memory and disk in bytes. `name` is empty as long as it is unknown."""

    vmid: int
    node: str
    name: str
    status: str
    tags: tuple[str, ...]
    pool: str | None
    template: bool
    lock: str | None
    cores: int
    memory: int
    disk: int
    uptime: int
    fresh: bool = False  # whether its node itself reported it just now, with the full power state
    planned: bool = False  # whether this run will make or change it, so that it is not there yet

    @property
    def own_name(self) -> str:
        """Its name, empty also where it has none."""
        return own_name(self.name, self.vmid)


@dataclass(frozen=True)
class NodeRow:
    """One node of the listing; memory in bytes, `cpu` is the load as a share of `cores`."""

    node: str
    online: bool
    cores: int
    memory: int
    memory_used: int
    cpu: float
    maintenance: bool = False  # reported since 8.3


@dataclass(frozen=True)
class StorageRow:
    """One storage on one node; sizes in bytes."""

    storage: str
    node: str
    available: bool
    shared: bool
    kind: str
    content: frozenset[str]
    used: int
    total: int
    planned: int = 0  # what VMs of the same run will take
    thick: bool | None = None  # whether it allocates whole volumes; None until it is asked

    @property
    def place(self) -> str:
        """The node of a local storage, an empty text for one that nodes share."""
        if self.shared:
            return ""
        return self.node


@dataclass(frozen=True)
class ClusterState:
    """What the cluster looks like to the caller; entries the caller may not see are missing."""

    vms: Mapping[int, VmRow]
    nodes: Mapping[str, NodeRow]
    storages: tuple[StorageRow, ...]
    pools: frozenset[str]
    taken: AbstractSet[int]  # every VMID in use, containers too
    read_at: float = 0.0  # by the client's monotonic clock
    asked: frozenset[str] = frozenset()  # nodes that gave the names of their VMs themselves

    def is_container(self, vmid: int | None) -> bool:
        """Return whether a number is a container's."""
        return vmid in self.taken - self.vms.keys()

    def storage_on(self, storage: str, node: str) -> StorageRow | None:
        """Return the row of a storage on a node, or None."""
        for row in self.storages:
            if row.storage == storage and row.node == node:
                return row
        return None

    @property
    def shared_storages(self) -> frozenset[str]:
        return frozenset(row.storage for row in self.storages if row.shared)


def fetch_cluster_state(client: Client) -> ClusterState:
    """Return the cluster state; one request."""
    now = client.clock.monotonic()
    rows = client.get("cluster", "resources")
    cluster = cluster_state_of(rows)
    return replace(cluster, read_at=now)


def refreshed(client: Client, cluster: ClusterState) -> ClusterState:
    """Return the cluster state, or a new one where a write may no longer rest on it."""
    age = client.clock.monotonic() - cluster.read_at
    if age <= FRESH:
        return cluster
    return fetch_cluster_state(client)


def node_of(client: Client, vmid: int) -> str | None:
    """Return the node a VM is on now, or None; one request."""
    node: str | None = guest_row(client, vmid).get("node")
    return node


def pool_of(client: Client, vmid: int) -> str | None:
    """Return the pool a VM is in now, or None; one request.

    The listing does not lag in this: PVE takes it from user.cfg (pve-manager, API2/Cluster.pm).
    """
    pool: str | None = guest_row(client, vmid).get("pool")
    return pool


def guest_row(client: Client, vmid: int) -> dict[str, Any]:
    """Return the row of a guest as it is listed now, or an empty one; no answer is used again."""
    rows: list[dict[str, Any]] = client.direct().get("cluster", "resources", type="vm")
    return next((row for row in rows if int(row["vmid"]) == vmid), {})


def ask_nodes(
    client: Client,
    cluster: ClusterState,
    nodes: Iterable[str],
    *,
    full: bool = False,
) -> ClusterState:
    """Return the cluster state with the VMs as these nodes list them, which does not lag.

    One request for each node that is not offline, in parallel. `full` asks each machine for its
    power state too, such as paused. The VMs of a node that does not answer stay as they are listed.
    A VM that its node no longer has was moved or removed since: one more request tells which, and
    its new node is asked.
    """
    cluster, missed = _ask(client, cluster, nodes, full)
    for _look in range(_LOOKS):
        if not missed:
            break
        cluster = _placed_again(client, cluster, missed)
        places = {cluster.vms[vmid].node for vmid in missed if vmid in cluster.vms}
        cluster, missed = _ask(client.direct(), cluster, places, full)
    return replace(cluster, taken=cluster.taken - missed)


def _ask(
    client: Client,
    cluster: ClusterState,
    nodes: Iterable[str],
    full: bool,
) -> tuple[ClusterState, set[int]]:
    """Return the cluster state with what the nodes answer, and the VMs that their nodes lack."""

    def ask(node: str) -> list[dict[str, Any]] | None:
        try:
            rows: list[dict[str, Any]] = client.get(
                "nodes",
                node,
                "qemu",
                full=full or None,
            )
        except (NetworkError, NodeUnhealthy):
            return None
        return rows

    offline = {name for name, node in cluster.nodes.items() if not node.online}
    asked = sorted(set(nodes) - offline)
    if not asked:
        return cluster, set()
    vms = dict(cluster.vms)
    answered: set[str] = set()
    missed = {vm.vmid for vm in vms.values() if not vm.planned}
    answers = side_by_side(ask, asked, NODES_AT_ONCE)
    for node, rows in zip(asked, answers, strict=True):
        if rows is None:
            continue
        answered.add(node)
        for row in rows:
            listed = vms.get(int(row["vmid"]))
            if listed is None or listed.node != node:
                continue
            vms[listed.vmid] = _as_its_node_says(row, listed, full)
            missed.discard(listed.vmid)
    missed = {vmid for vmid in missed if vms[vmid].node in answered}
    cluster = replace(
        cluster,
        vms=vms,
        asked=cluster.asked | answered,
    )
    return cluster, missed


def _as_its_node_says(row: Mapping[str, Any], listed: VmRow, full: bool) -> VmRow:
    """Return a VM from the list of its node; that list has no pools (pure)."""
    fresh = _vm({**row, "node": listed.node, "maxcpu": row.get("cpus")})
    status = fresh.status
    if not full:
        status = _on_state(fresh.status, listed.status)
    return replace(fresh, status=status, pool=listed.pool, fresh=full)


def _placed_again(client: Client, cluster: ClusterState, vmids: Iterable[int]) -> ClusterState:
    """Return the cluster state with these VMs where they are now, without those that are gone."""
    rows = client.direct().get("cluster", "resources", type="vm")
    listed = cluster_state_of(rows)
    vms = dict(cluster.vms)
    for vmid in vmids:
        row = listed.vms.get(vmid)
        if row is None:
            del vms[vmid]
        else:
            vms[vmid] = replace(
                vms[vmid],
                node=row.node,
                pool=row.pool,
            )
    removed = set(vmids) - listed.taken
    return replace(
        cluster,
        vms=vms,
        taken=cluster.taken - removed,
    )


def _on_state(of_node: str, of_cluster: str) -> str:
    """Return the power state of a VM from the list of its node, and from that of the cluster.

    The node has C(running) for all that have a process, also a paused one (qemu-server:
    PVE/QemuServer.pm, vmstatus). The cluster has QEMU's own state, a few seconds old (pve-manager:
    PVE/Service/pvestatd.pm, update_qemu_status).
    """
    if of_node != "running" or of_cluster in ("stopped", "unknown"):
        return of_node
    return of_cluster


def with_names(client: Client, cluster: ClusterState, *, missing: bool = False) -> ClusterState:
    """Return the cluster state with the name of each VM from its node; one request for each node.

    `missing`: only where the listing has no name of a VM, so that usually no node is asked.

    The listing has the name of a guest from its last statistics, by its number alone: a VM that got
    the number of a removed one is listed under that one's name until pvestatd has run, and a VM
    with a new number has no name until then (pve-manager: PVE/API2Tools.pm, extract_vm_stats).
    """
    vms = cluster.vms.values()
    nodes = {row.node for row in vms if not (missing and row.name)}
    return ask_nodes(client, cluster, nodes - cluster.asked)


def without_vm(cluster: ClusterState, vmid: int) -> ClusterState:
    """Return the cluster state without a VM that is gone (pure)."""
    vms = dict(cluster.vms)
    vms.pop(vmid, None)
    return replace(cluster, vms=vms, taken=cluster.taken - {vmid})


def own_name(listed: str, vmid: int) -> str:
    """Return a VM's name, or an empty text: a VM without a name is listed as C(VM) and its VMID."""
    if listed == f"VM {vmid}":
        return ""
    return listed


def power_of(row: Mapping[str, Any]) -> str:
    """Return running, stopped, or a state of the machine itself (paused, suspended, prelaunch)."""
    status = _text(row, "status") or "unknown"
    machine = _text(row, "qmpstatus")
    if status != "running":
        return status
    if machine in ("", "stopped"):
        return status
    return machine


def cluster_state_of(rows: Iterable[Mapping[str, Any]]) -> ClusterState:
    """Return the cluster state that the rows of C(/cluster/resources) give (pure)."""
    vms: dict[int, VmRow] = {}
    nodes: dict[str, NodeRow] = {}
    storages: list[StorageRow] = []
    pools: set[str] = set()
    taken: set[int] = set()
    for row in rows:
        kind = row.get("type")
        if kind == "qemu":
            vm = _vm(row)
            vms[vm.vmid] = vm
            taken.add(vm.vmid)
        elif kind == "lxc":
            taken.add(int(row["vmid"]))
        elif kind == "node":
            nodes[row["node"]] = _node(row)
        elif kind == "storage":
            storages.append(_storage(row))
        elif kind == "pool":
            pools.add(row["pool"])
    return ClusterState(
        vms=vms,
        nodes=nodes,
        storages=tuple(storages),
        pools=frozenset(pools),
        taken=frozenset(taken),
    )


def _vm(row: Mapping[str, Any]) -> VmRow:
    return VmRow(
        vmid=int(row["vmid"]),
        node=row["node"],
        name=_text(row, "name"),
        status=power_of(row),
        tags=parse_tags(row.get("tags")),
        pool=_text(row, "pool") or None,
        template=bool(row.get("template")),
        lock=_text(row, "lock") or None,
        cores=_number(row, "maxcpu"),
        memory=_number(row, "maxmem"),
        disk=_number(row, "maxdisk"),
        uptime=_number(row, "uptime"),
    )


def _node(row: Mapping[str, Any]) -> NodeRow:
    return NodeRow(
        node=row["node"],
        online=row.get("status") == "online",
        cores=_number(row, "maxcpu"),
        memory=_number(row, "maxmem"),
        memory_used=_number(row, "mem"),
        cpu=float(row.get("cpu") or 0.0),
        maintenance=row.get("hastate") == "maintenance",
    )


def _storage(row: Mapping[str, Any]) -> StorageRow:
    content = _text(row, "content")
    return StorageRow(
        storage=row["storage"],
        node=row["node"],
        available=row.get("status") == "available",
        shared=bool(row.get("shared")),
        kind=_text(row, "plugintype"),
        content=frozenset(content.split(",")),
        used=_number(row, "disk"),
        total=_number(row, "maxdisk"),
    )


def _text(row: Mapping[str, Any], key: str) -> str:
    """Return a text of a row, an empty one where it is missing."""
    return str(row.get(key) or "")


def _number(row: Mapping[str, Any], key: str) -> int:
    """Return a figure of a row, 0 where it is missing."""
    return int(row.get(key) or 0)
