# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Selects the details of an earlier sync that are valid and need not be fetched again (pure).

No listing of PVE contains the digest of a configuration, and the log of tasks does not show every
change: changing the options of a VM with `PUT .../config` is not a task. So a detail is valid as
long as the listing shows no change of its VM, and never longer than its maximum age.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .details import NOT_THE_ANSWER
from .hosts import InventoryGuest

# Seconds by which an uptime may differ from the elapsed time; the listing itself lags 10 s.
UPTIME_SLACK = 60.0
# Seconds of uptime after which an agent that does not answer is no longer expected to start soon.
BOOT_TIME = 900.0
# The variables that show a change of a VM, apart from the uptime.
_CHANGE_VARIABLES = (
    "proxmox_node",
    "proxmox_status",
    "proxmox_name",
    "proxmox_tags",
    "proxmox_pool",
    "proxmox_template",
    "proxmox_lock",
    "proxmox_cpus",
    "proxmox_memory_bytes",
    "proxmox_disk_bytes",
)
# Failures that only a change of the VM can end, and failures that usually persist.
_FINAL = frozenset({"agent not configured"})
_EXPECTED = _FINAL | {"agent not running", "agent timeout", NOT_THE_ANSWER}


@dataclass(frozen=True)
class EarlierSync:
    """The guests and details of an earlier sync by key of the guest, and the elapsed seconds since
    then by site.
    """

    guests: Mapping[str, InventoryGuest]
    details: Mapping[str, Mapping[str, Any]]
    passed: Mapping[str, float]


def reusable(
    guests: Sequence[InventoryGuest],
    earlier: EarlierSync,
    kinds: Collection[str],
    max_age: float,
    now: float,
) -> dict[str, dict[str, Any]]:
    """Return the earlier details that need not be fetched again, by the key of their guest.

    `now` is a time in seconds, `max_age` is in seconds, and 0 sets no limit.
    """
    found: dict[str, dict[str, Any]] = {}
    for guest in guests:
        before = earlier.guests.get(guest.key)
        known = earlier.details.get(guest.key)
        if before is None or known is None:
            continue
        if has_changed(before, guest, earlier.passed[guest.site]):
            continue
        age = now - float(known.get("taken", 0.0))
        if age >= age_limit(guest, max_age):
            continue
        if not needs_request(known, guest, kinds, age):
            found[guest.key] = dict(known)
    return found


def age_limit(guest: InventoryGuest, max_age: float) -> float:
    """Return the age in seconds at which the details of this guest are fetched again.

    It is between half the maximum age and the maximum age, and different for each guest, so that
    details that were fetched together do not expire together.
    """
    if not max_age:
        return float("inf")
    share = 0.5 + zlib.crc32(guest.key.encode()) / 2**33
    return max_age * share


def has_changed(before: InventoryGuest, after: InventoryGuest, seconds: float) -> bool:
    """Return whether the listing shows that a VM changed, moved or restarted in these seconds."""
    if any(before.variables.get(name) != after.variables.get(name) for name in _CHANGE_VARIABLES):
        return True
    if not before.uptime and not after.uptime:
        return False
    if after.uptime < before.uptime:
        return True
    difference = after.uptime - before.uptime - seconds
    return abs(difference) > UPTIME_SLACK


def needs_request(
    details: Mapping[str, Any], guest: InventoryGuest, kinds: Collection[str], age: float
) -> bool:
    """Return whether another request could return data that was missing `age` seconds ago.

    The VM has not changed since. A booting guest may get its address at any moment; a guest that
    has run for longer is asked again after BOOT_TIME.
    """
    errors = dict(details.get("errors") or {})
    reason = errors.pop("addresses", "")
    if errors:
        return True
    if reason and reason not in _EXPECTED:
        return True
    if "addresses" not in kinds or reason in _FINAL:
        return False
    if guest.status != "running" or guest.template:
        return False
    if details.get("addresses") and not reason:
        return False
    was_booting = guest.uptime - age < BOOT_TIME
    return was_booting or age >= BOOT_TIME
