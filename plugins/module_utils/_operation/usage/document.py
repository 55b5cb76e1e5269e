# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of metered use as texts: the use of a day, and the last sample of a site (pure)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..report.model import DAY
from .model import ArchiveUse, Gone, GuestUse, Lack, Sample, Span, Subject, Waiting, Window

VERSION = 1
_MALFORMED = (AttributeError, LookupError, RecursionError, TypeError, ValueError)

Interval = tuple[int, int]


@dataclass(frozen=True)
class DayUse:
    """The use of a site on one day in UTC. `covered` are the times between samples."""

    day: str
    covered: tuple[Interval, ...] = ()
    spans: tuple[Span, ...] = ()
    missing: tuple[Lack, ...] = ()


def day_of(when: int) -> str:
    """Return the day in UTC of seconds since the epoch, such as C(2026-11-29)."""
    return time.strftime("%Y-%m-%d", time.gmtime(when))


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return intervals without overlaps, in order; adjacent intervals become one."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > start:
            found.append((start, end))
    return found


def clipped(interval: Interval, start: int, end: int) -> Interval:
    """Return the part of an interval between two times; its length is 0 without one."""
    first = min(max(interval[0], start), end)
    return first, max(first, min(interval[1], end))


def days_with(days: Mapping[str, DayUse], window: Window) -> list[DayUse]:
    """Return the days that a window changes, with its use. A window that is added twice counts
    once, so that an interrupted run can be repeated.
    """
    times = [window.start, *(span.start for span in window.spans)]
    times += [lack.start for lack in window.missing]
    first = min(times) // DAY * DAY
    found: list[DayUse] = []
    for start in range(first, window.end, DAY):
        day = days.get(day_of(start), DayUse(day_of(start)))
        added = _added(day, window, start)
        if added != day:
            found.append(added)
    return found


def _added(day: DayUse, window: Window, start: int) -> DayUse:
    end = start + DAY
    covered = [*day.covered]
    if window.covered:
        covered.append(clipped((window.start, window.end), start, end))
    subjects: dict[Subject, list[Interval]] = {}
    for span in (*day.spans, *window.spans):
        interval = clipped((span.start, span.end), start, end)
        subjects.setdefault(span.subject, []).append(interval)
    spans = [
        Span(subject, *interval)
        for subject, intervals in subjects.items()
        for interval in union(intervals)
    ]
    return replace(
        day,
        covered=tuple(union(covered)),
        spans=tuple(sorted(spans, key=_order)),
        missing=tuple(merged_lacks((*day.missing, *window.missing), start, end)),
    )


def _order(span: Span) -> tuple[Any, ...]:
    return (span.start, span.end, *vars(span.subject).values())


def merged_lacks(lacks: Iterable[Lack], start: int, end: int) -> list[Lack]:
    """Return the missing parts between two times, each part with adjacent times once."""
    parts: dict[tuple[str, str, str], list[Interval]] = {}
    for lack in lacks:
        key = (lack.part, lack.subject, lack.reason)
        parts.setdefault(key, []).append(clipped((lack.start, lack.end), start, end))
    return [Lack(*key, *interval) for key in sorted(parts) for interval in union(parts[key])]


def day_text(site: str, day: DayUse) -> str:
    """Return the text of the file of a day."""
    spans = [{**vars(span.subject), "start": span.start, "end": span.end} for span in day.spans]
    content = {"version": VERSION, "site": site, "day": day.day, "covered": day.covered}
    return _text({**content, "spans": spans, "missing": [vars(lack) for lack in day.missing]})


def day_in(text: str) -> DayUse:
    """Return the day in the text of its file. Raises ValueError for another text."""
    return _parsed(text, _day)


def _day(content: Mapping[str, Any]) -> DayUse:
    spans: list[Span] = []
    for row in content["spans"]:
        start, end = int(row.pop("start")), int(row.pop("end"))
        spans.append(Span(Subject(**row), start, end))
    return DayUse(
        str(content["day"]),
        tuple((int(start), int(end)) for start, end in content["covered"]),
        tuple(spans),
        tuple(Lack(**row) for row in content["missing"]),
    )


def sample_text(site: str, sample: Sample) -> str:
    """Return the text of the file with the last sample of a site."""
    content = asdict(sample)
    for name in ("unread", "seen", "noted"):
        content[name] = sorted(content[name])
    return _text({"version": VERSION, "site": site, "sample": content})


def sample_in(text: str) -> Sample:
    """Return the sample in the text of its file. Raises ValueError for another text."""
    return _parsed(text, lambda content: _sample(content["sample"]))


def _sample(content: Mapping[str, Any]) -> Sample:
    return Sample(
        time=int(content["time"]),
        guests={int(vmid): GuestUse(**row) for vmid, row in content["guests"].items()},
        unknown={int(vmid): str(why) for vmid, why in content["unknown"].items()},
        archives={volid: ArchiveUse(**row) for volid, row in content["archives"].items()},
        unread=frozenset(content["unread"]),
        waiting={int(vmid): _waiting(row) for vmid, row in content["waiting"].items()},
        gone=tuple(
            Gone(GuestUse(**row["guest"]), int(row["last"]), int(row["missed"]))
            for row in content["gone"]
        ),
        tasks_since=int(content["tasks_since"]),
        seen=frozenset(content["seen"]),
        noted=frozenset(content["noted"]),
    )


def _waiting(row: Mapping[str, Any]) -> Waiting:
    created: Sequence[int] | None = row["created"]
    times = None if created is None else (int(created[0]), int(created[1]))
    return Waiting(int(row["since"]), int(row["tries"]), times)


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n"


def _parsed(text: str, parse: Any) -> Any:
    try:
        content = json.loads(text)
        version = content["version"]
        if version != VERSION:
            raise ValueError(f"it has version {json.dumps(version)}, not {VERSION}")
        return parse(content)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error})") from None
    except ValueError:
        raise
    except _MALFORMED:
        raise ValueError("it is not complete") from None
