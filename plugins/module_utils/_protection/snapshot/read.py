# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads a VM with its snapshots; makes no decisions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.find.restoring import is_bare, require_no_restore, require_restored
from ..._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state
from ..._foundation.cluster.tenant import parse_tags
from ..._foundation.core.errors import FleetError, NotFound
from ..._guests.kinds.identity import Identity
from ..._guests.kinds.kind import Kind
from ..._guests.kinds.words import VM, kind_of_row
from .model import Snapshot, SnapshotDisk, SnapshotTree, SnapshotVm
from .storages import FILES, disks_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

Row = Mapping[str, Any]


def read_vm(client: Client, row: VmRow, cluster: ClusterState) -> SnapshotVm:
    """Return the VM with its current snapshots; two requests.

    A VM that has moved is found on its new node. Raises NotFound if the VM is gone, and
    BeingRestored while a restore writes it.
    """
    try:
        return _read(client, row, cluster)
    except NotFound:
        fresh = fetch_cluster_state(client, cluster.types)
        moved = fresh.vms.get(row.vmid)
        if moved is None or moved.node == row.node:
            raise
        return _read(client, moved, fresh)


def _read(client: Client, row: VmRow, cluster: ClusterState) -> SnapshotVm:
    kind = kind_of_row(row)
    attempted = f"Could not read {kind.noun} '{row.name}' ({row.vmid}) on node {row.node}"
    rows = client.get(*row.path, "snapshot", attempted=attempted)
    # PVE takes snapshots of the current configuration, without pending changes. This configuration
    # is read last, because the first step relies on the owner in it.
    config = client.get(*row.path, "config", params={"current": 1}, attempted=attempted)
    if row.type == VM.type and is_bare(config):
        require_restored(client, [row], attempted)
    texts = {key: str(value) for key, value in config.items()}
    kinds = {one.storage: one.kind for one in cluster.storages}
    state_storage, state_bytes = kind.memory_volume(texts, cluster, row.node)
    return SnapshotVm(
        kind=kind,
        vmid=row.vmid,
        node=row.node,
        name=_name_of(kind, config, row.vmid),
        tree=tree_of(rows),
        disks=disks_of(kind.disks_in(texts), kinds),
        tags=parse_tags(_text(config, "tags")),
        lock=_text(config, "lock") or None,
        template=_text(config, "template") not in ("", "0"),
        memory_bound=tuple(kind.memory_obstacles_in(config)),
        state_storage=state_storage,
        state_bytes=state_bytes,
        generation=_text(config, "vmgenid"),
        identity=_identity(kind, config, row.vmid),
    )


def _identity(kind: Kind, config: Row, vmid: int) -> Identity:
    texts = {key: str(value) for key, value in config.items()}
    volumes = {disk.slot: disk.volume for disk in disks_of(kind.disks_in(texts), {})}
    return kind.identity_in(config, name=_name_of(kind, config, vmid), volumes=volumes)


def _name_of(kind: Kind, config: Row, vmid: int) -> str:
    """Return the name of a guest, or its kind and VMID if it has no name."""
    return kind.name_in(config) or f"{kind.noun} {vmid}"


def read_owned(client: Client, vm: SnapshotVm) -> tuple[Identity, tuple[str, ...]]:
    """Return the current identity and tags of a VM; one request. Raises BeingRestored."""
    config = client.get(*vm.path, "config", params={"current": 1})
    require_no_restore(config, f"{vm.label} was not changed", vm.vmid, vm.node)
    return _identity(vm.kind, config, vm.vmid), parse_tags(_text(config, "tags"))


def _text(answer: Mapping[str, Any], key: str) -> str:
    """Return a value of an answer as text, or an empty text if it is missing."""
    value = answer.get(key)
    return str(value or "")


def tree_of(rows: Iterable[Mapping[str, Any]]) -> SnapshotTree:
    """Return the tree from the rows of C(GET .../snapshot) (pure)."""
    snapshots: dict[str, Snapshot] = {}
    parent: str | None = None
    running = False
    for row in rows:
        name = row["name"]
        stands_on = _text(row, "parent") or None
        if name == "current":
            parent = stands_on
            running = bool(row.get("running"))
            continue
        snapshots[name] = Snapshot(
            name=name,
            time=int(row.get("snaptime") or 0),
            description=_text(row, "description"),
            vmstate=bool(row.get("vmstate")),
            parent=stands_on,
            state=_text(row, "snapstate") or None,
        )
    return SnapshotTree(snapshots, parent, running)


def tags_in(client: Client, vm: SnapshotVm, snapshot: str) -> tuple[str, ...]:
    """Return the tags that the VM has after a rollback to the snapshot; one request."""
    config = client.get(
        *vm.path,
        "snapshot",
        snapshot,
        "config",
        attempted=f"Could not read snapshot '{snapshot}' of {vm.label}",
    )
    return parse_tags(_text(config, "tags"))


def chained_storages(client: Client, disks: Iterable[SnapshotDisk]) -> frozenset[str]:
    """Return the file storages that keep snapshots as chains of volumes.

    One request, or none without a disk on a file storage. The result is empty if the caller may not
    see the configuration of the storages; PVE itself then refuses unsupported operations.
    """
    wanted = {disk.storage for disk in disks if disk.kind in FILES}
    if not wanted:
        return frozenset()
    try:
        rows = client.get("storage") or []
    except FleetError:
        return frozenset()
    chained = [row["storage"] for row in rows if int(row.get("snapshot-as-volume-chain") or 0)]
    return frozenset(wanted.intersection(chained))


def has_snapshots(client: Client, vm: SnapshotVm) -> bool:
    """Return whether PVE can take snapshots of the VM's disks, as PVE reports it; one request."""
    answer = client.get(
        *vm.path,
        "feature",
        feature="snapshot",
        attempted=f"Could not ask whether {vm.label} can have snapshots",
    )
    return bool((answer or {}).get("hasFeature"))


def running_task(client: Client, node: str, vmid: int, kind: str) -> str | None:
    """Return the UPID of a running task of that type for the VM, or None."""
    rows = client.get("nodes", node, "tasks", vmid=vmid, typefilter=kind, source="active") or []
    for row in rows:
        if row.get("type") == kind and not row.get("endtime"):
            return row["upid"]
    return None


def running_action(client: Client, vm: SnapshotVm, action: str) -> str | None:
    """Return the UPID of a running task of that action for the VM, or None."""
    return running_task(client, vm.node, vm.vmid, vm.task_of(action))


def all_tasks(client: Client, vm: SnapshotVm, action: str, since: float) -> list[Row]:
    """Return the running and finished tasks of that action for the VM since a time."""
    kind = vm.task_of(action)
    query = {"vmid": vm.vmid, "typefilter": kind, "source": "all", "since": int(since)}
    rows = client.get("nodes", vm.node, "tasks", params=query) or []
    return [row for row in rows if row.get("type") == kind]


def new_task(
    client: Client, vm: SnapshotVm, action: str, since: float, known: Collection[str] = ()
) -> str | None:
    """Return the UPID of the latest task of that action since a time, except `known`, or None."""
    fresh = [row for row in all_tasks(client, vm, action, since) if row["upid"] not in known]
    if not fresh:
        return None
    return max(fresh, key=lambda row: int(row.get("starttime") or 0))["upid"]
