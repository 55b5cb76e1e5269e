# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module backup_info: archives, and guests without one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.find.owner import OwnerScope, owner_of
from ..._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state, with_names
from ..._foundation.cluster.tenant import tenant_of
from ..._foundation.core import validate
from ..._foundation.core.errors import FleetError
from ..._foundation.core.parallel import side_by_side
from ..._foundation.core.result import Result
from ..._foundation.core.times import iso
from ..._guests.kinds.words import CONTAINER, VM
from ..._operation.tasks.read import read_removals
from ..snapshot.names import seconds
from ..snapshot.select import GuestTarget, named
from .archive import Archive, by_guest, describe_archive, newest_first
from .read import ArchiveReading, backup_storages, find_hidden, read_archives, read_left_out
from .select import is_named, select

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

KINDS = frozenset((VM.type, CONTAINER.type))


@dataclass(frozen=True)
class ArchiveQuery:
    """The query of a task. `max_age` is in seconds, `now` is the time of the run."""

    owner: OwnerScope
    now: float
    max_age: int | None
    newest: bool
    detects_reuse: bool
    chooses: bool  # whether the task selects guests
    vmids: frozenset[int]  # guests that are named by VMID and may no longer exist


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the archives of the guests. Nothing is written, with or without check mode.

    One request for the listing, one for the privileges, one for each guest, one for each shared
    storage, and one for each node of the other storages. Detection of reused VMIDs needs two more
    for each node.
    """
    query = _read_query(params, client.clock.time())
    storages = params.get("storages")
    if storages is not None:
        storages = [validate.storage(name, "storages") for name in storages]
    cluster = with_names(client, fetch_cluster_state(client), missing=True)
    chosen_storages = backup_storages(cluster, storages)
    targets = select(client, cluster, params, query.owner)
    guests = _present(targets, query.vmids - cluster.taken)
    reading = read_archives(client, cluster, chosen_storages)
    privileges = client.get("access", "permissions", attempted="Could not read the privileges")
    hidden = find_hidden(guests, chosen_storages, privileges or {})
    removals: Mapping[int, int] = {}
    if query.detects_reuse and reading.archives:
        online = [name for name, node in cluster.nodes.items() if node.online]
        removals = read_removals(client, online)
    left_out = side_by_side(lambda row: read_left_out(client, row), guests)
    omissions = dict(zip((row.vmid for row in guests), left_out, strict=True))
    result = _report(query, guests, reading, removals, hidden, cluster)
    for row in result.values["guests"]:
        row["left_out"] = omissions[row["vmid"]]
    return result


def _read_query(params: Mapping[str, Any], now: float) -> ArchiveQuery:
    owner = owner_of(params)
    detects = owner.tag is not None or bool(params.get("detect_reuse"))
    max_age = params.get("max_age")
    filters = (owner.tag, params.get("tags"), params.get("pool"))
    vmids = [one for one in named(params) if isinstance(one, int)]
    return ArchiveQuery(
        owner=owner,
        now=now,
        max_age=None if max_age is None else seconds(str(max_age), "max_age"),
        newest=bool(params.get("newest")),
        detects_reuse=detects,
        chooses=is_named(params) or any(filters),
        vmids=frozenset(vmids) if owner.tag is None else frozenset(),
    )


def _present(targets: Iterable[GuestTarget], removed: Collection[int]) -> list[VmRow]:
    """Return the rows of existing guests. Raises the first error of a named guest (pure).

    Without a tenant, a named VMID may belong to a removed guest.
    """
    rows: list[VmRow] = []
    for target in targets:
        if target.row is not None:
            rows.append(target.row)
        elif not (target.label.isdigit() and int(target.label) in removed):
            raise target.error or FleetError()
    return rows


def _report(
    query: ArchiveQuery,
    guests: Sequence[VmRow],
    reading: ArchiveReading,
    removals: Mapping[int, int],
    hidden: Sequence[dict[str, Any]],
    cluster: ClusterState,
) -> Result:
    """Return the result of the module (pure)."""
    owned = by_guest(reading.archives, guests, removals)
    prefix = query.owner.prefix
    rows = {row.vmid: row for row in guests}
    guests_by_archive = {id(one): rows[vmid] for vmid, own in owned.items() for one in own}
    described: list[dict[str, Any]] = []
    for one in _listed(query, reading.archives, owned, cluster):
        guest = guests_by_archive.get(id(one))
        described.append(describe_archive(one, guest, query.now, prefix))
    listed = [_describe_guest(rows[vmid], own, query) for vmid, own in owned.items()]
    missing = [*reading.missing, *hidden]
    values = {
        "archives": described,
        "guests": listed,
        "without_backup": [row for row in listed if not row["backed_up"]],
        "missing": missing,
        "complete": not missing,
        "checked": iso(query.now),
    }
    return Result(False, values, warnings=tuple(row["reason"] for row in missing))


def _listed(
    query: ArchiveQuery,
    archives: Iterable[Archive],
    owned: Mapping[int, Sequence[Archive]],
    cluster: ClusterState,
) -> list[Archive]:
    """Return the archives to list, the newest first (pure)."""
    if query.newest:
        found = [own[0] for own in owned.values() if own]
    elif query.chooses:
        found = [one for own in owned.values() for one in own]
        removed = query.vmids - cluster.taken
        found += [one for one in archives if one.vmid in removed]
    else:
        found = list(archives)
    return sorted(found, key=newest_first)


def _describe_guest(row: VmRow, own: Sequence[Archive], query: ArchiveQuery) -> dict[str, Any]:
    """Return a guest with the figures of its archives."""
    tenant, _why = tenant_of(row.tags, query.owner.prefix)
    newest = own[0] if own else None
    age = None if newest is None else max(0, int(query.now) - newest.time)
    is_recent = age is not None and (query.max_age is None or age <= query.max_age)
    return {
        "vmid": row.vmid,
        "type": row.type,
        "name": row.own_name,
        "node": row.node,
        "tenant": tenant,
        "tags": sorted(row.tags),
        "template": row.template,
        "archives": len(own),
        "size": sum(one.size for one in own),
        "newest": None if newest is None else newest.volume,
        "newest_time": None if newest is None else iso(newest.time),
        "age": age,
        "backed_up": is_recent,
    }
