# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which details of an earlier sync still hold, so that they need not be fetched again (pure).

No listing of PVE tells the digest of a configuration, and the log of tasks does not tell a change either: changing
the options of a VM with `PUT .../config` is no task. So a detail holds as long as the listing shows no change of its
VM, and never longer than its maximal age.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .details import NOT_THE_ANSWER
from .hosts import Guest

UPTIME_SLACK = 60.0  # seconds by which an uptime may differ from what has passed; the listing itself lags 10 s
BOOT_TIME = 900.0  # seconds after which an agent that does not answer is not expected to come up any moment
# What the listing says of a change, apart from the uptime.
_TELLING = (
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
# Failures that only a change of the VM can end, and those that mostly last.
_FINAL = frozenset({"agent not configured"})
_LASTING = frozenset({"agent not running", "agent timeout", NOT_THE_ANSWER})


def reusable(
    guests: Sequence[Guest],
    earlier: Mapping[str, Guest],
    details: Mapping[str, Mapping[str, Any]],
    kinds: Collection[str],
    max_age: float,
    passed: Mapping[str, float],
    now: float,
) -> dict[str, dict[str, Any]]:
    """Return those of the earlier details, by the key of their guest, that need not be fetched again.

    `earlier` are the guests as they were so many seconds ago as have `passed`, by their site; `now` is a time in
    seconds. `max_age` is in seconds, 0 without end.
    """
    found: dict[str, dict[str, Any]] = {}
    for guest in guests:
        before = earlier.get(guest.key)
        known = details.get(guest.key)
        if before is None or known is None or has_changed(before, guest, passed[guest.site]):
            continue
        age = now - float(known.get("taken", 0.0))
        if age < age_limit(guest, max_age) and not is_worth_asking(known, guest, kinds, age):
            found[guest.key] = dict(known)
    return found


def age_limit(guest: Guest, max_age: float) -> float:
    """Return the age in seconds at which the details of this guest are fetched again.

    It is between half the maximal age and the whole, another one for each guest, so that what was fetched at once does
    not grow old at once.
    """
    if not max_age:
        return float("inf")
    return max_age * (0.5 + zlib.crc32(guest.key.encode()) / 2**33)


def has_changed(before: Guest, after: Guest, seconds: float) -> bool:
    """Return whether the listing shows that a VM was changed, moved or restarted in the seconds between."""
    if any(before.variables.get(name) != after.variables.get(name) for name in _TELLING):
        return True
    if not before.uptime and not after.uptime:
        return False
    return after.uptime < before.uptime or abs(after.uptime - before.uptime - seconds) > UPTIME_SLACK


def is_worth_asking(details: Mapping[str, Any], guest: Guest, kinds: Collection[str], age: float) -> bool:
    """Return whether another look could bring what was lacking `age` seconds ago, though the VM has not changed.

    A guest that still boots may get its address any moment; one that has run for long is asked again after a while.
    """
    errors = dict(details.get("errors") or {})
    reason = errors.pop("addresses", "")
    if errors or (reason and reason not in _FINAL | _LASTING):
        return True
    if "addresses" not in kinds or reason in _FINAL or guest.status != "running" or guest.template:
        return False
    if not reason and details.get("addresses"):
        return False
    return guest.uptime - age < BOOT_TIME or age >= BOOT_TIME
