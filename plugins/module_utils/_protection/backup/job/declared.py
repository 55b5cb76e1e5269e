# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backup jobs as the guests of an estate declare them, and the plan of these jobs (pure).

Guests with equal declarations share a job. A mark in its comment distinguishes a job of an estate
from all others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...._foundation.core import validate
from ...._foundation.core.errors import Conflict
from ...._foundation.resource.decide import compare, read_desired
from ...._foundation.resource.table import DesiredResource, Values
from .table import BACKUP_JOB

MARK = "[pve.fleet: backup]"
COMMENT = f"Guests of estates {MARK}"
# The option of a declaration for each option of a job.
OPTIONS: Mapping[str, str] = {
    "schedule": "schedule",
    "storage": "storage",
    "prune_backups": "keep",
    "mode": "mode",
    "compress": "compress",
    "notes_template": "notes_template",
    "bwlimit": "bwlimit",
    "repeat_missed": "repeat_missed",
}
_FIELDS = tuple(one for one in BACKUP_JOB.fields if one.option in OPTIONS)
Jobs = Mapping[str, Values]
"""Jobs by ID, each in the canonical values of its table."""


@dataclass(frozen=True)
class BackupDeclaration:
    """The declared backup of a guest. `values` has the canonical value of every option; it is empty
    for a guest that must not be in a job of an estate.
    """

    values: Values

    @property
    def job(self) -> str:
        """The ID of a new job of this declaration."""
        sent = {one.property: one.send(self.values[one.option]) for one in _FIELDS}
        text = json.dumps(sent, sort_keys=True)
        return f"fleet-{hashlib.sha256(text.encode()).hexdigest()[:10]}"

    @property
    def storage(self) -> str:
        return str(self.values["storage"])

    def as_options(self) -> dict[str, Any]:
        """Return the options as an estate declares them, without defaults."""
        found: dict[str, Any] = {}
        for one in _FIELDS:
            value = self.values.get(one.option, one.read(None))
            if value == one.read(None):
                continue
            formatted = one.show(value)
            if isinstance(formatted, Mapping):
                formatted = {key: part for key, part in formatted.items() if part is not None}
            found[OPTIONS[one.option]] = formatted
        return found


NO_JOB = BackupDeclaration({})


@dataclass(frozen=True)
class DeclaredGuest:
    """A guest with its declaration."""

    vmid: int
    declaration: BackupDeclaration


def read_declaration(options: Mapping[str, Any]) -> BackupDeclaration:
    """Return the declaration; an empty schedule means no job. Raises ValidationFailed."""
    if options.get("schedule") == "":
        return NO_JOB
    for option in ("schedule", "storage"):
        if not options.get(option):
            raise validate.refused(
                f"backup.{option}",
                options.get(option),
                "is required for a backup job",
                f"Set backup.{option}, or an empty backup.schedule for no job",
            )
    validate.storage(options["storage"])
    named = {option: options.get(name) for option, name in OPTIONS.items()}
    given = read_desired(BACKUP_JOB, {"name": "fleet", **named}).values
    return BackupDeclaration({one.option: given.get(one.option, one.read(None)) for one in _FIELDS})


def declaration_of(job: Values) -> BackupDeclaration:
    """Return the declaration that would result in this job."""
    return BackupDeclaration({one.option: job[one.option] for one in _FIELDS})


def marked(jobs: Jobs) -> dict[str, Values]:
    """Return the jobs of estates that have a list of guests."""
    return {name: job for name, job in jobs.items() if is_marked(job) and job["vms"]}


def is_marked(job: Values) -> bool:
    """Return whether a job belongs to an estate."""
    return MARK in str(job["comment"])


