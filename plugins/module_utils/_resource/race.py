# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How runs that create guests at the same time agree on which guests stay
(docs/decisions/0007-quotas-of-several-runs.md, docs/decisions/0010-places-of-several-runs.md).

Proxmox VE has no transactions. Each run creates its guest first and looks then, so the last of them
sees all. Where a rule is broken, the new guest with the highest number gives way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .._core.clock import Clock
from .._core.errors import FleetError
from .._core.poll import poll

# Seconds for which a guest waits until those with higher numbers have given way to it. Fewer than
# those after which another run takes an unfinished guest over (QUIET in _vm/live/making.py).
PATIENCE = 5.0


@dataclass(frozen=True)
class Look:
    """One reading of the cluster.

    `guests` are those that count, by number; `judge` returns what is wrong where these guests are
    there beside the new one, or a false value. `is_finished` reads a guest and returns whether the
    run that made it is done with it: it then stays, because the rule held when that run looked.
    """

    guests: Mapping[int, Any]
    judge: Callable[[Mapping[int, Any]], Any]
    is_finished: Callable[[int], bool]


class Rule(Protocol):
    """What holds for one new guest, and what guests of other runs can break together with it."""

    @property
    def number(self) -> int:
        """The number of the new guest."""

    @property
    def known(self) -> frozenset[int]:
        """The guests that were there when this run began; they never give way."""

    def look(self) -> Look:
        """Read the cluster. Raises FleetError."""

    def removed(self, breach: Any) -> FleetError:
        """Return the error of a guest that was removed because of what `judge` returned."""

    def left(self, breach: Any, failure: FleetError) -> FleetError:
        """Return the error of a guest that could not be removed."""


def resolve_race(clock: Clock, rule: Rule, remove: Callable[[], None]) -> None:
    """Return when the rule holds although others created guests at the same time.

    One look, mostly. Where it is broken by guests that were there before, are finished or have
    lower numbers, the new guest gives way: `remove` is called, and the error of the rule raised.
    Else those with higher numbers are waited for, and this one gives way too when they stay.
    """
    breach: Any = None
    for _left in poll(clock, PATIENCE):
        look = rule.look()
        breach = look.judge(look.guests)
        if not breach:
            return
        by_those_that_stay = _breach_by_those_that_stay(rule, look)
        if by_those_that_stay:
            breach = by_those_that_stay
            break
    try:
        remove()
    except FleetError as failure:
        raise rule.left(breach, failure) from failure
    raise rule.removed(breach)


def _breach_by_those_that_stay(rule: Rule, look: Look) -> Any:
    """Return what is wrong because of the guests that do not give way to the new one."""
    staying: dict[int, Any] = {}
    others: dict[int, Any] = {}
    for number, guest in look.guests.items():
        is_lower = number < rule.number
        if is_lower or number in rule.known:
            staying[number] = guest
        elif number != rule.number:
            others[number] = guest
    breach = look.judge(staying)
    if breach:
        return breach
    for number, guest in others.items():
        if look.is_finished(number):
            staying[number] = guest
    return look.judge(staying)
