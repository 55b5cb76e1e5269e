# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of volumes: new ones, options of old ones, growing, moving, detaching and removing
(pure).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ....._foundation.core.errors import ValidationFailed
from ....._foundation.core.quantities import GIB, render_gib, render_size
from ....._foundation.schema.formats import Schema, render_option
from ....._foundation.schema.lxc import LXC
from ...config.change import DriveChange
from ...config.volumes import VolumeUpdate, with_options
from ...hardware import Disk
from ..model import DesiredContainer
from .actual import is_volume, mounts, storage_of, volumes_in

# The size of a new volume if the task sets none: PVE's own default for the root file system.
DEFAULT_SIZE = 4 * GIB
# The content that the storage of a volume must allow.
_CONTENT = "rootdir"


def change_volumes(
    desired: DesiredContainer, target: Mapping[str, str], *, new: bool
) -> DriveChange:
    """Return the change that makes the volumes of `target` the desired ones.

    `refused` has volumes that would shrink, mount points without a path, and existing volumes for
    a slot that another volume occupies.
    """
    update = _VolumeUpdate(desired, mounts(target))
    volumes = list(desired.hardware.disks)
    if new and "rootfs" not in desired.hardware.slots:
        volumes.insert(0, Disk("rootfs"))
    update.change_all(volumes, target)
    return update.change


@dataclass
class _VolumeUpdate(VolumeUpdate):
    """The desired and the existing volumes of a container, and the change between them."""

    desired: DesiredContainer
    schema: ClassVar[Schema] = LXC
    file_key: ClassVar[str] = "volume"
    noun: ClassVar[str] = "Volume"

    def desired_options(self, disk: Disk, existing: Mapping[str, str]) -> dict[str, str]:
        """Return the sub-keys of a mount, with the desired ones over the existing ones."""
        after = with_options(disk, existing, LXC)
        if disk.volume:
            after["volume"] = disk.volume
        elif disk.storage and disk.storage != storage_of(existing.get("volume", "")):
            after["volume"] = f"{disk.storage}:new"
        if disk.size is not None:
            after["size"] = render_size(disk.size)
        return after

    def detach_unlisted(self) -> None:
        """Detach the mount points that are missing from an exact list."""
        unlisted = self.existing.keys() - self.desired.hardware.slots - {"rootfs"}
        self.change.detached |= unlisted

    def create(self, disk: Disk) -> None:
        """Mount a new volume, or an existing one."""
        is_mount = disk.slot != "rootfs"
        if is_mount and not disk.options.get("mp"):
            raise self._refusal(disk, "it does not exist yet and has no path", "Give it a path")
        options = {name: value for name, value in disk.options.items() if value is not None}
        if disk.volume:
            written = {**options, "volume": disk.volume}
            options_after = written
            if is_volume(disk.volume):
                self.change.volumes[disk.volume] = _CONTENT
        else:
            storage = disk.storage or self.desired.hardware.default_storage
            size = disk.size or DEFAULT_SIZE
            written = {**options, "volume": f"{storage}:{render_gib(size)}"}
            options_after = {**options, "volume": f"{storage}:new", "size": render_size(size)}
            self.need_space(disk, storage)
        self.change.sets[disk.slot] = render_option(disk.slot, written, LXC)
        self.change.predicted[disk.slot] = render_option(disk.slot, options_after, LXC)

    def update(self, disk: Disk) -> None:
        """Change the options of a volume, then its size and its storage."""
        slot = disk.slot
        existing = self.existing[slot]
        source = existing.get("volume", "")
        if disk.volume not in (None, source):
            raise self._refusal(
                disk, f"it mounts {source}", "Name a free slot, or detach this one first"
            )
        after = with_options(disk, existing, LXC)
        self.set_options(slot, after)
        if is_volume(source):
            self.grow_and_move(disk, after, storage_of(source))

    def _refusal(self, disk: Disk, why: str, next_step: str) -> ValidationFailed:
        return ValidationFailed(
            attempted=f"Volume {disk.slot} of {self.desired.guest.label} could not be planned",
            answer=why,
            next_step=next_step,
            reason="volume",
        )


def paths_of_node(config: Mapping[str, str]) -> dict[str, str]:
    """Return the paths of the node that a configuration mounts, by slot."""
    volumes = volumes_in(config)
    found: dict[str, str] = {}
    for slot, mount in mounts(config).items():
        if slot not in volumes:
            found[slot] = mount.get("volume", "")
    return found
