# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a cluster: nodes, VMs, storages and pools from one C(GET /cluster/resources).

Status and name in the listing lag about 10 seconds behind. Node, lock, tags and pool of a VM come
from the cluster's configuration and do not lag. Decisions that need a current value read it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..api.generated.guests import FULL_LISTS, GUEST_TYPES
from ..core.errors import NetworkError, NodeUnhealthy, NotFound
from ..core.parallel import side_by_side
from .cards import Card
from .tenant import parse_tags

if TYPE_CHECKING:
    from ..api.client import Client

# Seconds after which a cluster state is read again before a write that depends on it.
FRESH = 5.0
# How often VMs are searched for that move while the nodes list their VMs.
_ATTEMPTS = 3
# The locks that PVE sets while it creates a guest.
CREATION_LOCKS = frozenset(("clone", "create"))


@dataclass(frozen=True)
class VmRow:
    """One guest of the listing; memory and disk in bytes.

    `type` is PVE's word for its kind. `name` is empty until it is known.
    """

    type: str
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
    fresh: bool = False  # whether its node has just reported it, with the full power state
    planned: bool = False  # whether the row shows a guest that this run has yet to create or change
    managed: bool = False  # whether it is an HA resource
    cards: tuple[Card, ...] = ()  # PCI devices that it will hold, if `planned`

    @property
    def own_name(self) -> str:
        """The name of the guest, empty if it has none: PVE lists such a VM as C(VM 100), and such a
        container as C(CT100) (qemu-server: PVE/QemuServer.pm; pve-container: PVE/LXC.pm; vmstatus).

        When a container has been created without a name, C(CT100) becomes its name
        (pve-container: PVE/API2/LXC.pm, create_vm).
        """
        substitute = f"VM {self.vmid}"
        if self.lock in CREATION_LOCKS and self.type == "lxc":
            substitute = f"CT{self.vmid}"
        return "" if self.name == substitute else self.name

    @property
    def path(self) -> tuple[str | int, ...]:
        """The segments of its own path in the API."""
        return ("nodes", self.node, self.type, self.vmid)


@dataclass(frozen=True)
class NodeRow:
    """One node of the listing; memory in bytes."""

    node: str
    online: bool
    cores: int
    memory: int
    memory_used: int
    maintenance: bool = False  # reported since 8.3
    arch: str = "x86_64"  # reported since 9.2, if it differs (pve-manager: PVE/API2/Cluster.pm)


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
    planned: int = 0  # bytes that VMs of the same run will allocate
    thick: bool | None = None  # whether it allocates whole volumes; None until it is read

    @property
    def place(self) -> str:
        """The node of a local storage, an empty text for a shared storage."""
        if self.shared:
            return ""
        return self.node


@dataclass(frozen=True)
class ClusterState:
    """The cluster as the caller may see it; hidden entries are missing.

    `types` are PVE's words for the kinds of guests that the caller works on. `vms` contains the
    guests of these kinds, `taken` the VMIDs of all guests.
    """

    vms: Mapping[int, VmRow]
    nodes: Mapping[str, NodeRow]
    storages: tuple[StorageRow, ...]
    pools: frozenset[str]
    taken: AbstractSet[int]
    read_at: float = 0.0  # by the client's monotonic clock
    queried_nodes: frozenset[str] = frozenset()  # nodes that returned the names of their VMs
    types: frozenset[str] = frozenset()
    # guests of other kinds, as the listing has them
    others: Mapping[int, VmRow] = field(default_factory=dict)
    queried_others: frozenset[str] = frozenset()  # nodes that returned the names of these guests
    freed: frozenset[int] = frozenset()  # VMIDs of empty guests that this run removes first

    def is_of_other_kind(self, vmid: int | None) -> bool:
        """Return whether a VMID belongs to a guest of a kind that the caller does not work on."""
        return vmid in self.taken - self.vms.keys()

    def guest(self, vmid: int) -> VmRow | None:
        """Return the row of a guest of any kind, or None."""
        return self.vms.get(vmid) or self.others.get(vmid)

    @property
    def guests(self) -> tuple[VmRow, ...]:
        """The rows of guests of all kinds."""
        return (*self.vms.values(), *self.others.values())

    def of_type(self, kind: str) -> ClusterState:
        """Return the state for work on guests of one kind."""
        if self.types == {kind}:
            return self
        vms: dict[int, VmRow] = {}
        others: dict[int, VmRow] = {}
        for row in self.guests:
            group = vms if row.type == kind else others
            group[row.vmid] = row
        return replace(
            self,
            vms=vms,
            others=others,
            types=frozenset((kind,)),
            queried_nodes=self.queried_nodes if kind in self.types else self.queried_others,
            queried_others=self.queried_nodes,
        )

    def storage_on(self, storage: str, node: str) -> StorageRow | None:
        """Return the row of a storage on a node, or None."""
        for row in self.storages:
            if row.storage == storage and row.node == node:
                return row
        return None

    @property
    def shared_storages(self) -> frozenset[str]:
        return frozenset(row.storage for row in self.storages if row.shared)


