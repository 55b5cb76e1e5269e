# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module drill_info: chooses guests, and plans the places of their copies."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...._foundation.api.layers.caching import CachingReader
from ...._foundation.cluster.find.names import STORAGE, require_known
from ...._foundation.cluster.find.owner import OwnerScope, owner_of
from ...._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state, with_names
from ...._foundation.cluster.tenant import tenant_of
from ...._foundation.core import validate
from ...._foundation.core.errors import Conflict, FleetError, NotFound
from ...._foundation.core.formatting import counted
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.result import Result
from ...._foundation.core.texts.plan_lines import with_lines
from ...._foundation.core.times import iso
from ...._guests.guest.registry import list_of
from ...._operation.tasks.read import TaskQuery, found_in, read_removals, read_tasks
from ...backup.archive import Archive, by_guest
from ...backup.read import backup_storages, read_archives
from ...backup.select import select
from ..choose import ChosenArchive, choose
from ..desired import read_desired
from ..guest import storages_by_disk
from ..read import with_config
from .desired import CopyOptions, read_age, read_copies, read_copy_options
from .find import FoundCopy, find_copies
from .isolate import find_obstacle, restore_of
from .plan import DrillRestore, PlannedCopy, choose_due, plan_rounds
from .record import FAILED, SKIPPED, read_record

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


