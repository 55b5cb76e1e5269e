# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report on drift as samples (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...._foundation.core.errors import ValidationFailed
from ...._foundation.core.times import seconds
from ...drift.document import VERSION
from ...drift.model import STATUSES, UNKNOWN
from .samples import Samples

_UNLISTED = "unlisted"
_PARTS = ("sites", "nodes", "vms", "unlisted")


def read_report(given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a report of drift_info. Raises ValidationFailed for anything else."""
    if given is None:
        return None
    is_known = given.get("version") == VERSION
    has_parts = all(isinstance(given.get(part), list) for part in _PARTS)
    if is_known and has_parts:
        return given
    raise ValidationFailed(
        attempted="drift was refused",
        answer=f"it is not a report of version {VERSION}",
        next_step="Give it what pve.fleet.drift_info returns as drift",
        reason="drift",
        dispatched=False,
    )


def add_drift(samples: Samples, drift: Mapping[str, Any], sites: Sequence[str]) -> None:
    """Add the number of VMs by site, tenant and status, and whether all of them are known.

    `sites` are the names of all sites. A report whose site has no name is about the only site.
    """
    only = ""
    if len(sites) == 1:
        only = sites[0]
    incomplete = {row["site"] for row in drift["nodes"]}
    incomplete |= {row["site"] for row in drift["sites"] if row["reason"]}
    numbers: dict[tuple[str, str], dict[str, int]] = {}
    for row in drift["vms"]:
        _count(numbers, row, row["status"])
        if row["status"] == UNKNOWN:
            incomplete.add(row["site"])
    for row in drift["unlisted"]:
        _count(numbers, row, _UNLISTED)
    for (site, tenant), by_status in numbers.items():
        for status, number in by_status.items():
            labels = {"site": site or only, "tenant": tenant, "status": status}
            samples.put("proxmox_drift_vms", number, **labels)
    checked = seconds(str(drift.get("checked") or ""))
    for row in drift["sites"]:
        site = row["site"]
        label = {"site": site or only}
        samples.put("proxmox_drift_complete", site not in incomplete, **label)
        samples.put("proxmox_drift_timestamp_seconds", checked, **label)


def _count(
    numbers: dict[tuple[str, str], dict[str, int]], row: Mapping[str, Any], status: str
) -> None:
    """Count a VM. Each status of its tenant starts at 0, so that each one has a sample."""
    nothing = dict.fromkeys((*STATUSES, _UNLISTED), 0)
    of_tenant = numbers.setdefault((row["site"], row["tenant"]), nothing)
    of_tenant[status] += 1
