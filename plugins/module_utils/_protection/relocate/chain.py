# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which backup jobs have a guest after its move, and whether its chain of backups continues (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..._foundation.cluster.state import VmRow
from ..backup.job.coverage import guests_of, named_jobs
from .belongings import SiteObjects

Rows = Mapping[str, Mapping[str, Any]]
_SERVER = "pbs"
_PLACE = ("server", "datastore", "namespace")


def describe_backup(
    row: VmRow, vmid: int, here: SiteObjects, there: SiteObjects, storages: tuple[Rows, Rows]
) -> str | None:
    """Return the backup of a guest after its move, or None if it has none before and after it.

    `row` is the guest as it will be at the target, `vmid` its VMID at the source. `storages` are
    those of the source and of the target.
    """
    source, target = named_jobs(here.backups.values()), named_jobs(there.backups.values())
    before = [job for job in source.values() if guests_of(job, [replace(row, vmid=vmid)])]
    names = {name for name, job in source.items() if vmid in job["vms"]}
    after: dict[str, Mapping[str, Any]] = {}
    for name, job in sorted(target.items()):
        joins = bool(job["enabled"] and job["vms"]) and name in names
        if joins or guests_of(job, [row]):
            after[name] = job
    if not after:
        return "in no job" if before else None
    places = {_place_of(job, storages[0]) for job in before} - {None}
    continues = row.vmid == vmid and any(
        _place_of(job, storages[1]) in places for job in after.values()
    )
    chain = "the chain continues" if continues else "a new chain"
    return f"in job {', '.join(after)}, {chain}"


def _place_of(job: Mapping[str, Any], storages: Rows) -> tuple[str, ...] | None:
    """Return the place of a job on a backup server: the groups there are by type and VMID."""
    row = storages.get(str(job["storage"]), {})
    if row.get("type") != _SERVER:
        return None
    return tuple(str(row.get(key) or "") for key in _PLACE)