def plan_jobs(guests: Sequence[DeclaredGuest], jobs: Jobs) -> list[DesiredResource]:
    """Return the desired state of each job that differs.

    Jobs that gain guests come first, so a guest that changes jobs is never without one. Guests that
    are not in `guests` stay in their jobs. Raises Conflict.
    """
    ours = marked(jobs)
    wanted = _wanted(guests, ours, jobs)
    known = {guest.vmid for guest in guests}
    desired: list[tuple[int, DesiredResource]] = []
    for name in sorted({*ours, *wanted}):
        before = frozenset(ours[name]["vms"]) if name in ours else frozenset[int]()
        declaration, members = wanted.get(name, (NO_JOB, frozenset[int]()))
        after = (before - known) | members
        job = _desired(name, declaration, after)
        if compare(BACKUP_JOB, job, ours.get(name)):
            desired.append((_turn(before, after), job))
    return [job for _turn_of_it, job in sorted(desired, key=lambda one: one[0])]


def _turn(before: frozenset[int], after: frozenset[int]) -> int:
    if not after:
        return 2
    return 0 if after - before else 1


def _desired(name: str, declaration: BackupDeclaration, vms: frozenset[int]) -> DesiredResource:
    """Return the desired job. A job that no guest of the run declares keeps its settings."""
    if not vms:
        return DesiredResource({"name": name}, present=False)
    values: dict[str, Any] = {"all": False, "vms": vms, "pool": "", "exclude": frozenset()}
    if declaration != NO_JOB:
        values.update({**declaration.values, "enabled": True, "node": "", "comment": COMMENT})
    return DesiredResource({"name": name}, values=values)


def _wanted(
    guests: Iterable[DeclaredGuest], ours: Jobs, jobs: Jobs
) -> dict[str, tuple[BackupDeclaration, frozenset[int]]]:
    """Return the declaration and the guests of each declared job, by job ID. Raises Conflict."""
    found: dict[str, tuple[BackupDeclaration, frozenset[int]]] = {}
    for guest in guests:
        if guest.declaration == NO_JOB:
            continue
        name = _name_of(guest.declaration, ours, jobs)
        known, others = found.get(name, (guest.declaration, frozenset[int]()))
        if known != guest.declaration:
            raise _not_planned(f"two declarations lead to backup job '{name}'", "Delete this job")
        found[name] = (guest.declaration, others | {guest.vmid})
    return found


def _name_of(declaration: BackupDeclaration, ours: Jobs, jobs: Jobs) -> str:
    """Return the ID of the job that has the settings of a declaration, or a new ID.

    Raises Conflict if a job without the mark, or without a list of guests, has the new ID.
    """
    for name in sorted(ours):
        if declaration_of(ours[name]) == declaration:
            return name
    name = declaration.job
    if name in jobs and name not in ours:
        raise _not_planned(
            f"backup job '{name}' has no mark of estates, or another choice of guests",
            f"Add {MARK} to its comment and a list of guests, or delete it",
        )
    return name


def _not_planned(answer: str, next_step: str) -> Conflict:
    return Conflict(
        f"The backup jobs of the estate were not planned: {answer}", next_step, "changed job"
    )


def difference(guest: DeclaredGuest, jobs: Jobs) -> tuple[Any, Any] | None:
    """Return the declared and the actual backup of a guest as options, or None if they are equal.

    The actual backup is a list if several jobs of estates contain the guest.
    """
    actual = declared_in(guest.vmid, jobs)
    wanted = [] if guest.declaration == NO_JOB else [guest.declaration.as_options()]
    return None if actual == wanted else (_one(wanted), _one(actual))


def declared_in(vmid: int, jobs: Jobs) -> list[dict[str, Any]]:
    """Return the options of each job of an estate that contains the guest, with any other settings
    of the job that can prevent its backup.
    """
    ours = marked(jobs)
    return [_describe(ours[name]) for name in sorted(ours) if vmid in ours[name]["vms"]]


def _describe(job: Values) -> dict[str, Any]:
    found = declaration_of(job).as_options()
    if not job["enabled"]:
        found["enabled"] = False
    if job["node"]:
        found["node"] = job["node"]
    if job["exclude"]:
        found["exclude"] = sorted(job["exclude"])
    return found


def is_declarable(options: Mapping[str, Any]) -> bool:
    """Return whether an estate can declare a job that has these options."""
    return set(options) <= set(OPTIONS.values())


def _one(declared: Sequence[Any]) -> Any:
    if len(declared) == 1:
        return declared[0]
    return list(declared) or None
