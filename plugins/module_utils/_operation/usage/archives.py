# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The use of backups between two samples, and their owners (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._foundation.cluster.state import StorageRow
from .model import BACKUP, ArchiveUse, GuestUse, Sample, Span, Subject


def archive_spans(before: Sample, now: Sample) -> list[Span]:
    """Return the use of the backups. The name of a backup has the time of its creation; the removal
    of a backup by its guest's next backup is not a task, so the use ends at an unknown time.
    """
    spans: list[Span] = []
    unread = before.unread | now.unread
    for volid in sorted(before.archives.keys() | now.archives.keys()):
        earlier, later = before.archives.get(volid), now.archives.get(volid)
        archive = earlier or later
        if archive is None or archive.storage in unread:
            continue
        start, is_certain = before.time, earlier is not None and later is not None
        if earlier is None and archive.made >= before.time:
            start, is_certain = min(archive.made, now.time), True
        if start < now.time:
            spans.append(Span(_subject(volid, archive, is_certain), start, now.time))
    return spans


def _subject(volid: str, archive: ArchiveUse, certain: bool) -> Subject:
    return Subject(
        BACKUP, volid, "", archive.tenant, archive.node, backup=archive.size, certain=certain
    )


def archives_of(
    volumes: Iterable[tuple[StorageRow, Mapping[str, Any]]],
    before: Sample | None,
    guests: Mapping[int, GuestUse],
    removals: Mapping[int, int],
) -> dict[str, ArchiveUse]:
    """Return the backups by storage and volume.

    A backup keeps the tenant with which it was seen first. A new backup has the tenant of its guest,
    none if it is older than the last removal of a guest with this VMID.
    """
    found: dict[str, ArchiveUse] = {}
    known: Mapping[str, ArchiveUse] = before.archives if before is not None else {}
    earlier: Mapping[int, GuestUse] = before.guests if before is not None else {}
    for row, volume in volumes:
        place = place_of(row)
        key = f"{place}/{volume['volid']}"
        vmid, made = int(volume.get("vmid") or 0), int(volume.get("ctime") or 0)
        guest = guests.get(vmid)
        if made <= removals.get(vmid, -1):
            guest = earlier.get(vmid)
        tenant = guest.tenant if guest is not None else ""
        if key in known:
            tenant = known[key].tenant
        size = int(volume.get("size") or 0)
        found[key] = ArchiveUse(place, row.place, vmid, tenant, size, made)
    return found


def place_of(row: StorageRow) -> str:
    """Return the name of a storage, with its node in front if it is not shared."""
    return f"{row.place}/{row.storage}" if row.place else row.storage
