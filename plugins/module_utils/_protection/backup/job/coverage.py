# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guests that backup jobs cover, and the guests that no job covers (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...._foundation.cluster.state import VmRow
from .declared import Jobs, is_marked
from .table import BACKUP_JOB


def named_jobs(answer: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the jobs in an answer of PVE by ID, with the canonical values of their table."""
    return {str(row["id"]): BACKUP_JOB.values(row) for row in answer}


def guests_of(job: Mapping[str, Any], guests: Iterable[VmRow]) -> set[int]:
    """Return the VMIDs of the guests that a job backs up; a disabled job backs up none.

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
    """Return the VMIDs of the guests in each enabled job without the estate mark, by job ID."""
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
    """Return the names of the jobs that back up each guest, by VMID."""
    rows = list(guests)
    found: dict[int, list[str]] = {row.vmid: [] for row in rows}
    for name in sorted(jobs):
        for vmid in guests_of(jobs[name], rows):
            found[vmid].append(name)
    return found
