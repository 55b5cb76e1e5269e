# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes that disks of VMs and volumes of containers share: their options, growing, moving
(pure).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ...._foundation.core.errors import ValidationFailed
from ...._foundation.core.propstring import same
from ...._foundation.core.quantities import read_size, readable_sizes, render_size
from ...._foundation.schema.formats import Schema, canonical_sub_key, render_option, sub_keys_of
from ..hardware import MOVED, DesiredGuest, Disk
from .change import DriveChange


@dataclass
class VolumeUpdate:
    """The desired and the existing disks of a guest, and the change between them."""

    schema: ClassVar[Schema]
    file_key: ClassVar[str]  # the sub-key with the volume
    noun: ClassVar[str]  # the word for a disk in messages
    desired: DesiredGuest
    existing: Mapping[str, Mapping[str, str]]  # sub-keys by slot
    change: DriveChange = field(default_factory=DriveChange)  # the change so far

    def create(self, disk: Disk) -> None:
        """Create a volume, or attach an existing one."""
        raise NotImplementedError

    def update(self, disk: Disk) -> None:
        """Change the options, the size and the storage of a disk."""
        raise NotImplementedError

    def desired_options(self, disk: Disk, existing: Mapping[str, str]) -> dict[str, str]:
        """Return the desired sub-keys of a disk that cannot be changed to them."""
        raise NotImplementedError

    def detach_unlisted(self) -> None:
        """Detach the disks that are missing from an exact list."""
        raise NotImplementedError

    def change_all(self, disks: Iterable[Disk], target: Mapping[str, str]) -> None:
        """Change the listed disks, remove listed volumes that no disk uses, and detach unlisted
        disks if the list is exact.
        """
        for disk in disks:
            is_unused = disk.slot.startswith("unused")
            if not is_unused:
                self._change_or_refuse(disk)
            elif disk.slot in target and disk.state == MOVED:
                self.change.handed[disk.slot] = disk
            elif disk.slot in target:
                self.change.removed.add(disk.slot)
        if self.desired.hardware.disks_exact:
            self.detach_unlisted()

    def _change_or_refuse(self, disk: Disk) -> None:
        """Change a disk, or note its desired form and why the change is impossible."""
        try:
            self._change(disk)
        except ValidationFailed as error:
            self.change.refused[disk.slot] = error
            self.change.sets.pop(disk.slot, None)
            desired = self.desired_options(disk, self.existing.get(disk.slot, {}))
            self.change.after[disk.slot] = render_option(disk.slot, desired, self.schema)

    def _change(self, disk: Disk) -> None:
        """Create, update, detach or remove a disk."""
        if disk.slot not in self.existing:
            if disk.state == "present":
                self.create(disk)
        elif disk.state == "present":
            self.update(disk)
        elif disk.state == MOVED:
            self.change.handed[disk.slot] = disk
        elif disk.state == "detached":
            self.change.detached.add(disk.slot)
        else:
            self.change.removed.add(disk.slot)

    def need_space(self, disk: Disk, storage: str) -> None:
        """Note the requirements of a new or moved volume on its storage."""
        self.change.storages[storage] = self.desired.guest.kind.content
        if disk.format:
            self.change.formats[disk.slot] = storage, disk.format

    def set_options(self, slot: str, after: Mapping[str, str]) -> None:
        """Set the sub-keys of an existing disk if they differ."""
        if after != self.existing[slot]:
            text = render_option(slot, after, self.schema)
            self.change.sets[slot] = text
            self.change.predicted[slot] = text

    def grow_and_move(self, disk: Disk, after: dict[str, str], current: str | None) -> None:
        """Note the growth of an existing disk and its move to another storage than `current`."""
        slot = disk.slot
        size = self._grown_size(disk)
        if size is not None:
            self.change.grown[slot] = size
            after["size"] = render_size(size)
        storage = None if current in (None, disk.storage) else disk.storage
        if storage is not None:
            self.change.moved[slot] = storage
            self.need_space(disk, storage)
            after[self.file_key] = f"{storage}:moved"
        if size is not None or storage is not None:
            self.change.after[slot] = render_option(slot, after, self.schema)

    def _grown_size(self, disk: Disk) -> int | None:
        """Return the bytes to which a disk grows, or None. Raises ValidationFailed if it shrinks."""
        size = read_size(self.existing[disk.slot].get("size"))
        if disk.size is None or size is None or disk.size == size:
            return None
        if disk.size > size:
            return disk.size
        existing_size, wanted = readable_sizes(size, disk.size)
        raise ValidationFailed(
            attempted=f"{self.noun} {disk.slot} of {self.desired.guest.label} was not changed",
            answer=f"it has {existing_size} and cannot shrink to {wanted}",
            next_step=f"PVE cannot shrink disks: write {render_size(size)}, or copy to a new disk",
            reason="shrink",
        )


def with_options(disk: Disk, existing: Mapping[str, str], schema: Schema) -> dict[str, str]:
    """Return the sub-keys of an existing disk, overwritten by the requested ones."""
    fmt = sub_keys_of(disk.slot, schema)
    after = dict(existing)
    for name, value in disk.options.items():
        if value is None:
            after.pop(name, None)
            continue
        if same(name, value, existing.get(name), fmt):
            continue
        after[name] = canonical_sub_key(disk.slot, name, value, schema)
    return after
