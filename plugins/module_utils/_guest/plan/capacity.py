# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much memory and storage a plan takes, by the configurations before and after it (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..._core.quantities import read_size
from ..kind import Kind

# How a volume is named in a configuration that is planned, until PVE has made it.
_PLANNED = frozenset(("new", "moved"))


@dataclass(frozen=True)
class Capacity:
    """The room that a guest takes of its node once its plan is carried out, in bytes."""

    node: str
    memory: int = 0
    storages: Mapping[str, int] = field(default_factory=dict)


def new_bytes(
    kind: Kind,
    before: Mapping[str, str],
    after: Mapping[str, str],
    images: Mapping[str, int] | None = None,
    *,
    copied: bool = False,
) -> dict[str, int]:
    """Return the bytes of new volumes and of growth, by storage.

    `images` are the sizes of imported images by slot. `copied` says that all disks are made, as in
    a full clone.
    """
    found: dict[str, int] = {}
    known = kind.disks_in(before)
    for slot, drive in kind.disks_in(after).items():
        storage, colon, _name = drive.get("file", "").partition(":")
        size = read_size(drive.get("size"))
        if not size and images:
            size = images.get(slot)
        if not colon or not size:
            continue
        is_made = copied or _is_planned(drive)
        if not is_made:
            size -= _size_in(known, slot, size)
        if size > 0:
            so_far = found.get(storage, 0)
            found[storage] = so_far + size
    return found


def _size_in(known: Mapping[str, Mapping[str, str]], slot: str, unknown: int) -> int:
    """Return the bytes that a drive has now, or `unknown` if it does not say."""
    drive = known.get(slot, {})
    size = read_size(drive.get("size"))
    return size or unknown


def _is_planned(drive: Mapping[str, str]) -> bool:
    """Return whether PVE has still to make the volume of a drive."""
    _storage, _colon, volume = drive["file"].rpartition(":")
    return volume in _PLANNED


def moved_bytes(kind: Kind, config: Mapping[str, str], shared: Collection[str]) -> dict[str, int]:
    """Return the bytes of the disks that are copied when a guest leaves its node, by storage."""
    copied = new_bytes(kind, {}, config, copied=True)
    for storage in shared:
        copied.pop(storage, None)
    return copied


def added(*several: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of bytes by storage."""
    total: dict[str, int] = {}
    for bytes_by_storage in several:
        for storage, size in bytes_by_storage.items():
            total[storage] = total.get(storage, 0) + size
    return total
