# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads a VM with its snapshots. Talks, decides nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._cluster.picture import Picture, VmRow, read_picture
from .._cluster.tenant import parse_tags
from .._core.errors import FleetError, NotFound
from .model import Disk, Machine, Snapshot, Tree
from .storages import FILES, disks_of

# What PVE cannot save the memory with (qemu-server: QemuMigrate/Helpers.pm, check_non_migratable_resources).
_MEMORY_BOUND = re.compile(r"amd-sev|intel-tdx|virtiofs\d+")

if TYPE_CHECKING:
    from .._api.client import Client


def read_machine(client: Client, row: VmRow, picture: Picture) -> Machine:
    """Return the VM with its snapshots as they are now: two requests. A VM that has moved is followed.

    Raises NotFound where it is gone.
    """
    try:
        return _read(client, row, picture)
    except NotFound:
        fresh = read_picture(client)
        moved = fresh.vms.get(row.vmid)
        if moved is None or moved.node == row.node:
            raise
        return _read(client, moved, fresh)


def _read(client: Client, row: VmRow, picture: Picture) -> Machine:
    base = ("nodes", row.node, "qemu", row.vmid)
    attempted = f"Could not read VM '{row.name}' ({row.vmid}) on node {row.node}"
    # What runs now, without pending changes, is what PVE takes a snapshot of.
    config = client.get(*base, "config", params={"current": 1}, attempted=attempted)
    tree = tree_of(client.get(*base, "snapshot", attempted=attempted))
    kinds = {one.storage: one.kind for one in picture.storages}
    return Machine(
        vmid=row.vmid,
        node=row.node,
        name=str(config.get("name") or f"VM {row.vmid}"),
        tree=tree,
        disks=disks_of({key: str(value) for key, value in config.items()}, kinds),
        tags=tuple(parse_tags(str(config.get("tags") or ""))),
        lock=config.get("lock") or None,
        template=bool(int(config.get("template") or 0)),
        memory_bound=tuple(sorted(key for key in config if _MEMORY_BOUND.fullmatch(key))),
    )


def tree_of(rows: Iterable[Mapping[str, Any]]) -> Tree:
    """Return the tree that the rows of C(GET .../snapshot) give (pure)."""
    snapshots: dict[str, Snapshot] = {}
    parent, running = None, False
    for row in rows:
        if row["name"] == "current":
            parent, running = row.get("parent") or None, bool(row.get("running"))
            continue
        snapshots[row["name"]] = Snapshot(
            name=row["name"],
            time=int(row.get("snaptime") or 0),
            description=str(row.get("description") or ""),
            vmstate=bool(row.get("vmstate")),
            parent=row.get("parent") or None,
            state=row.get("snapstate") or None,
        )
    return Tree(snapshots, parent, running)


def tags_in(client: Client, machine: Machine, snapshot: str) -> tuple[str, ...]:
    """Return the tags that a rollback to the snapshot gives the VM; one request."""
    base = ("nodes", machine.node, "qemu", machine.vmid, "snapshot", snapshot, "config")
    config = client.get(*base, attempted=f"Could not read snapshot '{snapshot}' of {machine.label}")
    return parse_tags(str(config.get("tags") or ""))


def chained_storages(client: Client, disks: Iterable[Disk]) -> frozenset[str]:
    """Return the storages with files that keep snapshots as chains of volumes; one request where there may be any.

    Who may not see the storages' configuration gets none: PVE itself then refuses what cannot be.
    """
    wanted = {disk.storage for disk in disks if disk.kind in FILES}
    if not wanted:
        return frozenset()
    try:
        rows = client.get("storage")
    except FleetError:
        return frozenset()
    return frozenset(
        row["storage"]
        for row in rows or []
        if row["storage"] in wanted and int(row.get("snapshot-as-volume-chain") or 0)
    )


def has_snapshots(client: Client, machine: Machine) -> bool:
    """Return PVE's own answer whether the VM's disks can be snapshotted; one request."""
    answer = client.get(
        "nodes",
        machine.node,
        "qemu",
        machine.vmid,
        "feature",
        feature="snapshot",
        attempted=f"Could not ask whether {machine.label} can have snapshots",
    )
    return bool((answer or {}).get("hasFeature"))


def running_task(client: Client, node: str, vmid: int, kind: str) -> str | None:
    """Return the UPID of a task of that type that runs for the VM now, or None."""
    rows = client.get("nodes", node, "tasks", vmid=vmid, typefilter=kind, source="active") or []
    return next((row["upid"] for row in rows if row.get("type") == kind and not row.get("endtime")), None)


def new_task(client: Client, node: str, vmid: int, kind: str, since: float, known: set[str]) -> str | None:
    """Return the UPID of a task of that type for the VM that began at `since` and is not `known`, or None."""
    rows = client.get("nodes", node, "tasks", vmid=vmid, typefilter=kind, source="all", since=int(since)) or []
    fresh = [row for row in rows if row.get("type") == kind and row["upid"] not in known]
    return max(fresh, key=lambda row: int(row["starttime"]))["upid"] if fresh else None
