# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads this site: archives with their configurations, pools of tenants, bridges, and guests that
an earlier run restored; and the other site, where guests may still run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...._foundation.cluster.bridges import KnownBridges
from ...._foundation.cluster.find.restoring import seems_bare
from ...._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state, with_names
from ...._foundation.cluster.tenant import have_same_tenants
from ...._foundation.core.errors import FleetError
from ...._foundation.core.marks import marked_tag
from ...._foundation.core.parallel import side_by_side
from ...._guests.guest.live.read import read_wherever
from ...._guests.guest.plan.archive import archived_vmid
from ...._guests.guest.registry import list_of
from ...._guests.kinds.model import Actual
from ...backup.archive import Archive
from ...backup.read import backup_storages, read_archives
from ..choose import ChosenArchive, require_usable
from ..desired import read_desired as read_restore
from ..interrupted import find_locked, find_orphans
from ..read import with_config
from .choose import label_of, newest_archives, tags_of
from .desired import DesiredFailover
from .guest import RestoredGuest, SiteNames, source_of

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_STOPPED = "stopped"


@dataclass(frozen=True)
class RecoverySite:
    """This site. `found` are the archives of the task with their configurations, `problems` has a
    sentence about each archive that cannot be used. `vmids` are the VMIDs of all archives.

    `own_archives` are the archives on other storages of this site. `pools` are pools by tenant.
    `orphans` are the empty VMs of failed restores, and `locked` has a sentence about each empty
    VM that only root can unlock.
    """

    cluster: ClusterState
    found: Sequence[ChosenArchive]
    problems: Sequence[str]
    vmids: frozenset[str]
    own_archives: tuple[Archive, ...]
    pools: Mapping[str, str]
    place: SiteNames
    orphans: Sequence[VmRow]
    locked: Sequence[str]


def read_site(client: Client, desired: DesiredFailover) -> RecoverySite:
    """Return this site. Raises ConfigurationError if a storage of the task cannot be read.

    In addition to the requests of module backup_info, it sends one for the newest archive of each
    guest and one for each node.
    """
    cluster = with_names(client, fetch_cluster_state(client), missing=True)
    rows = backup_storages(cluster, desired.storages)
    reading = read_archives(client, cluster, rows)
    reading.require_complete("No guest was restored", "Repair the storage, or name others")
    others = tuple(row for row in backup_storages(cluster) if row not in rows)
    own = read_archives(client, cluster, others).archives
    found: list[ChosenArchive] = []
    problems: list[str] = []
    for one in _with_configs(client, desired, newest_archives(reading.archives, desired.choice)):
        if isinstance(one, ChosenArchive):
            found.append(one)
        else:
            problems.append(one)
    owner = desired.choice.owner
    return RecoverySite(
        cluster=cluster,
        found=found,
        problems=problems,
        vmids=frozenset(str(one.vmid) for one in reading.archives),
        own_archives=own,
        pools=tenant_pools(client, owner.prefix),
        place=_place(client, cluster),
        orphans=find_orphans(client, cluster, owner, own),
        locked=find_locked(client, cluster, owner, own),
    )


def _with_configs(
    client: Client, desired: DesiredFailover, archives: Sequence[Archive]
) -> list[ChosenArchive | str]:
    """Return each archive with its configuration, or the reason why it cannot be used."""

    def read(one: Archive) -> ChosenArchive | str:
        wanted = {"archive": one.volume, "new_name": "guest", "keep": "none"}
        restore = read_restore({**wanted, "tenant_prefix": desired.choice.owner.prefix})
        try:
            require_usable(restore, one)
            return with_config(client, restore, one, None)
        except FleetError as error:
            return f"guest {one.vmid}: {error.cause}"

    return side_by_side(read, archives)


def tenant_pools(client: Client, prefix: str) -> dict[str, str]:
    """Return the pools that module tenant created, by tenant."""
    found: dict[str, str] = {}
    for row in client.get("pools", attempted="Could not read the pools") or ():
        tag = (marked_tag(row.get("comment")) or "").lower()
        if tag.startswith(prefix.lower()):
            found[tag[len(prefix) :]] = str(row["poolid"])
    return found


def _place(client: Client, cluster: ClusterState) -> SiteNames:
    storages: dict[str, frozenset[str]] = {}
    for row in cluster.storages:
        storages[row.storage] = storages.get(row.storage, frozenset()) | row.content
    bridges = KnownBridges(client)
    for name, node in cluster.nodes.items():
        if node.online:
            bridges.try_read(name)
    known = [names for names in bridges.by_node.values() if names is not None]
    return SiteNames(storages, frozenset().union(*known))


