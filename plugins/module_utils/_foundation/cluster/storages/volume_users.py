# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the guests that use a volume: now, by a pending change, in a snapshot, as the base of a
linked clone, or as a replica.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core import propstring
from ...core.errors import FleetError, NotFound
from ...core.parallel import side_by_side
from ..find.lookup import volume_owner
from ..state import ClusterState, VmRow, node_of, row_of_listing
from ..tenant import parse_tags

if TYPE_CHECKING:
    from ...api.client import Client
    from ...api.protocols import Reader

_Names: TypeAlias = Callable[[str, Any], bool]  # whether an option of a guest names the volume
_DISKS = frozenset(("images", "rootdir"))  # the content of storages with volumes of guests
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
    listed = client.get("cluster", "resources", type="vm", attempted=attempted) or []
    rows = [row_of_listing(row) for row in sorted(listed, key=lambda row: int(row["vmid"]))]
    if node is not None:
        jobs = client.get("cluster", "replication", attempted=attempted) or []
        replicated = {int(job["guest"]) for job in jobs if job.get("target") == node}
        rows = [row for row in rows if row.node == node or row.vmid in replicated]
    pattern = volume_pattern(volid, clones=clones)

    def names(key: str, value: Any) -> bool:
        return names_volume(pattern, key, value)

    found = side_by_side(lambda row: _user(client, row, names, attempted), rows)
    return [user for user in found if user.places]


def read_users_of_owner(
    client: Client, vmid: int, node: str, cluster: ClusterState
) -> tuple[list[VolumeUser], list[str]]:
    """Return the other guests that use a volume with this VMID, and warnings about guests that
    could not be read; two requests for each guest that can use a volume of the node, and one for
    each snapshot.
    """
    attempted = f"Could not find out what uses the volumes of guest {vmid}"
    storages = [row for row in cluster.storages if row.content & _DISKS]
    is_local = bool(storages) and not any(row.shared for row in storages)
    rows: list[VmRow] = []
    for row in sorted(cluster.guests, key=lambda row: row.vmid):
        is_near = row.node == node or not is_local
        if is_near and row.vmid != vmid and not row.planned:
            rows.append(row)

    def names(key: str, value: Any) -> bool:
        volumes = [volume for volume, _copied, _shared in drive_volumes({key: str(value)})]
        return any(volume_owner(volume) == vmid for volume in volumes)

    def read(row: VmRow) -> VolumeUser | str:
        try:
            return _user(client, row, names, attempted)
        except FleetError as error:
            if isinstance(error, NotFound) and node_of(client, row.vmid) in (None, row.node):
                return VolumeUser(row, (), ())  # it was removed, and the listing still has it
            return f"It is not known whether guest {row.vmid} uses its volumes: {error.cause}"

    found = side_by_side(read, rows)
    users = [user for user in found if isinstance(user, VolumeUser) and user.places]
    return users, [user for user in found if isinstance(user, str)]


def _user(client: Reader, row: VmRow, names: _Names, attempted: str) -> VolumeUser:
    """Return a guest with the options that name a volume."""
    options = client.get(*row.path, "pending", attempted=attempted) or []
    values = {option["key"]: option.get("value") for option in options}
    name = str(values.get("name") or values.get("hostname") or "")  # the listing may lack it
    places = (*_places(options, names), *_held(client, row.path, names, attempted))
    return VolumeUser(replace(row, name=name), parse_tags(values.get("tags")), places)


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


def _places(options: Iterable[Mapping[str, Any]], names: _Names) -> Iterator[str]:
    """Yield the options that name the volume, now or by a pending change (pure)."""
    for row in options:
        if names(row["key"], row.get("value")):
            yield row["key"]
        elif names(row["key"], row.get("pending")):
            yield f"{row['key']}, a pending change"


def _held(
    client: Reader, path: tuple[str | int, ...], names: _Names, attempted: str
) -> Iterator[str]:
    """Yield the options of snapshots that name the volume; one request, and one for each.

    A guest can have snapshots although its present state follows none: PVE removes the reference to
    a first snapshot that is deleted (pve-guest-common: AbstractConfig.pm, snapshot_delete).
    """
    for snapshot in client.get(*path, "snapshot", attempted=attempted) or []:
        name = snapshot["name"]
        if name == "current":
            continue
        config = client.get(*path, "snapshot", name, "config", attempted=attempted) or {}
        for key, value in config.items():
            if names(key, value):
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
