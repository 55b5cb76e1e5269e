# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a VM with its snapshots. Talks, decides nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._cluster.state import ClusterState, VmRow, fetch_cluster_state
from .._cluster.tenant import parse_tags
from .._core.errors import FleetError, NotFound
from .._guest.identity import Identity, identity_in
from .._vm.config.memory import state_volume
from .model import Disk, Machine, Snapshot, Tree
from .storages import FILES, disks_of

# Options with which PVE cannot save the memory (qemu-server: QemuMigrate/Helpers.pm,
# check_non_migratable_resources).
_MEMORY_BOUND = re.compile(r"amd-sev|intel-tdx|virtiofs\d+")

if TYPE_CHECKING:
    from .._api.client import Client


def read_machine(
    client: Client,
    row: VmRow,
    cluster: ClusterState,
) -> Machine:
    """Return the VM with its snapshots as they are now; two requests.

    A VM that has moved is found on its new node. Raises NotFound where it is gone.
    """
    try:
        return _read(client, row, cluster)
    except NotFound:
        fresh = fetch_cluster_state(client)
        moved = fresh.vms.get(row.vmid)
        if moved is None or moved.node == row.node:
            raise
        return _read(client, moved, fresh)


def _read(client: Client, row: VmRow, cluster: ClusterState) -> Machine:
    base = ("nodes", row.node, "qemu", row.vmid)
    attempted = f"Could not read VM '{row.name}' ({row.vmid}) on node {row.node}"
    rows = client.get(*base, "snapshot", attempted=attempted)
    # What runs now, without pending changes, is what PVE takes a snapshot of. It is read last: a
    # first step relies on whose VM it is.
    config = client.get(
        *base,
        "config",
        params={"current": 1},
        attempted=attempted,
    )
    drive_texts = {key: str(value) for key, value in config.items()}
    kinds = {one.storage: one.kind for one in cluster.storages}
    memory_bound = [key for key in config if _MEMORY_BOUND.fullmatch(key)]
    name = _text(config, "name") or f"VM {row.vmid}"
    disks = disks_of(drive_texts, kinds)
    state_storage, state_bytes = state_volume(drive_texts, cluster, row.node)
    return Machine(
        vmid=row.vmid,
        node=row.node,
        name=name,
        tree=tree_of(rows),
        disks=disks,
        tags=parse_tags(_text(config, "tags")),
        lock=_text(config, "lock") or None,
        template=_text(config, "template") not in ("", "0"),
        memory_bound=tuple(sorted(memory_bound)),
        state_storage=state_storage,
        state_bytes=state_bytes,
        generation=_text(config, "vmgenid"),
        identity=_identity(config, name, disks),
    )


def _identity(config: Mapping[str, Any], name: str, disks: Iterable[Disk]) -> Identity:
    volumes = {disk.slot: disk.volume for disk in disks}
    return identity_in(config, name=name, volumes=volumes)


def read_owned(client: Client, machine: Machine) -> tuple[Identity, tuple[str, ...]]:
    """Return the identity and the tags of a VM as they are now; one request."""
    config = client.get(*machine.path, "config", params={"current": 1})
    texts = {key: str(value) for key, value in config.items()}
    name = _text(config, "name") or f"VM {machine.vmid}"
    return _identity(config, name, disks_of(texts, {})), parse_tags(_text(config, "tags"))


def _text(answer: Mapping[str, Any], key: str) -> str:
    """Return a value of an answer as text, an empty one where it is missing."""
    value = answer.get(key)
    return str(value or "")


def tree_of(rows: Iterable[Mapping[str, Any]]) -> Tree:
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
    return Tree(snapshots, parent, running)


def tags_in(
    client: Client,
    machine: Machine,
    snapshot: str,
) -> tuple[str, ...]:
    """Return the tags that a rollback to the snapshot gives the VM; one request."""
    config = client.get(
        *machine.path,
        "snapshot",
        snapshot,
        "config",
        attempted=f"Could not read snapshot '{snapshot}' of {machine.label}",
    )
    return parse_tags(_text(config, "tags"))


def chained_storages(client: Client, disks: Iterable[Disk]) -> frozenset[str]:
    """Return the storages with files that keep snapshots as chains of volumes.

    One request, and none without a disk on such a storage. A caller who may not see the storages'
    configuration gets none: PVE itself then refuses what it cannot do.
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


def has_snapshots(client: Client, machine: Machine) -> bool:
    """Return PVE's own answer whether it can take snapshots of the VM's disks; one request."""
    answer = client.get(
        *machine.path,
        "feature",
        feature="snapshot",
        attempted=f"Could not ask whether {machine.label} can have snapshots",
    )
    return bool((answer or {}).get("hasFeature"))


def running_task(
    client: Client,
    node: str,
    vmid: int,
    kind: str,
) -> str | None:
    """Return the UPID of a task of that type that runs for the VM now, or None."""
    rows = (
        client.get(
            "nodes",
            node,
            "tasks",
            vmid=vmid,
            typefilter=kind,
            source="active",
        )
        or []
    )
    for row in rows:
        if row.get("type") == kind and not row.get("endtime"):
            return row["upid"]
    return None


def all_tasks(
    client: Client,
    node: str,
    vmid: int,
    kind: str,
    since: float,
) -> list[Mapping[str, Any]]:
    """Return the tasks of that type for the VM since a time, running ones and others."""
    rows = client.get(
        "nodes",
        node,
        "tasks",
        vmid=vmid,
        typefilter=kind,
        source="all",
        since=int(since),
    )
    return rows or []


def new_task(
    client: Client,
    node: str,
    vmid: int,
    kind: str,
    since: float,
    known: set[str],
) -> str | None:
    """Return the UPID of the latest task of that type since a time that is not `known`, or None."""
    rows = all_tasks(client, node, vmid, kind, since)
    fresh = [row for row in rows if row.get("type") == kind and row["upid"] not in known]
    if not fresh:
        return None
    latest = max(fresh, key=lambda row: int(row.get("starttime") or 0))
    return latest["upid"]
