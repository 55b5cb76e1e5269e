# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The backup jobs that an estate needs: their storages, and the privileges to write them (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..._foundation.core.formatting import first_of
from ..._guests.fleet.items import Estate, VmItem
from ..._guests.fleet.secrets import fleet_secrets
from ..access.needs.needs import PrivilegeCheck, TaskObjects, Version, questions

BackedUp = Mapping[str, Sequence[str]]
"""The guests of an estate with the option C(backup), by the storage of their job. Guests that the
estate removes from the jobs are under an empty text.
"""

_TASK = "backup_job"
_CONTENT = "backup"
_MAX_LISTED = 5
_WITHOUT_JOBS = ("absent", "template")


def estate_secrets(arguments: Mapping[str, Any]) -> set[str]:
    """Return the secrets in the estate, before anything is checked."""
    estate = arguments.get("estate")
    return fleet_secrets(estate) if isinstance(estate, Mapping) else set()


def backups_of(estate: Estate) -> BackedUp:
    """Return the guests of an estate with the option C(backup), set for the guest or inherited.

    Empty if the estate leaves the jobs to another run.
    """
    found: dict[str, list[str]] = {}
    if estate.params.get("backup_jobs") is False:
        return found
    for item in estate.items:
        if _is_in_jobs(item):
            found.setdefault(_storage_of(item), []).append(item.label)
    return found


def _is_in_jobs(item: VmItem) -> bool:
    return item.backup is not None and item.desired.guest.state not in _WITHOUT_JOBS


def _storage_of(item: VmItem) -> str:
    if item.backup is None:
        return ""
    return str(item.backup.values.get("storage", ""))


def job_storages(backups: BackedUp) -> list[dict[str, Any]]:
    """Return the storages of the jobs as items of O(storages)."""
    return [{"name": name, "content": _CONTENT} for name in sorted(backups) if name]


def job_questions(backups: BackedUp, version: Version) -> list[PrivilegeCheck]:
    """Return the questions of module backup_job for these jobs, each with the guests that need it.

    Every write of a job checks the privilege on its storage (pve-manager: API2/Backup.pm,
    assert_param_permission_update).
    """
    if not backups:
        return []
    everyone = [label for labels in backups.values() for label in labels]
    storages = tuple(name for name in sorted(backups) if name)
    found: list[PrivilegeCheck] = []
    for question in questions([_TASK], TaskObjects(storages=storages), version):
        above, _slash, name = question.path.rpartition("/")
        labels = backups.get(name, ()) if above == "/storage" else everyone
        if labels:
            listed = first_of(labels, _MAX_LISTED)
            found.append(replace(question, tasks=(f"the backup jobs of {listed}",)))
    return found
