# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Marks the archives of a guest that a retention keeps by PVE's rules, with the reasons (pure).

Source: pve-storage, PVE/Storage.pm (prune_mark_backup_group) and PVE/Storage/Plugin.pm
(prune_backups).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ..archive import Archive

KEEP, REMOVE, PROTECTED, RENAMED = "keep", "remove", "protected", "renamed"
NEW = ""
"""The volume of an archive that does not exist yet."""

_FILE = re.compile(r"/vzdump-[a-z]+-\d+-(\d{4})_(\d\d)_(\d\d)-(\d\d)_(\d\d)_(\d\d)\.")
_SNAPSHOT = re.compile(r":backup/(?:vm|ct)/\d+/")


@dataclass
class MarkedArchive:
    """An archive, its mark, and the rule that decided it."""

    archive: Archive
    mark: str = ""
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the mark as a module reports it."""
        return {
            "volume": self.archive.volume or None,
            "ctime": self.archive.time,
            "mark": self.mark,
            "reason": self.reason,
        }


def _last(moment: datetime, one: Archive) -> str:
    return str(one.time)


def _format(form: str) -> Callable[[datetime, Archive], str]:
    return lambda moment, _one: moment.strftime(form)


_RULES: tuple[tuple[str, Callable[[datetime, Archive], str]], ...] = (
    ("keep-last", _last),
    ("keep-hourly", _format("%Y-%m-%d %H:00")),
    ("keep-daily", _format("%Y-%m-%d")),
    ("keep-weekly", _format("%G-W%V")),
    ("keep-monthly", _format("%Y-%m")),
    ("keep-yearly", _format("%Y")),
)


def needs_local_time(keep: Mapping[str, str]) -> bool:
    """Return whether a retention counts hours, days or longer periods."""
    return any(int(keep.get(name) or 0) > 0 for name, _period in _RULES[1:])


def is_standard(one: Archive) -> bool:
    """Return whether PVE named the archive; PVE does not remove archives with other names."""
    return bool(_FILE.search(one.volume) or _SNAPSHOT.search(one.volume)) or one.volume == NEW


def local_time(one: Archive, offset: float) -> datetime:
    """Return the local time of a backup on its node.

    A file has the local time in its name. For other archives, it is computed from UTC with
    `offset`, the node's difference to UTC in seconds.
    """
    found = _FILE.search(one.volume)
    if found:
        year, month, day, hour, minute, second = map(int, found.groups())
        try:
            return datetime(year, month, day, hour, minute, second)
        except ValueError:
            pass
    moment = datetime.fromtimestamp(one.time, timezone.utc).replace(tzinfo=None)
    return moment + timedelta(seconds=offset)


def offset_of(archives: Iterable[Archive]) -> float:
    """Return the seconds from UTC to local time by the name of the newest file; 0 without files."""
    files = [one for one in archives if _FILE.search(one.volume)]
    if not files:
        return 0.0
    newest = max(files, key=lambda one: one.time)
    utc = datetime.fromtimestamp(newest.time, timezone.utc).replace(tzinfo=None)
    return (local_time(newest, 0) - utc).total_seconds()


def mark_archives(
    archives: Sequence[Archive], keep: Mapping[str, str], offset: float = 0.0
) -> list[MarkedArchive]:
    """Return the marks of the archives of one guest on one storage, the newest first."""
    marks = [MarkedArchive(one) for one in sorted(archives, key=lambda one: -one.time)]
    for one in marks:
        if one.archive.protected:
            one.mark, one.reason = PROTECTED, "the archive is protected"
        elif not is_standard(one.archive):
            one.mark, one.reason = RENAMED, "Proxmox VE did not give this name"
    counts = {name: int(keep.get(name) or 0) for name, _period in _RULES}
    if keep.get("keep-all") == "1" or not any(counts.values()):
        for one in marks:
            if not one.mark:
                one.mark, one.reason = KEEP, "keep-all"
        return marks
    regular = [one for one in marks if one.mark != RENAMED]
    for name, period in _RULES:
        keys = [period(local_time(one.archive, offset), one.archive) for one in regular]
        _apply(regular, keys, name, counts[name])
    for one in marks:
        if not one.mark:
            one.mark, one.reason = REMOVE, "no rule keeps it"
    return marks


def _apply(marks: Sequence[MarkedArchive], periods: Sequence[str], name: str, count: int) -> None:
    """Keep the newest archive in each of the newest `count` periods without a kept archive."""
    if not count:
        return
    pairs = list(zip(marks, periods, strict=True))
    covered = {period for one, period in pairs if one.mark == KEEP}
    kept: set[str] = set()
    for one, period in pairs:
        if one.mark or period in covered:
            continue
        if period in kept:
            one.mark, one.reason = REMOVE, f"{name} keeps a newer one of {period}"
            continue
        if len(kept) >= count:
            return
        kept.add(period)
        one.mark = KEEP
        one.reason = name if name == "keep-last" else f"{name} {period}"
