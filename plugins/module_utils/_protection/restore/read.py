# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the guest, its archives, and the configuration in the chosen archive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..._foundation.cluster.find.restoring import seems_bare
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.core.errors import UnknownVm
from ..._foundation.core.parallel import side_by_side
from ..._guests.guest.flow.reads import read_archive
from ..._guests.guest.plan.archive import require_listed
from ..._operation.tasks.read import read_removals
from ..backup.archive import Archive, by_guest, newest_first
from ..backup.read import ArchiveReading, backup_storages, read_archives
from ..backup.select import select
from .choose import ChosenArchive, choose, choose_by_name, is_ordinary, require_usable
from .desired import DesiredRestore

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def read_all(client: Client, cluster: ClusterState, desired: DesiredRestore) -> ArchiveReading:
    """Return the archives on the storages of the task. Raises ConfigurationError if a storage
    cannot be read, because a newer archive may be on it.
    """
    names = desired.storages
    if desired.volume is not None:
        names = (desired.volume.partition(":")[0],)
    reading = read_archives(client, cluster, backup_storages(cluster, names))
    if desired.volume is None:
        reading.require_complete(
            f"No archive of {desired.label} was restored",
            "Repair the storage, or name the others with storages",
        )
    return reading


def find_chosen(
    client: Client, cluster: ClusterState, desired: DesiredRestore, archives: Sequence[Archive]
) -> ChosenArchive:
    """Return the archive of the task with its configuration, and its guest if it exists."""
    if desired.volume is not None:
        return _of_volume(client, cluster, desired, archives)
    row = _find_guest(client, cluster, desired)
    if row is not None:
        # Archives of earlier guests with its VMID are ignored.
        own = [one for one in archives if one.vmid == row.vmid]
        removals: Mapping[int, int] = {}
        if own:
            online = [name for name, node in cluster.nodes.items() if node.online]
            removals = read_removals(client, online, vmid=row.vmid)
        one = choose(desired, by_guest(own, [row], removals)[row.vmid])
        return with_config(client, desired, one, row)
    if desired.vmid is not None:
        one = choose(desired, [one for one in archives if one.vmid == desired.vmid])
        return with_config(client, desired, one, None)
    return _of_removed(client, cluster, desired, archives)


def _of_volume(
    client: Client, cluster: ClusterState, desired: DesiredRestore, archives: Iterable[Archive]
) -> ChosenArchive:
    volume = str(desired.volume)
    same = [one for one in archives if one.volume == volume]
    require_listed(volume, [one.node for one in same], None)
    row = cluster.vms.get(same[0].vmid or 0)
    if row is not None and (row.type != same[0].type or seems_bare(row)):
        row = None
    return with_config(client, desired, same[0], row)


def _of_removed(
    client: Client, cluster: ClusterState, desired: DesiredRestore, archives: Iterable[Archive]
) -> ChosenArchive:
    """Return the archive of a guest that no longer exists, by the name in its configuration; one
    request for each VMID with archives but without a guest.
    """
    newest: dict[tuple[str, int], Archive] = {}
    for one in sorted(archives, key=newest_first):
        row = cluster.vms.get(one.vmid or 0)
        exists = row is not None and not seems_bare(row)
        is_late = desired.before is not None and one.time > desired.before
        if one.vmid is not None and not exists and not is_late and is_ordinary(one):
            newest.setdefault((one.type, one.vmid), one)

    def read(one: Archive) -> tuple[Archive, Mapping[str, str]]:
        return one, read_archive(client, one.volume, one.node)

    found = side_by_side(read, list(newest.values()))
    archive, config = choose_by_name(desired, found)
    require_usable(desired, archive)
    return ChosenArchive(archive, config)


def with_config(
    client: Client, desired: DesiredRestore, one: Archive, row: VmRow | None
) -> ChosenArchive:
    """Return an archive with its configuration. Raises FleetError if it cannot be used."""
    require_usable(desired, one)
    return ChosenArchive(one, read_archive(client, one.volume, one.node), row)


def _find_guest(client: Client, cluster: ClusterState, desired: DesiredRestore) -> VmRow | None:
    """Return the guest, or None if it no longer exists or a failed restore left it empty."""
    bare = cluster.vms.get(desired.vmid or 0)
    if bare is not None and seems_bare(bare):
        return None
    choice = {"name": desired.name, "vmid": desired.vmid}
    (target,) = select(client, cluster, choice, desired.owner)
    if target.row is not None and target.error is None:
        return target.row
    if target.error is None or isinstance(target.error, UnknownVm):
        return None
    raise target.error
