"""Calendar events: the syntax of the schedules of jobs, and the next time of an event.

Source: proxmox-time, src/calendar_event.rs and src/date_time_value.rs, which pve-common's
PVE/CalendarEvent.pm calls.
"""

from __future__ import annotations

import calendar
import datetime
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT = tuple(name[:3] for name in _DAYS)
_KEYWORDS = {
    "minutely": "*:*:0",
    "hourly": "*:0:0",
    "daily": "0:0:0",
    "weekly": "mon 0:0:0",
    "monthly": "*-*-1 0:0:0",
    "yearly": "*-1-1 0:0:0",
    "annually": "*-1-1 0:0:0",
    "quarterly": "*-1,4,7,10-1 0:0:0",
    "semiannually": "*-1,7-1 0:0:0",
    "semi-annually": "*-1,7-1 0:0:0",
}
_VALUES = r"[\d*][\d*,./]*"
_NAMES = r"[A-Za-z]+(?:\.\.[A-Za-z]+)?"
_EVENT = re.compile(
    rf"(?P<days>{_NAMES}(?:,{_NAMES})*)?\s*"
    rf"(?:(?:(?P<year>{_VALUES})-)?(?P<month>{_VALUES})-(?P<day>{_VALUES}))?\s*"
    rf"(?:(?:(?P<hour>{_VALUES}):)?(?P<minute>{_VALUES})(?::(?P<second>{_VALUES}))?)?\Z"
)
_VALUE = re.compile(r"(\d+)(?:\.\.(\d+))?(?:/(\d+))?\Z")
# The smallest value of each part, and the first that is too large.
_LIMITS = {
    "year": (0, 2200),
    "month": (1, 13),
    "day": (1, 32),
    "hour": (0, 24),
    "minute": (0, 60),
    "second": (0, 60),
}
# An event that does not come within these days never comes: February 29 can be 8 years away.
_HORIZON = 366 * 9


class BadEvent(ValueError):
    """A text is not a calendar event."""


@dataclass(frozen=True)
class Value:
    """A number, a range, or a repetition from a number on."""

    start: int
    end: int | None
    step: int

    def has(self, number: int) -> bool:
        """Whether it contains the number."""
        if number < self.start or (self.end is not None and number > self.end):
            return False
        if not self.step:
            return number == self.start
        return (number - self.start) % self.step == 0


@dataclass(frozen=True)
class CalendarEvent:
    """The values of each part; a part without values has any value."""

    parts: dict[str, tuple[Value, ...]]
    days: frozenset[int]
    utc: bool

    def allows(self, part: str, number: int) -> bool:
        """Whether a part can have the number."""
        values = self.parts[part]
        return not values or any(value.has(number) for value in values)


def parse_event(text: str) -> CalendarEvent:
    """Read a calendar event. Raises BadEvent."""
    text = text.strip()
    if not text:
        raise BadEvent("unable to parse calendar event - event is empty")
    is_utc = text.endswith("UTC")
    if is_utc:
        text = text.removesuffix("UTC").rstrip(" ")
    found = _EVENT.match(_KEYWORDS.get(text, text)) if text else None
    if found is None:
        raise BadEvent("unable to parse calendar event")
    given = found.groupdict()
    days = frozenset(_weekdays(given.pop("days") or ""))
    if given["minute"] is None:  # an event without a time is at midnight
        given |= {"hour": "0", "minute": "0", "second": "0"}
    given["second"] = given["second"] or "0"
    parts = {name: _values(given[name], *_LIMITS[name]) for name in _LIMITS}
    return CalendarEvent(parts, days, is_utc)


def _weekdays(text: str) -> Iterator[int]:
    for item in filter(None, text.split(",")):
        first, _dots, last = item.partition("..")
        start = _weekday(first)
        end = _weekday(last or first)
        length = (end - start) % 7
        yield from ((start + offset) % 7 for offset in range(length + 1))


def _weekday(name: str) -> int:
    lower = name.lower()
    for names in (_DAYS, _SHORT):
        if lower in names:
            return names.index(lower)
    raise BadEvent(f"unable to parse calendar event at '{name}'")


def _values(text: str | None, start: int, limit: int) -> tuple[Value, ...]:
    if text is None or text == "*":
        return ()
    repeated = re.fullmatch(r"\*/(\d+)", text)
    if repeated:
        step = _number(repeated.group(1), limit)
        if not step:
            raise BadEvent("unable to parse calendar event")
        return (Value(start, None, step),)
    return tuple(_value(item, limit) for item in text.split(","))


def _value(text: str, limit: int) -> Value:
    found = _VALUE.match(text)
    if found is None:
        raise BadEvent(f"unable to parse calendar event at '{text}'")
    first, last, step = found.groups()
    start = _number(first, limit)
    end = None if last is None else _number(last, limit)
    if end is not None and start > end:
        raise BadEvent("unable to parse calendar event - range start is bigger than end")
    if step is not None:
        return Value(start, end, _number(step, limit))
    return Value(start, start if end is None else end, 1)


def _number(text: str, limit: int) -> int:
    number = int(text)
    if number >= limit:
        raise BadEvent("unable to parse calendar event - time value too large")
    return number


def next_event(event: CalendarEvent, last: float) -> int | None:
    """The first time of the event after `last`, in seconds since the epoch; None if it never
    comes.
    """
    read = time.gmtime if event.utc else time.localtime
    begin = read(int(last) + 1)
    first = datetime.date(*begin[:3])
    for day in _days(event, first):
        found = _time_of_day(event, begin[3:6] if day == first else (0, 0, 0))
        if found is not None:
            moment = (day.year, day.month, day.day, *found, 0, 0, -1)
            return int(calendar.timegm(moment) if event.utc else time.mktime(moment))
    return None


def _days(event: CalendarEvent, first: datetime.date) -> Iterator[datetime.date]:
    """Yield the days of the event from a day on."""
    while not event.allows("year", first.year):
        if first.year >= _LIMITS["year"][1]:
            return
        first = datetime.date(first.year + 1, 1, 1)
    for offset in range(_HORIZON):
        day = first + datetime.timedelta(days=offset)
        is_in_month = event.allows("year", day.year) and event.allows("month", day.month)
        is_weekday = not event.days or day.weekday() in event.days
        if is_in_month and is_weekday and event.allows("day", day.day):
            yield day


def _time_of_day(event: CalendarEvent, earliest: tuple[int, ...]) -> tuple[int, int, int] | None:
    for hour in range(earliest[0], 24):
        if not event.allows("hour", hour):
            continue
        is_first = hour == earliest[0]
        for minute in range(earliest[1] if is_first else 0, 60):
            if not event.allows("minute", minute):
                continue
            is_now = is_first and minute == earliest[1]
            for second in range(earliest[2] if is_now else 0, 60):
                if event.allows("second", second):
                    return hour, minute, second
    return None