def fetch_cluster_state(client: Client, types: Collection[str] = GUEST_TYPES) -> ClusterState:
    """Return the cluster state for work on guests of these kinds, by default of all kinds; one
    request.
    """
    now = client.clock.monotonic()
    rows = client.get("cluster", "resources")
    cluster = cluster_state_of(rows, types)
    return replace(cluster, read_at=now)


def read_members(client: Client) -> list[Mapping[str, Any]]:
    """Return the nodes of the cluster from its status, also offline nodes; one request."""
    rows = client.get("cluster", "status") or ()
    return [row for row in rows if row["type"] == "node"]


def refreshed(client: Client, cluster: ClusterState) -> ClusterState:
    """Return the cluster state, or a new one if it is too old for a write."""
    if is_fresh(client, cluster):
        return cluster
    return fetch_cluster_state(client, cluster.types)


def is_fresh(client: Client, cluster: ClusterState) -> bool:
    """Return whether the cluster state is not too old for a write."""
    return client.clock.monotonic() - cluster.read_at <= FRESH


def node_of(client: Client, vmid: int) -> str | None:
    """Return the present node of a VM, or None; one request."""
    node: str | None = guest_row(client, vmid).get("node")
    return node


def read_config(client: Client, path: tuple[str | int, ...]) -> dict[str, Any] | None:
    """Return the configuration of a guest, None if it is gone; more requests if it has moved.

    `path` is its path on the node that it was on.
    """
    start, node, kind, vmid = path
    try:
        config: dict[str, Any] = client.get(*path, "config")
    except NotFound:
        now = node_of(client, int(vmid))
        if now in (None, node):
            return None
        config = client.get(start, now, kind, vmid, "config")
    return config


def pool_of(client: Client, vmid: int) -> str | None:
    """Return the present pool of a VM, or None; one request.

    The pool in the listing does not lag: PVE reads it from user.cfg (pve-manager, API2/Cluster.pm).
    """
    pool: str | None = guest_row(client, vmid).get("pool")
    return pool


def guest_row(client: Client, vmid: int) -> dict[str, Any]:
    """Return the row of a guest from a new listing, or an empty one; no cached answer is used."""
    rows: list[dict[str, Any]] = client.direct().get("cluster", "resources", type="vm")
    return next((row for row in rows if int(row["vmid"]) == vmid), {})


def query_nodes(
    client: Client, cluster: ClusterState, nodes: Iterable[str], *, full: bool = False
) -> ClusterState:
    """Return the cluster state with the VMs as these nodes list them, which does not lag.

    One request for each node that is not offline, in parallel. `full` also requests the full power
    state of VMs, such as paused; containers have no such states. The VMs of a node that does not
    answer keep their rows of the listing. A VM that its node no longer lists was moved or removed:
    one more request finds its new node, which is then asked.
    """
    cluster, missed = _query(client, cluster, nodes, full)
    for _try in range(_ATTEMPTS):
        if not missed:
            break
        cluster = _placed_again(client, cluster, missed)
        places = {cluster.vms[vmid].node for vmid in missed if vmid in cluster.vms}
        cluster, missed = _query(client.direct(), cluster, places, full)
    return replace(cluster, taken=cluster.taken - missed)