def read_present(
    client: Client, cluster: ClusterState, one: RestoredGuest, *, renumbers: bool
) -> tuple[Actual | None, list[str]]:
    """Return the guest that an earlier run restored, and the problems with guests in its place."""
    present: Actual | None = None
    problems: list[str] = []
    for row in _rows(cluster, one, renumbers=renumbers):
        try:
            kind = list_of(row.type).kind
            actual = read_wherever(client, kind, row.vmid, row.node, pool=row.pool)
        except FleetError as error:
            problems.append(f"{one.label}: {error.cause}")
            continue
        problem = find_conflict(one, actual)
        if problem:
            problems.append(f"{one.label}: {problem}")
        else:
            present = actual
    return present, problems


def _rows(cluster: ClusterState, one: RestoredGuest, *, renumbers: bool) -> list[VmRow]:
    """Return the guests at this site with the VMID of the guest, or with its name and tenant
    (pure). A VM that is being restored is left to the plan.
    """
    owner = one.restore.owner
    found: list[VmRow] = []
    for row in cluster.guests:
        is_same_name = row.own_name == one.chosen.name and owner.owns(row)
        is_same_number = row.vmid == one.vmid and not renumbers
        if (is_same_name or is_same_number) and not seems_bare(row):
            found.append(row)
    return sorted(found, key=lambda row: row.vmid)


def find_conflict(one: RestoredGuest, actual: Actual) -> str:
    """Return why an existing guest is not the restored guest, or an empty text (pure).

    A stopped guest from an older archive is a conflict too: it must not start with old data.
    """
    archive = one.chosen.archive
    source = source_of(actual.notes) or ""
    is_restored = actual.kind.type == archive.type and archived_vmid(source) == archive.vmid
    if not is_restored or actual.name != one.chosen.name:
        return f"{actual.label} exists here, and no failover has restored it; it is not overwritten"
    if source != archive.volume and not actual.running:
        return (
            f"{actual.label} is stopped and from {source}, and {archive.volume} is newer: remove"
            " it, or start it by hand"
        )
    return ""


@dataclass(frozen=True)
class OtherSite:
    """The other site: its name, and its state or the error of the reading."""

    name: str
    cluster: ClusterState | None = None
    error: FleetError | None = None


def read_other(client: Client, name: str) -> OtherSite:
    """Return the other site; two requests, and one for each node with guests without a name."""
    try:
        cluster = fetch_cluster_state(client)
        return OtherSite(name, with_names(client, cluster, missing=True))
    except FleetError as error:
        return OtherSite(name, error=error)


def find_start_blockers(
    other: OtherSite | None, guests: Iterable[ChosenArchive], prefix: str, *, lost: bool
) -> list[str]:
    """Return why guests must not be started here (pure).

    A guest that runs at the other site is always a problem. A site that does not answer, or a guest
    on an offline node, is a problem unless the task declares the site lost.
    """
    if other is None or other.cluster is None:
        unknown = "nothing shows whether the guests run elsewhere: set from_site, or lost"
        if other is not None:
            cause = other.error.cause if other.error is not None else ""
            unknown = f"site {other.name} cannot be asked whether guests run there: {cause}"
        return [] if lost else [unknown]
    problems: list[str] = []
    for one in guests:
        for row in _same_guests(other.cluster, one, prefix):
            node = other.cluster.nodes.get(row.node)
            is_known = node is not None and node.online
            if is_known and row.status != _STOPPED:
                place = f"guest {row.vmid} on node {row.node} of site {other.name}"
                problems.append(f"{label_of(one)} is {row.status} as {place}")
            elif not is_known and not lost:
                problems.append(
                    f"{label_of(one)} may run at site {other.name}: node {row.node} is offline"
                )
    return problems


def _same_guests(cluster: ClusterState, one: ChosenArchive, prefix: str) -> list[VmRow]:
    """Return the guests with the VMID and kind of the guest, or with its name and tenant."""
    rows: Mapping[int, VmRow] = cluster.vms
    tags = tags_of(one)
    found: list[VmRow] = []
    for vmid in sorted(rows):
        row = rows[vmid]
        is_same_number = vmid == one.archive.vmid and row.type == one.archive.type
        is_named = bool(one.name) and row.own_name == one.name
        is_same_name = is_named and have_same_tenants(row.tags, tags, prefix)
        if is_same_number or is_same_name:
            found.append(row)
    return found
