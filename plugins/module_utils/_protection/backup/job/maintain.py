# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Maintains the backup jobs of an estate: plans and writes them, and reads them again until every
guest is in its job.

PVE has no digest for jobs, and a request writes the whole list of guests, so two runs can undo each
other's changes. Each run therefore reads the jobs again after its last write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.errors import Conflict, FleetError, NotFound, PermissionDenied, with_done
from ...._foundation.core.formatting import counted
from ...._foundation.resource.decide import after, build_plan, compare
from ...._foundation.resource.engine import FailureVerdict, execute, require_permitted
from ...._foundation.resource.plan import Plan, Step
from ...._foundation.resource.run import TableResource
from ...._foundation.resource.table import DesiredResource, Values
from .coverage import named_jobs
from .declared import DeclaredGuest, Jobs, is_marked, plan_jobs
from .precheck import require_references
from .table import BACKUP_JOB

_PASSES = 5
# In seconds: time for another run to write the jobs that it has read, with one request each.
_SETTLES = 1.0
_ATTEMPTED = "The backup jobs of the estate were not changed"
_NEXT_STEP = (
    "Run this with the login of an administrator, or set backup_jobs=false, which leaves the jobs"
    " to a run with such a login"
)


@dataclass(frozen=True)
class JobsOutcome:
    """The jobs before and after a run for the guests in `vmids`.

    `steps` are the planned or finished steps. `error` is the reason why the jobs are not as
    declared. `others` are jobs outside estates that contain guests of the run: VMIDs by job ID.
    """

    before: Jobs
    after: Jobs
    vmids: frozenset[int]
    steps: tuple[str, ...] = ()
    error: FleetError | None = None
    others: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Whether a job was or would be changed, or may have been changed before an error."""
        return bool(self.steps) or (self.error is not None and self.error.came_after_changes)

    def names(self) -> list[str]:
        """Return the IDs of the jobs of estates that changed or contain one of the guests."""
        found: list[str] = []
        for name in sorted({*self.before, *self.after}):
            old, new = self.before.get(name), self.after.get(name)
            has_guest = new is not None and not self.vmids.isdisjoint(new["vms"])
            if old != new or (new is not None and has_guest and is_marked(new)):
                found.append(name)
        return found


class _JobSteps(TableResource):
    """A job whose plan is executed. A failed step ends it; the next pass plans all jobs again."""

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        return FailureVerdict.FAILED


def preview_jobs(
    client: Api, guests: Sequence[DeclaredGuest], cluster: ClusterState
) -> JobsOutcome:
    """Return the jobs as a run would leave them.

    One request, and a second one if a job differs. Raises every refusal before the first write.
    """
    try:
        jobs = read_jobs(client)
    except PermissionDenied as error:
        raise error.on(attempted=_ATTEMPTED, next_step=_NEXT_STEP) from error
    planned = plan_jobs(guests, jobs)
    later = dict(jobs)
    plans: list[tuple[Plan, Any]] = []
    for job in planned:
        name = job.keys["name"]
        plans.append((_plan(job, jobs.get(name)), jobs.get(name) or {}))
        if job.present:
            later[name] = after(BACKUP_JOB, job, jobs.get(name))
            if "storage" in job.values:
                require_references({"storage": job.values["storage"]}, cluster, _ATTEMPTED)
        else:
            del later[name]
    require_permitted(client, plans, _NEXT_STEP, BACKUP_JOB.option_names)
    for plan, _present in plans:
        client.plan_book.keep(plan)
    steps = [step for plan, _present in plans for step in plan.summaries]
    return JobsOutcome(jobs, later, _vmids(guests), tuple(steps))


def maintain_jobs(client: Api, guests: Sequence[DeclaredGuest]) -> JobsOutcome:
    """Write the jobs until every guest is in its job, and return them.

    If that fails, the outcome contains the error.
    """
    before: Jobs = {}
    jobs: Jobs = {}
    steps: list[str] = []
    try:
        before = jobs = read_jobs(client)
        for _number in range(_PASSES):
            planned = plan_jobs(guests, jobs)
            if not planned:
                return JobsOutcome(before, jobs, _vmids(guests), tuple(steps))
            _write(client, planned, jobs, steps)
            client.clock.sleep(_SETTLES)
            jobs = read_jobs(client)
        raise Conflict(
            "The backup jobs of the estate do not have all of its guests: other runs changed them "
            f"after each of {_PASSES} writes",
            "Run this again when the others have ended",
            "changed since",
        )
    except FleetError as error:
        failure = with_done(error, steps)
        return JobsOutcome(before, jobs, _vmids(guests), tuple(steps), failure)


def _vmids(guests: Sequence[DeclaredGuest]) -> frozenset[int]:
    return frozenset(guest.vmid for guest in guests)


def read_jobs(client: Api) -> Jobs:
    """Return the jobs without the times of their next runs. Raises FleetError."""
    rows = client.get("cluster", "backup", attempted="Could not list the backup jobs")
    jobs = named_jobs(rows or [])
    return {
        name: {option: value for option, value in job.items() if option in BACKUP_JOB.options}
        for name, job in jobs.items()
    }


def _plan(job: DesiredResource, actual: Values | None) -> Any:
    return build_plan(BACKUP_JOB, job, actual, compare(BACKUP_JOB, job, actual))


def _write(client: Api, planned: Sequence[DesiredResource], jobs: Jobs, steps: list[str]) -> None:
    """Write the jobs, and add the finished steps to `steps`. Raises FleetError.

    If another run changed a job first, this job and the remaining jobs wait for the next pass.
    """
    for job in planned:
        actual = jobs.get(job.keys["name"])
        plan = _plan(job, actual)
        one = _JobSteps(BACKUP_JOB, job, client, plan, dict(actual) if actual else None)
        client.plan_book.agree(plan)
        try:
            steps += execute(one, plan).done
        except (Conflict, NotFound):
            return


def rows_of(outcome: JobsOutcome) -> list[dict[str, Any]]:
    """Return a row for each job that changed or has guests of the run (pure)."""
    rows: list[dict[str, Any]] = []
    for name in outcome.names():
        old, new = outcome.before.get(name), outcome.after.get(name)
        job: Mapping[str, Any] = new or old or {}
        had = frozenset(old["vms"]) if old else frozenset[int]()
        has = frozenset(new["vms"]) if new else frozenset[int]()
        rows.append(
            {
                "name": name,
                "action": _action(old, new),
                "added": sorted(has - had),
                "removed": sorted(had - has),
                "vms": sorted(has),
                "schedule": job["schedule"],
                "storage": job["storage"],
            }
        )
    return rows


def _action(old: Values | None, new: Values | None) -> str:
    if old is None:
        return "created"
    if new is None:
        return "deleted"
    return "unchanged" if old == new else "changed"


def diffs_of(outcome: JobsOutcome) -> list[dict[str, Any]]:
    """Return the diff of each job that changed (pure)."""
    diffs: list[dict[str, Any]] = []
    for name in outcome.names():
        old, new = outcome.before.get(name), outcome.after.get(name)
        if old != new:
            header = BACKUP_JOB.label({"name": name})
            diffs.append(
                {
                    "before_header": header,
                    "after_header": header,
                    "before": _options_of(name, old),
                    "after": _options_of(name, new),
                }
            )
    return diffs


def _options_of(name: str, job: Values | None) -> dict[str, Any]:
    """Return the options of a job."""
    if job is None:
        return {}
    options = BACKUP_JOB.show({"name": name}, job)
    return {option: value for option, value in options.items() if option in BACKUP_JOB.options}


def lines_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each job that changed (pure)."""
    lines: list[str] = []
    for row in rows:
        if row["action"] != "unchanged":
            guests = counted(len(row["vms"]), "guest")
            place = f"{row['schedule']} to {row['storage']}"
            sign = {"created": "+", "deleted": "-"}.get(row["action"], "~")
            lines.append(f"{sign} backup job {row['name']} ({place}): {guests}")
    return lines
