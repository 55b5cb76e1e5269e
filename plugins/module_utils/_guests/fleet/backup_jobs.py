# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The backup jobs of the guests of a list: planned with the guests, and written after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._foundation.core.formatting import counted
from ..._foundation.core.result import Result
from ..._foundation.core.texts.plan_lines import with_lines
from ..._protection.backup.job.coverage import other_jobs
from ..._protection.backup.job.declared import NO_JOB, DeclaredGuest
from ..._protection.backup.job.maintain import (
    JobsOutcome,
    diffs_of,
    lines_of,
    maintain_jobs,
    preview_jobs,
    rows_of,
)
from .execute import VmOutcome
from .plan import PlannedGuest

if TYPE_CHECKING:
    from ..._foundation.api.client import Client
    from ..._foundation.cluster.state import ClusterState


def planned_jobs(
    params: Mapping[str, Any], client: Client, plans: Sequence[PlannedGuest], cluster: ClusterState
) -> JobsOutcome | None:
    """Return a preview of the jobs.

    None if no guest of the list has the option C(backup), or if C(backup_jobs) is false. Raises
    every refusal before the first write.
    """
    if params.get("backup_jobs") is False:
        return None
    guests = _declared(plans, _planned_vmid)
    if not guests:
        return None
    outcome = preview_jobs(client, guests, cluster)
    listed = [planned.row or planned.found for planned in plans]
    rows = [row for row in listed if row is not None and row.vmid in outcome.vmids]
    return replace(outcome, others=other_jobs(outcome.before, rows))


def maintained_jobs(
    client: Client, outcomes: Sequence[VmOutcome], planned: JobsOutcome | None
) -> JobsOutcome | None:
    """Write the jobs that differ after the work on the guests, and return the outcome."""
    if planned is None:
        return None
    vmids = {id(one.planned): _vmid_of(one) for one in outcomes}
    guests = _declared([one.planned for one in outcomes], lambda one: vmids[id(one)])
    is_proven = not planned.steps and planned.vmids == {guest.vmid for guest in guests}
    if is_proven:
        return planned
    return replace(maintain_jobs(client, guests), others=planned.others)


def _declared(
    plans: Iterable[PlannedGuest], vmid_of: Callable[[PlannedGuest], int | None]
) -> list[DeclaredGuest]:
    """Return the guests with the option C(backup) that exist or will exist (pure).

    PVE itself deletes a removed guest from the jobs. A template is in no job.
    """
    found = [declared_guest(planned, vmid_of(planned)) for planned in plans]
    return [guest for guest in found if guest is not None]


def declared_guest(planned: PlannedGuest, vmid: int | None) -> DeclaredGuest | None:
    """Return a guest with its declaration (pure).

    None without a declaration or a VMID, and for a guest that is removed.
    """
    declaration = planned.item.backup
    if declaration is None or vmid is None or planned.is_removal:
        return None
    return DeclaredGuest(vmid, NO_JOB if _is_template(planned) else declaration)


def _is_template(planned: PlannedGuest) -> bool:
    if planned.item.desired.guest.state == "template":
        return True
    return planned.actual is not None and planned.actual.template


def _planned_vmid(planned: PlannedGuest) -> int | None:
    if planned.found is not None:
        return planned.found.vmid
    return planned.vm_plan.place[0] if planned.vm_plan and planned.creates else None


def _vmid_of(outcome: VmOutcome) -> int | None:
    """Return the VMID of a guest, None if it does not exist (pure)."""
    planned = outcome.planned
    if outcome.result is None:
        return None if planned.found is None else planned.found.vmid
    row: Any = outcome.result.values[planned.item.kind.flow.key] or {}
    vmid = row.get("vmid")
    return None if vmid is None else int(vmid)


def with_jobs(result: Result, found: Sequence[tuple[str, JobsOutcome]]) -> Result:
    """Return the result of the guests, with the jobs of each site added (pure)."""
    rows: list[dict[str, Any]] = []
    diffs: list[Any] = list(result.diff) if isinstance(result.diff, list) else []
    others: list[dict[str, Any]] = []
    lines: list[str] = []
    failure = result.failure
    for site, outcome in found:
        of_site, place = rows_of(outcome), {"site": site} if site else {}
        rows += [{**row, **place} for row in of_site]
        for name, vmids in outcome.others.items():
            others.append({"name": name, "vms": list(vmids), **place})
            guests = counted(len(vmids), "guest")
            lines.append(f"  backup job {name} of no estate has {guests} of this run too")
        diffs += diffs_of(outcome)
        lines += lines_of(of_site)
        if outcome.error is not None:
            lines.append(f"! {outcome.error.message}")
            failure = failure or outcome.error
    jobs = {"backup_jobs": rows, "other_backup_jobs": others}
    values = {**result.values, **jobs, "report": with_lines(result.values["report"], lines)}
    changed = result.changed or any(outcome.changed for _site, outcome in found)
    return replace(
        result, changed=changed, values=values, diff=diffs or result.diff, failure=failure
    )
