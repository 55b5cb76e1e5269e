# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the guests that use a volume: now, by a pending change, in a snapshot, as the base of a
linked clone, or as a replica.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...core import propstring
from ...core.parallel import side_by_side
from ..find.lookup import volume_owner
from ..state import VmRow, row_of_listing
from ..tenant import parse_tags

if TYPE_CHECKING:
    from ...api.protocols import Reader

_READS_AT_ONCE = 8
# The options of a guest whose value is a drive or a mount.
SLOT = re.compile(r"(?:ide|sata|scsi|virtio|efidisk|tpmstate|unused|mp)\d+|rootfs")
_NAMED: propstring.Format = {"file": {"default_key": True}}
_ALLOCATION = re.compile(r"[^:]*:(?:[\d.]+|cloudinit|new)")
# Other options of a guest whose value can name a volume.
_NAMES_VOLUMES = ("cicustom", "hookscript", "vmstate")


@dataclass(frozen=True)
class VolumeUser:
    """A guest that uses a volume, its present tags, and the options that name the volume."""

    row: VmRow
    tags: tuple[str, ...]
    places: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"guest {self.row.vmid} ({self.row.name}) as {self.places[0]}"


def read_volume_users(
    client: Reader, volid: str, node: str | None = None, *, clones: bool = True
) -> list[VolumeUser]:
    """Return the guests that use a volume of one node, or of all nodes. Raises FleetError.

    With `clones`, its linked clones count. One request or two, two for each guest, and one for each
    snapshot.
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
    pattern = volume_pattern(volid, clones=clones)

    def read(row: Mapping[str, Any]) -> VolumeUser:
        path = ("nodes", row["node"], row["type"], row["vmid"])
        options = client.get(*path, "pending", attempted=attempted) or []
        values = {option["key"]: option.get("value") for option in options}
        name = str(values.get("name") or values.get("hostname") or "")  # the listing may lack it
        places = [*_places(options, pattern), *_held(client, path, pattern, attempted)]
        return VolumeUser(
            replace(row_of_listing(row), name=name), parse_tags(values.get("tags")), tuple(places)
        )

    found = side_by_side(read, guests, _READS_AT_ONCE)
    return [user for user in found if user.places]


def volume_pattern(volid: str, *, clones: bool = True) -> re.Pattern[str]:
    """Return the pattern of a value that names the volume, its path on a node, or a linked clone.

    The name of a linked clone can begin with its base: C(STORAGE:BASE/NAME) (pve-storage,
    parse_volname of the plugins).
    """
    storage, _colon, name = map(re.escape, volid.partition(":"))
    image = re.escape(volid.rpartition("/")[2].rpartition(":")[2])
    if volid.startswith("/"):
        storage = "[^,:/]+"
    if volume_owner(volid) is not None:
        name = f"(?:[^,]*/)?{image}"
    end = "[,/]" if clones else ","
    return re.compile(rf"(?:^|[,=])(?:{storage}:{name}|/[^,]*/{image})(?:{end}|$)")


def _places(options: Iterable[Mapping[str, Any]], pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the options that name the volume, now or by a pending change (pure)."""
    for row in options:
        if names_volume(pattern, row["key"], row.get("value")):
            yield row["key"]
        elif names_volume(pattern, row["key"], row.get("pending")):
            yield f"{row['key']}, a pending change"


def _held(
    client: Reader, path: tuple[str | int, ...], pattern: re.Pattern[str], attempted: str
) -> Iterator[str]:
    """Yield the options of snapshots that name the volume; one request, and one for each."""
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
    can_name = key in _NAMES_VOLUMES or SLOT.fullmatch(key) is not None
    return can_name and pattern.search(str(value)) is not None


def drive_volumes(config: Mapping[str, str]) -> Iterator[tuple[str, bool, bool]]:
    """Yield the volumes that drives and mounts name, each with whether PVE copies the volume, and
    whether its option has C(shared) (pure). Volumes that PVE allocates have no name yet.
    """
    for key, value in sorted(config.items()):
        if not SLOT.fullmatch(key):
            continue
        values = propstring.parse(value, _NAMED)
        for name in ("file", "volume", "import-from"):
            volume = values.get(name, "")
            if volume and not _ALLOCATION.fullmatch(volume):
                yield volume, name == "import-from", values.get("shared") == "1"
