# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Windows of time in which work is allowed, such as C(22:00-05:00) (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from ...._foundation.core import validate

DAY = 24 * 60 * 60
_WINDOW = re.compile(r"(?:([a-z]{3}(?:,[a-z]{3})*) )?(\d\d):(\d\d)-(\d\d):(\d\d)")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def read_windows(given: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the windows. Raises ValidationFailed."""
    for text in given:
        found = _WINDOW.fullmatch(text)
        step = "Write it as 22:00-05:00, or with the days on which it begins: sat,sun 22:00-05:00"
        if found is None or not _is_window(found):
            raise validate.refused(what, text, "is not a window of time", step)
    return tuple(given)


def _is_window(found: re.Match[str]) -> bool:
    days = (found[1] or "mon").split(",")
    hours, minutes = (found[2], found[4]), (found[3], found[5])
    is_known = all(day in _DAYS for day in days)
    return is_known and max(map(int, hours)) < 24 and max(map(int, minutes)) < 60


def remaining(windows: Sequence[str], now: datetime) -> float | None:
    """Return the seconds until the current window ends, 0 outside of all windows.

    None if there are no windows: the time is not limited. A window can end on the next day, and a
    window whose end equals its beginning lasts a day.
    """
    if not windows:
        return None
    return max(_left_of(window, now) for window in windows)


def _left_of(window: str, now: datetime) -> float:
    found = _WINDOW.fullmatch(window)
    if found is None:
        return 0.0
    begin = int(found[2]) * 3600 + int(found[3]) * 60
    length = (int(found[4]) * 3600 + int(found[5]) * 60 - begin) % DAY or DAY
    seconds = now.hour * 3600 + now.minute * 60 + now.second
    since = (seconds - begin) % DAY
    if since >= length:
        return 0.0
    started_today = seconds >= begin
    day = _DAYS[(now.weekday() - (not started_today)) % 7]
    if found[1] and day not in found[1].split(","):
        return 0.0
    return float(length - since)