def _query(
    client: Client, cluster: ClusterState, nodes: Iterable[str], full: bool
) -> tuple[ClusterState, set[int]]:
    """Return the cluster state with the answers of the nodes, and the VMs missing from them."""

    def query(node: str) -> list[dict[str, Any]] | None:
        rows: list[dict[str, Any]] = []
        try:
            for kind in _kinds_on(cluster, node):
                wants_full = full and kind in FULL_LISTS
                rows += client.get("nodes", node, kind, full=wants_full or None)
        except (NetworkError, NodeUnhealthy):
            return None
        return rows

    offline = {name for name, node in cluster.nodes.items() if not node.online}
    queried_nodes = sorted(set(nodes) - offline)
    if not queried_nodes:
        return cluster, set()
    vms = dict(cluster.vms)
    answered: set[str] = set()
    missed = {vm.vmid for vm in vms.values() if not vm.planned}
    answers = side_by_side(query, queried_nodes)
    for node, rows in zip(queried_nodes, answers, strict=True):
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
    cluster = replace(cluster, vms=vms, queried_nodes=cluster.queried_nodes | answered)
    return cluster, missed


def _kinds_on(cluster: ClusterState, node: str) -> list[str]:
    """Return the kinds of guests to request from a node: if there are several kinds, only the kinds
    of its guests in the listing (pure).
    """
    if len(cluster.types) == 1:
        return list(cluster.types)
    return sorted({row.type for row in cluster.vms.values() if row.node == node})


def _as_its_node_says(row: Mapping[str, Any], listed: VmRow, full: bool) -> VmRow:
    """Return a VM from the list of its node; that list does not contain pools (pure)."""
    fresh = row_of_listing(
        {**row, "type": listed.type, "node": listed.node, "maxcpu": row.get("cpus")}
    )
    status = fresh.status
    if not full:
        status = _on_state(fresh.status, listed.status)
    return replace(fresh, status=status, pool=listed.pool, fresh=full)


def _placed_again(client: Client, cluster: ClusterState, vmids: Iterable[int]) -> ClusterState:
    """Return the cluster state with these VMs on their current nodes, without VMs that are gone."""
    rows = client.direct().get("cluster", "resources", type="vm")
    listed = cluster_state_of(rows, cluster.types)
    vms = dict(cluster.vms)
    for vmid in vmids:
        row = listed.vms.get(vmid)
        if row is None:
            del vms[vmid]
        else:
            vms[vmid] = replace(vms[vmid], node=row.node, pool=row.pool)
    removed = set(vmids) - listed.taken
    return replace(cluster, vms=vms, taken=cluster.taken - removed)


def _on_state(of_node: str, of_cluster: str) -> str:
    """Return the power state of a VM from its states in the list of its node and in the cluster's
    list.

    The node lists every VM with a process as C(running), also a paused VM (qemu-server:
    PVE/QemuServer.pm, vmstatus). The cluster lists QEMU's own state, a few seconds old
    (pve-manager: PVE/Service/pvestatd.pm, update_qemu_status).
    """
    if of_node != "running" or of_cluster in ("stopped", "unknown"):
        return of_node
    return of_cluster


def with_names(client: Client, cluster: ClusterState, *, missing: bool = False) -> ClusterState:
    """Return the cluster state with the name of each VM from its node; one request for each node.

    `missing`: only the nodes of VMs that have no name in the listing; usually no node is asked.

    The listing takes the name of a guest from the last statistics of its VMID. Until pvestatd has
    run, a new VM has the name of a removed VM with the same VMID, or no name if the VMID was not
    used before (pve-manager: PVE/API2Tools.pm, extract_vm_stats).
    """
    vms = cluster.vms.values()
    nodes = {row.node for row in vms if not (missing and row.name)}
    return query_nodes(client, cluster, nodes - cluster.queried_nodes)


