# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The backup jobs that an estate needs: their storages, and the privileges to write them (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._foundation.api.access.required import RequiredRequest, privileges_beside
from ..._foundation.core.formatting import first_of
from ..._guests.fleet.items import Estate, VmItem
from ..._guests.fleet.secrets import fleet_secrets
from ..access.needs.needs import PrivilegeCheck, Version

BackedUp = Mapping[str, Sequence[str]]
"""The guests of an estate with the option C(backup), by the storage of their job. Guests that the
estate removes from the jobs are under an empty text.
"""

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
    """Return the questions about the privileges to write these jobs, each with the guests that need
    it.
    """
    labels: dict[tuple[str, tuple[str, ...], bool], list[str]] = {}
    for storage, guests in backups.items():
        request = RequiredRequest("POST", ("cluster", "backup"), {"storage": storage})
        if not storage:
            request = RequiredRequest("DELETE", ("cluster", "backup", "-"), {})
        for path, names, any_of in privileges_beside(request, version, {}):
            labels.setdefault((path, tuple(names), any_of), []).extend(guests)
    return [
        PrivilegeCheck(
            *key, below=False, tasks=(f"the backup jobs of {first_of(guests, _MAX_LISTED)}",)
        )
        for key, guests in labels.items()
    ]
