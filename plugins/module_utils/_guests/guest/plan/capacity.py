# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory and storage that a plan needs, from the configurations before and after it (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ...._foundation.core.quantities import read_size
from ...kinds.kind import Kind

# The names of volumes in a planned configuration, until PVE has created them.
_PLANNED = frozenset(("new", "moved"))


@dataclass(frozen=True)
class Capacity:
    """The room in bytes that a guest needs on its node once its plan is carried out."""

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

    `images` are the sizes of imported images by slot. With `copied` all disks are created, as in a
    full clone.
    """
    found: dict[str, int] = {}
    known = kind.disks_in(before)
    for slot, drive in kind.disks_in(after).items():
        storage, colon, _name = drive.get("file", "").partition(":")
        size = read_size(drive.get("size"))
        if not size and images and _is_planned(drive):
            size = images.get(slot)
        if not colon or not size:
            continue
        is_counted = copied or _is_planned(drive)
        if not is_counted:
            size -= _size_in(known, slot, size)
        if size > 0:
            so_far = found.get(storage, 0)
            found[storage] = so_far + size
    return found


def _size_in(known: Mapping[str, Mapping[str, str]], slot: str, unknown: int) -> int:
    """Return the present bytes of a drive, or `unknown` if the configuration does not show them."""
    drive = known.get(slot, {})
    size = read_size(drive.get("size"))
    return size or unknown


def _is_planned(drive: Mapping[str, str]) -> bool:
    """Return whether PVE has not created the volume of a drive yet."""
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