def with_vm(cluster: ClusterState, row: VmRow) -> ClusterState:
    """Return the cluster state with another row of a VM (pure)."""
    return replace(cluster, vms={**cluster.vms, row.vmid: row})


def with_other_names(
    client: Client, cluster: ClusterState, nodes: Iterable[str] | None = None
) -> ClusterState:
    """Return the cluster state with the guests of other kinds as these nodes list them; without
    `nodes`, the nodes of guests without a name in the listing are asked (usually none).

    One request for each node and kind.
    """
    rows = cluster.others.values()
    if nodes is None:
        nodes = {row.node for row in rows if not row.name}
    wanted = set(nodes) - cluster.queried_others
    if not wanted:
        return cluster
    types = frozenset(row.type for row in rows)
    before = replace(cluster, vms=cluster.others, types=types, queried_nodes=cluster.queried_others)
    queried = query_nodes(client, before, wanted)
    return replace(
        cluster, others=queried.vms, taken=queried.taken, queried_others=queried.queried_nodes
    )


def without_vm(cluster: ClusterState, vmid: int) -> ClusterState:
    """Return the cluster state without a VM that is gone (pure)."""
    vms = dict(cluster.vms)
    vms.pop(vmid, None)
    return replace(cluster, vms=vms, taken=cluster.taken - {vmid})


def power_of(row: Mapping[str, Any]) -> str:
    """Return running, stopped, or a state of the machine itself (paused, suspended, prelaunch)."""
    status: str = row.get("status") or "unknown"
    machine = row.get("qmpstatus", "")
    if status != "running" or machine in ("", "stopped"):
        return status
    return str(machine)


def cluster_state_of(rows: Iterable[Mapping[str, Any]], types: Collection[str]) -> ClusterState:
    """Return the cluster state from the rows of C(/cluster/resources), for work on guests of these
    kinds (pure).

    Of a guest of an unknown kind, only the VMID is kept, so it does not count as free.
    """
    vms: dict[int, VmRow] = {}
    nodes: dict[str, NodeRow] = {}
    storages: list[StorageRow] = []
    pools: set[str] = set()
    taken: set[int] = set()
    others: dict[int, VmRow] = {}
    for row in rows:
        kind = row.get("type")
        if "vmid" in row:
            taken.add(row["vmid"])
        if kind in types:
            vm = row_of_listing(row)
            vms[vm.vmid] = vm
        elif kind in GUEST_TYPES:
            vm = row_of_listing(row)
            others[vm.vmid] = vm
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
        types=frozenset(types),
        others=others,
    )


def row_of_listing(row: Mapping[str, Any]) -> VmRow:
    """Return a guest of the listing."""
    return VmRow(
        type=row["type"],
        vmid=row["vmid"],
        node=row["node"],
        name=row.get("name", ""),
        status=power_of(row),
        tags=parse_tags(row.get("tags")),
        pool=row.get("pool") or None,
        template=bool(row.get("template")),
        lock=row.get("lock") or None,
        cores=row.get("maxcpu") or 0,
        memory=row.get("maxmem", 0),
        disk=row.get("maxdisk", 0),
        uptime=row.get("uptime", 0),
        managed=bool(row.get("hastate")),
    )


def _node(row: Mapping[str, Any]) -> NodeRow:
    return NodeRow(
        node=row["node"],
        online=row.get("status") == "online",
        cores=row.get("maxcpu", 0),
        memory=row.get("maxmem", 0),
        memory_used=row.get("mem", 0),
        maintenance=row.get("hastate") == "maintenance",
        arch=str(row.get("host-arch") or "x86_64"),
    )


def _storage(row: Mapping[str, Any]) -> StorageRow:
    return StorageRow(
        storage=row["storage"],
        node=row["node"],
        available=row.get("status") == "available",
        shared=bool(row.get("shared")),
        kind=row.get("plugintype", ""),
        content=frozenset(row.get("content", "").split(",")),
        used=row.get("disk", 0),
        total=row.get("maxdisk", 0),
    )
