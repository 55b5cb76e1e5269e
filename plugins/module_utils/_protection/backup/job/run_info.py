# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module backup_job_info: the jobs, and the guests that they cover."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.drill.copies import without_copies
from ...._foundation.cluster.find.owner import owner_of
from ...._foundation.cluster.state import fetch_cluster_state
from ...._foundation.cluster.tenant import tenant_of
from ...._foundation.core import validate
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.result import Result
from ..read import read_left_out
from ..run_info import KINDS
from .coverage import jobs_by_guest, named_jobs
from .table import BACKUP_JOB

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


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
    cluster = without_copies(fetch_cluster_state(client, KINDS))
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
