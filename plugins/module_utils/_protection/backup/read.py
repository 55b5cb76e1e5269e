# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the archives on the storages of a cluster, and finds hidden archives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.api.access.privileges import Privileges
from ..._foundation.cluster.state import ClusterState, StorageRow, VmRow
from ..._foundation.cluster.storages.contents import read_contents
from ..._foundation.core.errors import ConfigurationError, FleetError
from ..._foundation.core.formatting import first_of
from ..._guests.kinds.words import CONTAINER, VM
from .archive import Archive, archive_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

CONTENT = "backup"
_ALL = "Datastore.Allocate"
_ON_STORAGE, _ON_GUEST = "Datastore.AllocateSpace", "VM.Backup"


@dataclass(frozen=True)
class ArchiveReading:
    """The archives that were found. `missing` has a row for each storage that is not readable."""

    archives: tuple[Archive, ...]
    missing: tuple[dict[str, Any], ...]

    def require_complete(self, attempted: str, next_step: str) -> None:
        """Raise ConfigurationError if a storage could not be read (pure)."""
        if self.missing:
            raise ConfigurationError(
                attempted=attempted,
                answer=self.missing[0]["reason"],
                next_step=next_step,
                reason="storage not readable",
            )


def read_left_out(client: Client, row: VmRow) -> list[str] | None:
    """Return the disks that backups of a guest leave out, None if its configuration cannot be read;
    one request. PVE backs up the present values, without pending changes (qemu-server:
    VZDump/QemuServer.pm, prepare).
    """
    kind = CONTAINER if row.type == CONTAINER.type else VM
    try:
        config = client.get(*row.path, "config", current=1)
    except FleetError:
        return None
    return kind.unsaved_in({key: str(value) for key, value in config.items()})


def backup_storages(
    cluster: ClusterState, names: Sequence[str] | None = None
) -> tuple[StorageRow, ...]:
    """Return all storages for backups, or the named ones (pure).

    Raises ConfigurationError for a name that is not a storage for backups.
    """
    rows = tuple(row for row in cluster.storages if CONTENT in row.content)
    if names is None:
        return rows
    known = {row.storage for row in rows}
    wrong = sorted(set(names) - known)
    if wrong:
        listed = first_of(sorted(known), 10) if known else "none"
        raise ConfigurationError(
            attempted=f"Storage '{wrong[0]}' could not be used for backups",
            answer=f"it does not exist, is not visible, or does not have content backup; storages"
            f" for backups are: {listed}",
            next_step="Name one of them, or add backup to the content of the storage",
            reason="no storage for backups",
        )
    return tuple(row for row in rows if row.storage in names)


def read_archives(
    client: Client, cluster: ClusterState, storages: Sequence[StorageRow]
) -> ArchiveReading:
    """Return the archives on these storages that the caller may see.

    One request for each shared storage, and one for each node of the others, in parallel.
    """
    contents = read_contents(client, replace(cluster, storages=tuple(storages)), CONTENT)
    missing: list[dict[str, Any]] = []
    for row, error in contents.unread:
        missing.append(
            {
                "storage": row.storage,
                "node": row.place or None,
                "category": error.category,
                "reason": error.message,
            }
        )
    archives = tuple(archive_of(row, volume) for row, volume in contents.volumes)
    return ArchiveReading(archives, tuple(missing))


def find_hidden(
    guests: Iterable[VmRow], storages: Iterable[StorageRow], privileges: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return a row for each reason why archives of guests on these storages may be hidden (pure).

    PVE omits volumes that the caller has no right to use from a listing (pve-storage:
    PVE/Storage.pm, check_volume_access). `privileges` has the caller's privileges by path.
    """
    held = Privileges(privileges)
    lacking: dict[str, list[str]] = {}
    without = [str(row.vmid) for row in guests if _ON_GUEST not in held.on(f"/vms/{row.vmid}")]
    rows: list[dict[str, Any]] = []
    for name in sorted({row.storage for row in storages}):
        on_storage = held.on(f"/storage/{name}")
        if _ALL in on_storage:
            continue
        if _ON_STORAGE not in on_storage:
            rows.append(_hidden(name, f"the caller lacks {_ON_STORAGE} on /storage/{name}"))
        elif without:
            lacking[name] = without
    for name, vmids in lacking.items():
        listed = first_of(vmids, 5)
        rows.append(_hidden(name, f"the caller lacks {_ON_GUEST} on guests {listed}"))
    return rows


def _hidden(storage: str, cause: str) -> dict[str, Any]:
    return {
        "storage": storage,
        "node": None,
        "category": "PermissionDenied",
        "reason": f"Archives on storage {storage} may be hidden: {cause}.",
    }
