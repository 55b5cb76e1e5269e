# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the guests that use a volume: now, by a pending change, in a snapshot, as the base of a
linked clone, or as a replica.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._core.parallel import side_by_side
from ..lookup import volume_owner

if TYPE_CHECKING:
    from ..._api.protocols import Reader

_READS_AT_ONCE = 8
# Properties of guests whose value can name a volume.
_VOLUMES = re.compile(
    r"(?:ide|sata|scsi|virtio|efidisk|tpmstate|unused|mp)\d+|rootfs|cicustom|hookscript|vmstate"
)


@dataclass(frozen=True)
class VolumeUser:
    """A guest that uses a volume: its row in the listing, and the options that name the volume."""

    row: Mapping[str, Any]
    places: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"guest {self.row['vmid']} ({self.row.get('name') or ''}) as {self.places[0]}"


def read_volume_users(client: Reader, volid: str, node: str | None = None) -> list[VolumeUser]:
    """Return the guests that use a volume of one node, or of all nodes. Raises FleetError.

    Two requests, two for each guest, and one for each snapshot.
    """
    attempted = f"Could not find out what uses {volid}"
    rows = client.get("cluster", "resources", type="vm", attempted=attempted) or []
    replicated: set[int] = set()
    if node is not None:
        jobs = client.get("cluster", "replication", attempted=attempted) or []
        replicated = {int(job["guest"]) for job in jobs if job.get("target") == node}
    guests: list[Mapping[str, Any]] = []
    for row in sorted(rows, key=lambda row: int(row["vmid"])):
        if node in (None, row.get("node")) or row["vmid"] in replicated:
            guests.append(row)
    pattern = volume_pattern(volid)

    def read(row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(_places(client, row, pattern, attempted))

    found = side_by_side(read, guests, _READS_AT_ONCE)
    return [VolumeUser(row, places) for row, places in zip(guests, found, strict=True) if places]


def volume_pattern(volid: str) -> re.Pattern[str]:
    """Return the pattern of a value that names the volume, its path on a node, or a linked clone.

    The name of a linked clone can begin with its base: C(STORAGE:BASE/NAME) (pve-storage,
    parse_volname of the plugins).
    """
    storage, _colon, name = map(re.escape, volid.partition(":"))
    image = re.escape(volid.rpartition("/")[2].rpartition(":")[2])
    if volume_owner(volid) is not None:
        name = f"(?:[^,]*/)?{image}"
    return re.compile(rf"(?:^|[,=])(?:{storage}:{name}|/[^,]*/{image})(?:[,/]|$)")


def _places(
    client: Reader, guest: Mapping[str, Any], pattern: re.Pattern[str], attempted: str
) -> Iterator[str]:
    """Yield the options of a guest that name the volume, present ones first."""
    path = ("nodes", guest["node"], guest["type"], guest["vmid"])
    options = client.get(*path, "pending", attempted=attempted) or []
    for row in options:
        if names_volume(pattern, row["key"], row.get("value")):
            yield row["key"]
        elif names_volume(pattern, row["key"], row.get("pending")):
            yield f"{row['key']}, a pending change"
    for snapshot in client.get(*path, "snapshot", attempted=attempted) or []:
        name = snapshot["name"]
        if name == "current":
            continue
        config = client.get(*path, "snapshot", name, "config", attempted=attempted) or {}
        for key, value in config.items():
            if names_volume(pattern, key, value):
                yield f"{key} in snapshot '{name}'"


def names_volume(pattern: re.Pattern[str], key: str, value: Any) -> bool:
    """Return whether an option of a guest names a volume that the pattern matches (pure)."""
    return bool(_VOLUMES.fullmatch(key) and pattern.search(str(value)))
