# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the guests, jobs, storages and running tasks that use a storage.

Both the configurations of guests and the volumes on the storage are read: a configuration does not
show the memory of snapshots, and a storage that is offline does not list its volumes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.cluster.storages.volume_users import names_volume
from ..._foundation.core import propstring
from ..._foundation.core.errors import FleetError
from ..._foundation.core.parallel import side_by_side

_FLEECING: propstring.Format = {"enabled": {"default_key": True}, "storage": {}}
# Tasks that read or write volumes of a storage that no configuration names yet, or ever.
_TASKS = frozenset(
    (
        *("qmcreate", "qmclone", "qmrestore", "qmmove", "qmigrate"),
        *("vzcreate", "vzclone", "vzrestore", "move_volume", "vzmigrate"),
        *("vzdump", "download", "imgcopy", "ociregistrypull", "prunebackups"),
    )
)


@dataclass(frozen=True)
class StorageUsage:
    """The users of a storage as text, and warnings about volumes whose guests are not visible."""

    users: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_usage(client: Api, storage: str, node: str | None = None) -> StorageUsage:
    """Return guests, backup jobs, replications, storages, pools and running tasks that use a
    storage. Raises FleetError.

    With `node`, only guests and volumes on this node count, and pools do not. Six requests, one
    for each guest and pool, and one for each content type with volumes of guests: on each node, or
    on one for a shared storage.
    """
    attempted = f"Could not find out what uses storage '{storage}'"
    get = partial(client.get, attempted=attempted)
    rows = get("cluster", "resources") or []
    everyone = [row for row in rows if "vmid" in row]
    rows = [row for row in rows if node in (None, row.get("node"))]
    guests = [row for row in rows if "vmid" in row]

    def read_config(row: Mapping[str, Any]) -> Mapping[str, Any]:
        return get("nodes", row["node"], row["type"], row["vmid"], "config") or {}

    configs = side_by_side(read_config, guests)
    places = [row for row in rows if row.get("storage") == storage and "vmid" not in row]
    owners = _read_owners(client, storage, places)
    names = {int(row["vmid"]): str(row.get("name") or "") for row in everyone}
    using = {
        int(row["vmid"])
        for row, config in zip(guests, configs, strict=True)
        if names_storage(config, storage)
    }
    using |= owners & names.keys()
    users = [f"guest {vmid} ({names[vmid]})" for vmid in sorted(using)]
    users += find_backup_jobs(get("cluster", "backup") or [], storage)
    for job in get("cluster", "replication") or []:
        if int(job["guest"]) in using:
            users.append(f"replication job {job['id']}")
    users += find_based_storages(get("storage") or [], storage)
    if node is None:
        users += _pools(client, storage, attempted)
    nodes = {str(row["node"]) for row in places}
    for task in get("cluster", "tasks") or []:  # a task does not show its storages
        may_use = task.get("type") in _TASKS and task.get("node") in nodes
        if may_use and not task.get("endtime"):
            users.append(f"perhaps task {task['upid']} until it ends")
    hidden = ", ".join(map(str, sorted(owners - names.keys())))
    if not hidden:
        return StorageUsage(tuple(users))
    warning = f"Volumes of VMID {hidden}, which this login does not see, stay on '{storage}'"
    return StorageUsage(tuple(users), (warning,))


def names_storage(config: Mapping[str, Any], storage: str) -> bool:
    """Return whether the configuration of a guest names a volume of the storage (pure)."""
    if config.get("vmstatestorage") == storage:
        return True
    pattern = re.compile(rf"(?:^|[,=]){re.escape(storage)}:")
    return any(names_volume(pattern, key, value) for key, value in config.items())


def find_backup_jobs(jobs: Iterable[Mapping[str, Any]], storage: str) -> list[str]:
    """Return the backup jobs that write to the storage (pure)."""
    found: list[str] = []
    for job in jobs:
        fleecing = job.get("fleecing") or {}
        if not isinstance(fleecing, Mapping):
            fleecing = propstring.parse(str(fleecing), _FLEECING, what="fleecing")
        if storage in (job.get("storage"), fleecing.get("storage")):
            found.append(f"backup job {job.get('id')}")
    return found


def find_based_storages(rows: Iterable[Mapping[str, Any]], storage: str) -> list[str]:
    """Return the storages that are based on a volume of this storage (pure)."""
    return [
        f"storage {row['storage']}"
        for row in rows
        if str(row.get("base") or "").partition(":")[0] == storage
    ]


def _pools(client: Api, storage: str, attempted: str) -> list[str]:
    """Return the pools with the storage: its removal takes it from them, and with it rights of
    tenants (pve-access-control: AccessControl.pm, remove_storage_access).
    """
    names = [str(row["poolid"]) for row in client.get("pools", attempted=attempted) or []]

    def has_storage(name: str) -> bool:
        rows = client.get("pools", poolid=name, attempted=attempted) or []
        members = rows[0].get("members") or [] if rows else []
        return any(member.get("storage") == storage for member in members)

    found = side_by_side(has_storage, names)
    return [f"pool {name}" for name, has in zip(names, found, strict=True) if has]


def _read_owners(client: Api, storage: str, places: Sequence[Mapping[str, Any]]) -> set[int]:
    """Return the VMIDs of the guests with volumes on the storage, as far as nodes list them."""
    shared = any(row.get("shared") for row in places)
    online = [row for row in places if row.get("status") == "available"]
    reads = [
        (str(row["node"]), content)
        for row in (online[:1] if shared else online)
        for content in ("images", "rootdir")
        if content in str(row.get("content") or "").split(",")
    ]

    def read(place: tuple[str, str]) -> list[Mapping[str, Any]]:
        node, content = place
        try:
            return client.get("nodes", node, "storage", storage, "content", content=content) or []
        except FleetError:  # the configurations of guests are the other source
            return []

    found: set[int] = set()
    for rows in side_by_side(read, reads):
        found.update(int(row["vmid"]) for row in rows if row.get("vmid"))
    return found
