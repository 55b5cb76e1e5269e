# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the archives on the storages of a cluster, and finds hidden archives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from ..._foundation.api.access.privileges import Privileges
from ..._foundation.api.access.required import RequiredRequest, find_missing
from ..._foundation.cluster.state import ClusterState, StorageRow, VmRow
from ..._foundation.cluster.storages.contents import read_contents
from ..._foundation.core.errors import ConfigurationError, FleetError
from ..._foundation.core.formatting import first_of
from ..._guests.kinds.words import CONTAINER, VM
from .archive import Archive, archive_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

CONTENT = "backup"


@dataclass(frozen=True)
class ArchiveReading:
    """The archives that were found. `missing` has a row for each storage that is not readable."""

    archives: tuple[Archive, ...]
    missing: tuple[dict[str, Any], ...]

    def require_complete(self, attempted: str, next_step: str) -> None:
        """Raise ConfigurationError if a storage could not be read (pure)."""
        if self.missing:
            raise ConfigurationError(
                f"{attempted}: {self.missing[0]['reason']}", next_step, "storage not readable"
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
            f"Storage '{wrong[0]}' could not be used for backups: it does not exist, is not "
            f"visible, or does not have content backup; storages for backups are: {listed}",
            "Name one of them, or add backup to the content of the storage",
            "no storage for backups",
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

    `privileges` has the caller's privileges by path. Archives of removed guests count as well.
    """
    held = Privileges(privileges)
    lacking: dict[tuple[str, str], dict[str, None]] = {}
    for name, vmid in product(
        sorted({row.storage for row in storages}), [row.vmid for row in guests] or [0]
    ):
        privilege, path = missing_for_archives(name, vmid, held)
        if privilege and path != "/vms/0":
            lacking.setdefault((name, privilege), {})[path] = None
    rows: list[dict[str, Any]] = []
    for (name, privilege), paths in lacking.items():
        cause = f"the caller lacks {privilege} on {first_of(list(paths), 5)}"
        rows.append(
            {
                "storage": name,
                "node": None,
                "category": "PermissionDenied",
                "reason": f"Archives on storage {name} may be hidden: {cause}.",
            }
        )
    return rows


def missing_for_archives(storage: str, vmid: int, held: Privileges) -> tuple[str, str]:
    """Return a privilege and a path without which archives of a guest are hidden, empty texts if
    all are listed (pure).

    PVE omits volumes that the caller has no right to use from a listing (pve-storage:
    PVE/API2/Storage/Content.pm, index; PVE/Storage.pm, check_volume_access).
    """
    volume = f"{storage}:backup/vzdump-{VM.type}-{vmid}-0.vma"
    path = ("nodes", "-", "storage", storage, "content", volume)
    missing = find_missing(RequiredRequest("GET", path, {}), held) or ""
    place, _comma, privilege = missing.partition(", ")
    return privilege, place
