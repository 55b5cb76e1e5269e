# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How runs that create guests at the same time agree on which guests stay
(docs/decisions/0007-quotas-of-several-runs.md, docs/decisions/0010-places-of-several-runs.md).

Proxmox VE has no transactions. Each run creates its guest before it checks the rule, so the last
run sees all guests. If a rule is broken, the new guest with the highest VMID gives way: its run
removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..core.clock import Clock, poll
from ..core.errors import FleetError

# Seconds that a run waits until guests with higher VMIDs have given way to its guest. It is shorter
# than the time after which another run takes over an unfinished guest (QUIET in
# _guests/guest/live/creation.py).
PATIENCE = 5.0


@dataclass(frozen=True)
class RaceReading:
    """One reading of the cluster.

    `guests` are the guests that count, by VMID, or by site and VMID; `find_breach` returns the violated rule if these
    guests exist together with the new guest, or a false value. `is_finished` reads a guest and
    returns whether its run has finished it: such a guest stays, because the rule held when that run
    checked it.
    """

    guests: Mapping[Any, Any]
    find_breach: Callable[[Mapping[Any, Any]], Any]
    is_finished: Callable[[Any], bool]


class RaceRule(Protocol):
    """A rule for one new guest that it can break together with guests of other runs."""

    @property
    def vmid(self) -> Any:
        """The VMID of the new guest; if guests of several sites count, the pair of site and VMID."""

    @property
    def known(self) -> frozenset[Any]:
        """The guests that existed when this run began; they never give way."""

    def read(self) -> RaceReading:
        """Read the cluster. Raises FleetError."""

    def removed(self, breach: Any) -> FleetError:
        """Return the error of a guest that was removed because of this breach."""

    def not_removed(self, breach: Any, failure: FleetError) -> FleetError:
        """Return the error of a guest that could not be removed."""


def resolve_race(clock: Clock, rule: RaceRule, remove: Callable[[], None]) -> None:
    """Return once the rule holds although other runs created guests at the same time.

    Usually one reading is enough. If the new guest breaks the rule together with guests that
    existed before, are finished or have lower VMIDs, it gives way: `remove` is called, and the
    error of the rule raised. Otherwise this waits for the guests with higher VMIDs; if they stay,
    the new guest gives way too.
    """
    breach: Any = None
    for _remaining in poll(clock, PATIENCE):
        reading = rule.read()
        breach = reading.find_breach(reading.guests)
        if not breach:
            return
        by_staying_guests = _breach_by_staying_guests(rule, reading)
        if by_staying_guests:
            breach = by_staying_guests
            break
    try:
        remove()
    except FleetError as failure:
        raise rule.not_removed(breach, failure) from failure
    raise rule.removed(breach)


def _breach_by_staying_guests(rule: RaceRule, reading: RaceReading) -> Any:
    """Return the breach by the guests that do not give way to the new guest."""
    staying: dict[Any, Any] = {}
    others: dict[Any, Any] = {}
    for vmid, guest in reading.guests.items():
        is_lower = vmid < rule.vmid
        if is_lower or vmid in rule.known:
            staying[vmid] = guest
        elif vmid != rule.vmid:
            others[vmid] = guest
    breach = reading.find_breach(staying)
    if breach:
        return breach
    for vmid, guest in others.items():
        if reading.is_finished(vmid):
            staying[vmid] = guest
    return reading.find_breach(staying)
