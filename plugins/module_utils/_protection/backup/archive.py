# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An archive of a guest on a storage, and the guest that it belongs to (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..._foundation.cluster.state import StorageRow, VmRow
from ..._foundation.cluster.tenant import tenant_of
from ..._foundation.core.times import iso
from ..._guests.kinds.words import VM


class Archive(NamedTuple):
    """A backup as its storage lists it; the size in bytes, the time in seconds since the epoch.

    `node` is a node that lists the storage. `place` is empty for a shared storage, else that node.
    `type` is PVE's word for the kind of guest. `verification` is the state that a backup server
    reports, such as C(ok), empty if it was never verified. A task reads tens of thousands of
    archives, and creating a tuple takes a quarter of the time of a frozen dataclass.
    """

    volume: str
    storage: str
    storage_kind: str
    node: str
    place: str
    type: str
    vmid: int | None
    time: int
    size: int
    format: str = ""
    notes: str = ""
    protected: bool = False
    encryption: str = ""
    verification: str = ""


def archive_of(row: StorageRow, volume: Mapping[str, Any]) -> Archive:
    """Return the archive of a row of a storage's content."""
    vmid = volume.get("vmid")
    verification = volume.get("verification") or {}
    return Archive(
        volume=str(volume["volid"]),
        storage=row.storage,
        storage_kind=row.kind,
        node=row.node,
        place=row.place,
        type=str(volume.get("subtype") or VM.type),
        vmid=None if vmid is None else int(vmid),
        time=int(volume.get("ctime") or 0),
        size=int(volume.get("size") or 0),
        format=str(volume.get("format") or ""),
        notes=str(volume.get("notes") or ""),
        protected=bool(volume.get("protected")),
        encryption=str(volume.get("encrypted") or ""),
        verification=str(verification.get("state") or ""),
    )


def by_guest(
    archives: Iterable[Archive], guests: Iterable[VmRow], removals: Mapping[int, int]
) -> dict[int, list[Archive]]:
    """Return the archives of each guest by VMID, the newest first.

    An archive of the other type, or older than the last removal of a guest with this VMID, belongs
    to an earlier guest.
    """
    found: dict[int, list[Archive]] = {row.vmid: [] for row in guests}
    types = {row.vmid: row.type for row in guests}
    for one in archives:
        if one.vmid is None or types.get(one.vmid) != one.type:
            continue
        if one.time > removals.get(one.vmid, -1):
            found[one.vmid].append(one)
    for own in found.values():
        own.sort(key=newest_first)
    return found


def newest_first(one: Archive) -> tuple[int, str, str]:
    """Return the key by which archives are sorted from the newest to the oldest."""
    return -one.time, one.volume, one.node


def describe_archive(
    one: Archive, guest: VmRow | None, now: float, prefix: str, *, notes: bool = True
) -> dict[str, Any]:
    """Return an archive as modules report it; `guest` is None if its guest no longer exists."""
    name, tenant = None, None
    if guest is not None:
        name = guest.own_name
        tenant, _why = tenant_of(guest.tags, prefix)
    described = {
        "volume": one.volume,
        "storage": one.storage,
        "node": one.place or None,
        "vmid": one.vmid,
        "type": one.type,
        "name": name,
        "tenant": tenant,
        "time": iso(one.time),
        "ctime": one.time,
        "age": max(0, int(now) - one.time),
        "size": one.size,
        "format": one.format or None,
        "protected": one.protected,
        "encrypted": bool(one.encryption),
        "verification": one.verification or None,
    }
    if notes:
        described["notes"] = one.notes
    return described
