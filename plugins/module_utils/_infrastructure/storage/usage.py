# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the guests, jobs and storages that use a storage.

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
_WITH_GUESTS = ("images", "rootdir")


@dataclass(frozen=True)
class StorageUsage:
    """The users of a storage as text, and warnings about volumes whose guests are not visible."""

    users: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_usage(client: Api, storage: str, node: str | None = None) -> StorageUsage:
    """Return guests, backup jobs, replications, storages and pools that use a storage. Raises
    FleetError.

    With `node`, only guests and volumes on this node count, and pools do not. Five requests, one
    for each guest and pool, and one for each content type with volumes of guests: on each node, or
    on one for a shared storage.
    """
    attempted = f"Could not find out what uses storage '{storage}'"
    get = partial(client.get, attempted=attempted)
    rows = get("cluster", "resources") or []
    everyone = [row for row in rows if "vmid" in row]
    rows = [row for row in rows if node in (None, row.get("node"))]
    guests = [row for row in rows if "vmid" in row]
    configs = _read_configs(client, guests, attempted)
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
    users += _replications(get("cluster", "replication") or [], using)
    users += find_based_storages(get("storage") or [], storage)
    if node is None:
        users += _pools(client, storage, attempted)
    orphans = sorted(owners - names.keys())
    return StorageUsage(tuple(users), _warnings(storage, orphans))


def _read_configs(
    client: Api, guests: Sequence[Mapping[str, Any]], attempted: str
) -> list[Mapping[str, Any]]:
    """Return the configuration of each guest; one request for each."""

    def read(row: Mapping[str, Any]) -> Mapping[str, Any]:
        path = ("nodes", row["node"], row["type"], row["vmid"], "config")
        return client.get(*path, attempted=attempted) or {}

    return side_by_side(read, guests)


def _warnings(storage: str, orphans: Sequence[int]) -> tuple[str, ...]:
    if not orphans:
        return ()
    vmids = ", ".join(map(str, orphans))
    return (f"Volumes of VMID {vmids}, which this login does not see, stay on '{storage}'",)


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


def _replications(jobs: Iterable[Mapping[str, Any]], using: set[int]) -> list[str]:
    return [f"replication job {job['id']}" for job in jobs if int(job["guest"]) in using]


def _read_owners(client: Api, storage: str, places: Sequence[Mapping[str, Any]]) -> set[int]:
    """Return the VMIDs of the guests with volumes on the storage, as far as nodes list them."""
    shared = any(row.get("shared") for row in places)
    online = [row for row in places if row.get("status") == "available"]
    reads = [
        (str(row["node"]), content)
        for row in (online[:1] if shared else online)
        for content in _WITH_GUESTS
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
