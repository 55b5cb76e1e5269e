# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures and times as the page shows them (pure). A missing figure is shown as `unknown`."""

from __future__ import annotations

import re

from ...module_utils._foundation.core.quantities import readable_size
from ...module_utils._foundation.core.times import seconds

UNKNOWN = "unknown"
_SPACE = "\u00a0"
_MINUS = "\u2212"
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_STEPS = ((86400, "day"), (3600, "hour"), (60, "minute"))
_TIME = re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)T(?P<clock>\d\d:\d\d)")


def size(value: int | None) -> str:
    """Return bytes in the largest unit that fits, such as C(12.5 GiB)."""
    if value is None:
        return UNKNOWN
    return readable_size(value).replace(" ", _SPACE).replace("-", _MINUS)


def count(value: int | None) -> str:
    """Return a number with groups of three digits."""
    if value is None:
        return UNKNOWN
    return f"{value:,}".replace("-", _MINUS)


def counted(value: int | None, noun: str) -> str:
    """Return a number with its noun: C(1 node), C(2 nodes)."""
    number = count(value)
    if value == 1:
        return f"{number}{_SPACE}{noun}"
    return f"{number}{_SPACE}{noun}s"


def change(value: int | None) -> str:
    """Return a difference with its sign, empty for none."""
    if not value:
        return ""
    return f"{value:+,}".replace("-", _MINUS)


def change_size(value: int | None) -> str:
    """Return a difference of bytes with its sign, empty for none."""
    if value is not None and value > 0:
        return f"+{size(value)}"
    return size(value) if value else ""


def ratio(value: float) -> str:
    """Return a factor without needless decimals, such as C(4) and C(1.5)."""
    return f"{value:g}"


def share(used: int | None, total: int | None) -> int | None:
    """Return percent, None if it is not known. Without a total, any use is above 100 percent."""
    if used is None or total is None:
        return None
    if not total:
        return 101 if used else 0
    return int(100 * used / total)


def moment(time: str | None) -> str:
    """Return a time in ISO 8601 as C(22 November 2026, 09:50 UTC)."""
    found = _TIME.match(time or "")
    if found is None:
        return UNKNOWN
    return f"{day(time)}, {found['clock']} UTC"


def day(time: str | None) -> str:
    """Return the date of a time in ISO 8601 as C(22 November 2026)."""
    found = _TIME.match(time or "")
    if found is None:
        return UNKNOWN
    month = _MONTHS[(int(found["month"]) - 1) % 12]
    return f"{int(found['day'])} {month} {found['year']}"


def duration(value: int | None) -> str:
    """Return seconds in the largest unit that fits, such as C(3 days)."""
    if value is None:
        return UNKNOWN
    for length, unit in _STEPS:
        number = int(value) // length
        if number == 1:
            return f"1{_SPACE}{unit}"
        if number:
            return f"{number:,}{_SPACE}{unit}s"
    return f"less than a{_SPACE}minute"


def measured(value: int | None) -> str:
    """Return measured seconds exactly, such as C(95 s) and C(12 min 3 s)."""
    if value is None:
        return "not measured"
    if value < 2 * 60:
        return f"{value}{_SPACE}s"
    minutes, rest = divmod(int(value), 60)
    return f"{minutes:,}{_SPACE}min {rest}{_SPACE}s"


def ago(time: str | None, now: str) -> str:
    """Return the duration since a time in ISO 8601, such as C(3 days ago)."""
    then = seconds(time or "")
    present = seconds(now)
    if then is None or present is None:
        return UNKNOWN
    return f"{duration(max(0, present - then))} ago"


FILTERS = {
    "size": size,
    "count": count,
    "counted": counted,
    "change": change,
    "change_size": change_size,
    "ratio": ratio,
    "share": share,
    "moment": moment,
    "day": day,
    "duration": duration,
    "measured": measured,
    "ago": ago,
}
