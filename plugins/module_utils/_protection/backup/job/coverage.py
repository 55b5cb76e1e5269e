# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guests that backup jobs cover, the guests that no job covers, and the work of module
backup_job_info.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.drill.copies import without_copies
from ...._foundation.cluster.find.owner import owner_of
from ...._foundation.cluster.state import VmRow, fetch_cluster_state
from ...._foundation.cluster.tenant import tenant_of
from ...._foundation.core import validate
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.result import Result
from ..read import read_left_out
from .declared import Jobs, is_marked
from .table import BACKUP_JOB

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def named_jobs(answer: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the jobs in an answer of PVE by ID, with the canonical values of their table (pure)."""
    return {str(row["id"]): BACKUP_JOB.values(row) for row in answer}


def guests_of(job: Mapping[str, Any], guests: Iterable[VmRow]) -> set[int]:
    """Return the VMIDs of the guests that a job backs up; a disabled job backs up none
    (pure).

    `job` has the canonical values of its table. A job with a node covers only the guests on that
    node (pve-manager: VZDump.pm, get_included_guests).
    """
    if not job["enabled"]:
        return set()
    found: set[int] = set()
    for row in guests:
        runs_there = job["node"] in ("", row.node)
        if runs_there and _is_chosen(job, row) and row.vmid not in job["exclude"]:
            found.add(row.vmid)
    return found


def _is_chosen(job: Mapping[str, Any], row: VmRow) -> bool:
    if job["vms"]:
        return row.vmid in job["vms"]
    if job["pool"]:
        return row.pool == job["pool"]
    return bool(job["all"])


def other_jobs(jobs: Jobs, guests: Iterable[VmRow]) -> dict[str, list[int]]:
    """Return the VMIDs of the guests in each enabled job without the estate mark, by job ID (pure)."""
    rows = list(guests)
    found: dict[str, list[int]] = {}
    for name in sorted(jobs):
        vmids = guests_of(jobs[name], rows)
        if vmids and not is_marked(jobs[name]):
            found[name] = sorted(vmids)
    return found


def jobs_by_guest(
    jobs: Mapping[str, Mapping[str, Any]], guests: Iterable[VmRow]
) -> dict[int, list[str]]:
    """Return the names of the jobs that back up each guest, by VMID (pure)."""
    rows = list(guests)
    found: dict[int, list[str]] = {row.vmid: [] for row in rows}
    for name in sorted(jobs):
        for vmid in guests_of(jobs[name], rows):
            found[vmid].append(name)
    return found


def run_info(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return all jobs or the named one, and for each guest all the jobs that cover it.

    Two requests, and one for each guest in a job. Nothing is written, with or without check mode.
    """
    name = params.get("name")
    if name is not None:
        name = validate.config_id(name, "name")
    owner = owner_of(params)
    answer = client.get("cluster", "backup", attempted="Could not list the backup jobs") or []
    jobs = named_jobs(answer)
    described = [
        BACKUP_JOB.show({"name": key}, jobs[key]) for key in sorted(jobs) if name in (None, key)
    ]
    cluster = without_copies(fetch_cluster_state(client))
    rows = [cluster.vms[vmid] for vmid in sorted(cluster.vms) if owner.owns(cluster.vms[vmid])]
    jobs_of = jobs_by_guest(jobs, rows)
    covered = [row for row in rows if jobs_of[row.vmid]]
    read = side_by_side(lambda row: read_left_out(client, row), covered)
    left_out = dict(zip((row.vmid for row in covered), read, strict=True))
    guests: list[dict[str, Any]] = []
    for row in rows:
        tenant, _why = tenant_of(row.tags, owner.prefix)
        guests.append(
            {
                "vmid": row.vmid,
                "type": row.type,
                "name": row.own_name,
                "node": row.node,
                "tenant": tenant,
                "template": row.template,
                "jobs": jobs_of[row.vmid],
                "left_out": left_out.get(row.vmid),
            }
        )
    values = {
        "backup_jobs": described,
        "guests": guests,
        "uncovered": [guest for guest in guests if not guest["jobs"]],
    }
    return Result(False, values)