@dataclass(frozen=True)
class _Drill:
    """The values that are the same for all guests of a drill."""

    run: str
    now: float
    owner: OwnerScope
    options: CopyOptions


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the plan of a drill. Nothing is written, with or without check mode."""
    options, copies = read_copy_options(params), read_copies(params)
    record = read_record(str(params.get("record") or ""))
    now = client.clock.time()
    reader = CachingReader.around(client)
    drill = _Drill(os.urandom(6).hex(), now, owner_of(params), options)
    cluster = with_names(reader, fetch_cluster_state(reader), missing=True)
    unproven_for, sample = read_age(params, "unproven_for"), params.get("sample")
    if sample is not None:
        sample = validate.number(sample, 1, 100000, "sample")
    named = [target.require_row() for target in select(reader, cluster, params, drill.owner)]
    rows = choose_due(named, record.proofs, now, unproven_for, sample)
    # The newest archive of a guest may be on a storage that cannot be read.
    reading = read_archives(reader, cluster, backup_storages(cluster, params.get("storages")))
    reading.require_complete(
        "No drill was planned", "Repair the storage, or name the others with storages"
    )
    found = _choose_archives(reader, cluster, drill, rows, reading.archives)
    tasks = [one for one in found if isinstance(one, DrillRestore)]
    _require_known_storages(cluster, options, tasks)
    refused = [one for one in found if isinstance(one, dict)]
    rounds, unplaced = plan_rounds(reader, cluster, tasks, copies)
    for task, error in unplaced:
        refused.append(_refused(task.chosen.row, error, SKIPPED, drill, task.chosen.archive))
    planned = [[_planned(one, drill) for one in copies_at_once] for copies_at_once in rounds]
    left = find_copies(reader, cluster)
    values = {
        "run": drill.run,
        "began": int(now),
        "rounds": planned,
        "refused": sorted(refused, key=lambda row: int(row["vmid"])),
        "copies": [
            {
                "vmid": one.actual.vmid,
                "name": one.actual.name,
                "node": one.actual.node,
                "run": one.notes.run,
                "began": iso(one.notes.began),
            }
            for one in left
        ],
        "report": with_lines(_lines(planned, refused), [*map(_left_line, left)]),
    }
    return Result(False, values)


def _require_known_storages(
    cluster: ClusterState, options: CopyOptions, tasks: Sequence[DrillRestore]
) -> None:
    """Raise NotFound for a former storage that is neither in the cluster nor in an archive."""
    known = {row.storage for row in cluster.storages}
    for one in tasks:
        known |= set(storages_by_disk(one.chosen.kind, one.chosen.config).values())
    require_known("storage_map", STORAGE, options.storage_map, known)


def _choose_archives(
    client: Client,
    cluster: ClusterState,
    drill: _Drill,
    rows: Sequence[VmRow],
    archives: Iterable[Archive],
) -> list[DrillRestore | dict[str, Any]]:
    """Return the restore or the refusal of each guest; one request for each guest."""
    online = [name for name, node in cluster.nodes.items() if node.online]
    removals = read_removals(client, online) if rows else {}
    owned = by_guest(archives, rows, removals)
    newest = max((one.time for one in archives), default=0)

    def choose_one(row: VmRow) -> DrillRestore | dict[str, Any]:
        archive: Archive | None = None
        try:
            named = {"vmid": row.vmid, "archive": "newest", "new_name": "copy", "keep": "none"}
            desired = read_desired({**named, "tenant_prefix": "tenant_"})
            archive = choose(desired, owned[row.vmid])
            chosen = with_config(client, desired, archive, row)
        except FleetError as error:
            if archive is None and 0 < newest < read_creation(client, row, online):
                return _refused(row, _too_new(row, newest), SKIPPED, drill, None)
            return _refused(row, error, FAILED, drill, archive)
        obstacle = find_obstacle(chosen.kind, chosen.config)
        if obstacle:
            return _refused(row, _not_isolated(chosen, obstacle), SKIPPED, drill, archive)
        owner_prefix = drill.owner.prefix
        restore = restore_of(drill.options, chosen, owner_prefix, drill.run, drill.now)
        return DrillRestore(chosen, restore)

    return side_by_side(choose_one, rows)


def read_creation(client: Client, row: VmRow, nodes: Sequence[str]) -> int:
    """Return the time of the last creation of a guest with this VMID, 0 if no task shows it."""
    types = frozenset(list_of(row.type).kind.creation_tasks)
    query = TaskQuery(limit=1, vmid=row.vmid, types=types)
    found = found_in(read_tasks(client, nodes, query), 1)
    return found[0].started if found else 0


def _too_new(row: VmRow, newest: int) -> NotFound:
    """Return the error for a guest that no backup can have included yet (pure)."""
    return NotFound(
        f"Guest {row.vmid} was not copied: it was created after the last backup, which is from "
        f"{iso(newest)}",
        "Run the drill again after the next backup",
        "no archive",
    )


def _not_isolated(chosen: ChosenArchive, obstacle: str) -> Conflict:
    """Return the error for a guest whose copy would use a resource of its node (pure)."""
    return Conflict(
        f"{chosen.kind.noun} {chosen.archive.vmid} was not copied: {obstacle}",
        "Restore it by hand, or leave it out of drills",
        "not isolated",
    )


def _planned(one: PlannedCopy, drill: _Drill) -> dict[str, Any]:
    """Return a planned copy as the module reports it (pure)."""
    chosen = one.copying.chosen
    return {
        **_guest_of(chosen.row, drill),
        "archive": chosen.archive.volume,
        "archive_time": iso(chosen.archive.time),
        "archive_age": max(0, int(drill.now) - chosen.archive.time),
        "left_out": chosen.unsaved,
        "copy_vmid": one.vmid,
        "copy_name": one.copying.restore.new_name,
        "node": one.node,
        "storages": list(one.storages),
    }


def _guest_of(row: VmRow | None, drill: _Drill) -> dict[str, Any]:
    if row is None:
        raise Conflict("No drill was planned: a guest was removed in between")
    tenant, _why = tenant_of(row.tags, drill.owner.prefix)
    return {"vmid": row.vmid, "type": row.type, "name": row.own_name, "tenant": tenant}


def _refused(
    row: VmRow | None, error: FleetError, outcome: str, drill: _Drill, archive: Archive | None
) -> dict[str, Any]:
    """Return a guest without a copy as the module reports it (pure)."""
    return {
        **_guest_of(row, drill),
        "outcome": outcome,
        "msg": error.message,
        "archive": archive.volume if archive is not None else None,
    }


def _left_line(one: FoundCopy) -> str:
    """Return the line about a copy that another drill has left, or still uses (pure)."""
    began = iso(one.notes.began)
    return (
        f"  {one.actual.label} is a copy of drill {one.notes.run}, which began {began}. A drill removes"
        " it when it is older than abandoned_after"
    )


def _lines(
    rounds: Sequence[Sequence[Mapping[str, Any]]], refused: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return the plan in words (pure)."""
    number = sum(len(one) for one in rounds)
    lines: list[str] = []
    for index, copies in enumerate(rounds, 1):
        for row in copies:
            left_out = ", ".join(row["left_out"])
            lines.append(
                f"+ {row['copy_name']}  round {index}, {row['archive']} on node {row['node']},"
                f" storages {', '.join(row['storages']) or 'none'}"
                + (f", without the data of {left_out}" if left_out else "")
            )
    for row in refused:
        lines.append(f"! {row['name']} ({row['vmid']})  {row['outcome']}: {row['msg']}")
    copies_in = f"{counted(number, 'guest')} to restore in {counted(len(rounds), 'round')}"
    counts = [copies_in] if number else []
    counts += [f"{len(refused)} without a copy"] if refused else []
    return [*lines, f"Plan: {', '.join(counts) or 'nothing to do'}"]
