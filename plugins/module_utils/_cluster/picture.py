# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The picture of a cluster: what one C(GET /cluster/resources) says of nodes, VMs, storages and pools.

The listing lags about 10 seconds behind (status, name); node, lock, tags and pool of a VM come from the cluster's
configuration and do not. What a decision rests on is read again where that matters.
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

# Seconds after which a picture is read again before a write that rests on it.
FRESH = 5.0
NODES_AT_ONCE = 8


@dataclass(frozen=True)
class VmRow:
    """One VM of the listing. `name` is empty where the listing does not know it yet; memory and disk in bytes."""

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
    fresh: bool = False  # whether its node itself said this just now, the power state in full

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
    maintenance: bool = False  # told since 8.3


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


@dataclass(frozen=True)
class Picture:
    """What the cluster looks like to the caller; entries the caller may not see are missing."""

    vms: Mapping[int, VmRow]
    nodes: Mapping[str, NodeRow]
    storages: tuple[StorageRow, ...]
    pools: frozenset[str]
    taken: AbstractSet[int]  # every VMID in use, containers too
    read_at: float = 0.0  # by the client's monotonic clock

    def storage_on(self, storage: str, node: str) -> StorageRow | None:
        """Return the row of a storage on a node, or None."""
        return next((row for row in self.storages if row.storage == storage and row.node == node), None)

    @property
    def shared_storages(self) -> frozenset[str]:
        return frozenset(row.storage for row in self.storages if row.shared)


def read_picture(client: Client) -> Picture:
    """Return the picture; one request."""
    now = client.clock.monotonic()
    return replace(picture_of(client.get("cluster", "resources")), read_at=now)


def refreshed(client: Client, picture: Picture) -> Picture:
    """Return the picture, or a new one where a write may no longer rest on it."""
    return picture if client.clock.monotonic() - picture.read_at <= FRESH else read_picture(client)


def node_of(client: Client, vmid: int) -> str | None:
    """Return the node a VM is on now, or None; one request. The listing does not lag in this."""
    rows = client.get("cluster", "resources", type="vm")
    return next((str(row["node"]) for row in rows if int(row["vmid"]) == vmid), None)


def fill_names(client: Client, picture: Picture) -> Picture:
    """Return the picture with the names and figures of VMs that are too new for the listing.

    One request a node that has some.
    """
    nodes = {row.node for row in picture.vms.values() if not row.name}
    return ask_nodes(client, picture, nodes) if nodes else picture


def ask_nodes(client: Client, picture: Picture, nodes: Iterable[str], *, full: bool = False) -> Picture:
    """Return the picture with what these nodes themselves say of their VMs, which does not lag; one request a node.

    The nodes are asked side by side. `full` has them ask each machine for its power state too, such as paused.
    A node that does not answer leaves its VMs as they are in the listing: it stops only what is about them.
    """

    def ask(node: str) -> list[dict[str, Any]]:
        try:
            rows: list[dict[str, Any]] = client.get("nodes", node, "qemu", full=full or None)
        except (NetworkError, NodeUnhealthy):
            return []
        return rows

    vms = dict(picture.vms)
    known = {name: node.online for name, node in picture.nodes.items()}
    asked = [node for node in sorted(nodes) if known.get(node, True)]
    for node, rows in zip(asked, side_by_side(ask, asked, NODES_AT_ONCE), strict=True):
        for row in rows:
            old = vms.get(int(row["vmid"]))
            if old is not None and old.node == node:
                fresh = _vm({**row, "node": node, "maxcpu": row.get("cpus")})
                vms[fresh.vmid] = replace(fresh, pool=old.pool, fresh=full)
    return replace(picture, vms=vms)


def own_name(listed: str, vmid: int) -> str:
    """Return a VM's name, or an empty text where it has none: Proxmox VE then lists it as C(VM) and its number."""
    return "" if listed == f"VM {vmid}" else listed


def power_of(row: Mapping[str, Any]) -> str:
    """Return running, stopped, or what else the machine says of itself (paused, suspended, prelaunch)."""
    status = str(row.get("status") or "unknown")
    machine = str(row.get("qmpstatus") or status)
    return machine if status == "running" and machine not in ("running", "stopped") else status


def read_volumes(client: Client, picture: Picture) -> dict[int, int]:
    """Return the bytes of all disks by VMID, detached ones included and cloud-init drives not.

    One request a storage that takes images, and one a node for those that are not shared.
    """
    sizes: dict[str, tuple[int, int]] = {}
    asked: set[str] = set()
    for row in picture.storages:
        node = picture.nodes.get(row.node)
        usable = row.available and "images" in row.content and (node is None or node.online)
        if not usable or (row.shared and row.storage in asked):
            continue
        try:
            volumes = client.get("nodes", row.node, "storage", row.storage, "content", content="images")
        except (NetworkError, NodeUnhealthy):
            continue
        asked.add(row.storage)
        where = "" if row.shared else row.node
        for volume in volumes:
            if volume.get("vmid") and "cloudinit" not in volume["volid"]:
                sizes[f"{where}/{volume['volid']}"] = (int(volume["vmid"]), int(volume.get("size") or 0))
    used: dict[int, int] = {}
    for vmid, size in sizes.values():
        used[vmid] = used.get(vmid, 0) + size
    return used


def picture_of(rows: Iterable[Mapping[str, Any]]) -> Picture:
    """Return the picture that the rows of C(/cluster/resources) give (pure)."""
    vms: dict[int, VmRow] = {}
    nodes: dict[str, NodeRow] = {}
    storages: list[StorageRow] = []
    pools: set[str] = set()
    taken: set[int] = set()
    for row in rows:
        kind = row.get("type")
        if kind in ("qemu", "lxc"):
            taken.add(int(row["vmid"]))
        if kind == "qemu":
            vms[int(row["vmid"])] = _vm(row)
        elif kind == "node":
            nodes[row["node"]] = _node(row)
        elif kind == "storage":
            storages.append(_storage(row))
        elif kind == "pool":
            pools.add(row["pool"])
    return Picture(vms, nodes, tuple(storages), frozenset(pools), frozenset(taken))


def _vm(row: Mapping[str, Any]) -> VmRow:
    return VmRow(
        vmid=int(row["vmid"]),
        node=row["node"],
        name=row.get("name") or "",
        status=power_of(row),
        tags=tuple(parse_tags(row.get("tags") or "")),
        pool=row.get("pool") or None,
        template=bool(row.get("template")),
        lock=row.get("lock") or None,
        cores=int(row.get("maxcpu") or 0),
        memory=int(row.get("maxmem") or 0),
        disk=int(row.get("maxdisk") or 0),
        uptime=int(row.get("uptime") or 0),
    )


def _node(row: Mapping[str, Any]) -> NodeRow:
    return NodeRow(
        node=row["node"],
        online=row.get("status") == "online",
        cores=int(row.get("maxcpu") or 0),
        memory=int(row.get("maxmem") or 0),
        memory_used=int(row.get("mem") or 0),
        cpu=float(row.get("cpu") or 0.0),
        maintenance=row.get("hastate") == "maintenance",
    )


def _storage(row: Mapping[str, Any]) -> StorageRow:
    return StorageRow(
        storage=row["storage"],
        node=row["node"],
        available=row.get("status") == "available",
        shared=bool(row.get("shared")),
        kind=row.get("plugintype") or "",
        content=frozenset((row.get("content") or "").split(",")),
        used=int(row.get("disk") or 0),
        total=int(row.get("maxdisk") or 0),
    )
