# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The use of a month: sums over tenants and classes, sums over nodes, and missing times (pure)."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from ..._foundation.core import validate
from ..._foundation.core.quantities import GIB
from ..._foundation.core.times import iso
from ..report.model import DAY
from .document import DayUse, Interval, clipped, day_of, merged_lacks, union
from .model import BACKUP, SITE, Lack, Span

VERSION = 1
AMOUNTS = ("cores", "memory", "disk", "backup")
_DIGITS = Decimal("0.001")
_HOUR = 3600
_UNITS = {"cores": Decimal(1), "memory": Decimal(GIB), "disk": Decimal(GIB), "backup": Decimal(GIB)}

Sums = dict[str, int]
"""Amounts times seconds: cores, and bytes of memory, disks and backups."""


@dataclass(frozen=True)
class Class:
    """A class of guests: the guests with exactly this size, in cores and bytes of memory."""

    name: str
    cores: int
    memory: int


def read_month(text: str) -> Interval:
    """Return the first second of a month and of the next. Raises ValidationFailed."""
    found = re.fullmatch("(20[0-9]{2})-(0[1-9]|1[0-2])", text)
    if found is None:
        raise validate.refused("month", text, "is not a month", "Write it as 2026-11")
    year, month = map(int, found.groups())
    start = calendar.timegm((year, month, 1, 0, 0, 0))
    return start, start + calendar.monthrange(year, month)[1] * DAY


def class_of(span: Span, classes: Iterable[Class]) -> str:
    """Return the class whose size a guest has, an empty text without one.

    Backups have no class, and use that is not certain has none: its size is a difference.
    """
    subject = span.subject
    if subject.kind == BACKUP or not subject.certain:
        return ""
    size = (subject.cores, subject.memory)
    names = [one.name for one in classes if (one.cores, one.memory) == size]
    return "|".join(sorted(names))


def usage_of(
    sites: Mapping[str, Iterable[DayUse]], month: str, classes: Sequence[Class], now: float
) -> dict[str, Any]:
    """Return the use of a month as a document: C(docs/usage.schema.json).

    `sites` are the days of each site; a site without days is missing.
    """
    start, end = read_month(month)
    tenants: dict[tuple[str, str, str], Sums] = {}
    nodes: dict[tuple[str, str], Sums] = {}
    doubts: dict[tuple[str, str, str], Sums] = {}
    missing: list[dict[str, Any]] = []
    for site in sorted(sites):
        days = list(sites[site])
        for span in (span for day in days for span in day.spans):
            seconds = _length(clipped((span.start, span.end), start, end))
            key = (site, span.subject.tenant, class_of(span, classes))
            sums = tenants if span.subject.certain else doubts
            _add(sums, key, span, seconds)
            if span.subject.certain:
                _add(nodes, (site, span.subject.node), span, seconds)
        missing += [_described(site, lack) for lack in lacks_of(days, start, end)]
    rows = [
        {
            "site": key[0],
            "tenant": key[1],
            "class": key[2],
            **_row(tenants.get(key), doubts.get(key)),
        }
        for key in sorted(tenants.keys() | doubts.keys())
    ]
    return {
        "version": VERSION,
        "month": month,
        "start": iso(start),
        "end": iso(end),
        "closed": now >= end,
        "complete": not missing and now >= end,
        "missing": missing,
        "tenants": rows,
        "nodes": [
            {"site": key[0], "node": key[1], **_row(nodes[key], None)} for key in sorted(nodes)
        ],
        "total": _row(total_of(tenants.values()), total_of(doubts.values())),
    }


def total_of(parts: Iterable[Sums]) -> Sums:
    """Return the sum of parts."""
    total = dict.fromkeys(AMOUNTS, 0)
    for part in parts:
        for name, amount in part.items():
            total[name] += amount
    return total


def lacks_of(days: Sequence[DayUse], start: int, end: int) -> list[Lack]:
    """Return the missing times of a site: times that no two samples enclose, and missing parts."""
    covered = union(clipped(interval, start, end) for day in days for interval in day.covered)
    lacks: list[Lack] = []
    last = start
    for first, until in (*covered, (end, end)):
        if first > last:
            lacks.append(Lack(SITE, "", "no samples", last, first))
        last = max(last, until)
    parts = [lack for day in days for lack in day.missing if lack.part != SITE]
    return [*lacks, *merged_lacks(parts, start, end)]


def _add(sums: dict[Any, Sums], key: Any, span: Span, seconds: int) -> None:
    part = sums.setdefault(key, dict.fromkeys(AMOUNTS, 0))
    for name in AMOUNTS:
        part[name] += getattr(span.subject, name) * seconds


def _length(interval: Interval) -> int:
    return interval[1] - interval[0]


def _row(sums: Sums | None, doubts: Sums | None) -> dict[str, Any]:
    """Return hours for people, and the exact amounts times seconds for programs."""
    nothing = dict.fromkeys(AMOUNTS, 0)
    return {
        "hours": _hours(sums or nothing),
        "seconds": dict(sums or nothing),
        "uncertain": _hours(doubts or nothing),
    }


def _hours(sums: Sums) -> dict[str, str]:
    """Return cores times hours, and GiB times hours."""
    return {
        name: str(
            (Decimal(amount) / _UNITS[name] / _HOUR).quantize(_DIGITS, rounding=ROUND_HALF_UP)
        )
        for name, amount in sums.items()
    }


def _described(site: str, lack: Lack) -> dict[str, Any]:
    return {
        "site": site,
        "part": lack.part,
        "subject": lack.subject,
        "reason": lack.reason,
        "from": iso(lack.start),
        "to": iso(lack.end),
        "days": _days(lack),
    }


def _days(lack: Lack) -> list[str]:
    """Return the days of which nothing is known."""
    if lack.part != SITE:
        return []
    first = -(-lack.start // DAY) * DAY
    return [day_of(moment) for moment in range(first, lack.end - DAY + 1, DAY)]
