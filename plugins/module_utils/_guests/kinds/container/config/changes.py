# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options to set and to delete so that a configuration becomes the desired one (pure).

Values are compared by meaning: tags as sets, MACs in upper case, sizes as bytes, property strings
by key, PVE's own default for a missing option. Options and sub-keys that the task does not mention
stay unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ....._foundation.core.errors import FleetError, ValidationFailed
from ....._foundation.core.quantities import GIB, render_gib, render_size
from ....._foundation.schema.formats import Schema, render_option
from ....._foundation.schema.lxc import LXC
from ...config.change import (
    ConfigChange,
    ConfigUpdate,
    DriveChange,
    SubKeys,
    VolumeUpdate,
    with_options,
)
from ...hardware import DesiredContainer, Disk
from .actual import is_volume, mounts, read_environment, render_environment, storage_of, volumes_in

# Defaults of a new container that is not cloned. By default PVE would create a privileged one.
NEW_CONTAINER: Mapping[str, str] = {"unprivileged": "1"}
_NIC = re.compile(r"^net(?=\d+$)")
_BRIDGE = "vmbr0"


def all_changes(
    desired: DesiredContainer, target: Mapping[str, str], *, new: bool = False
) -> ConfigChange:
    """Return the change from `target` to the desired configuration; `target` is empty for a `new`
    container. The differences that PVE cannot change are in `drives.refused`.
    """
    update = _ContainerConfigUpdate(desired, target, new)
    update.set_scalars()
    update.set_privilege()
    update.change_drives(change_volumes(desired, target, new=new))
    update.unset_options()
    update.set_property_strings()
    update.set_environment()
    update.predict_template()
    update.set_tags()
    update.set_notes()
    update.drives.refused |= update.refused
    return update.change


@dataclass
class _ContainerConfigUpdate(ConfigUpdate):
    """The desired container beside its present configuration, and the change from both."""

    desired: DesiredContainer
    refused: dict[str, FleetError] = field(default_factory=dict)
    defaults: ClassVar[Mapping[str, str]] = NEW_CONTAINER
    name_key: ClassVar[str] = "hostname"
    schema: ClassVar[Schema] = LXC
    of_nic: ClassVar[re.Pattern[str]] = _NIC

    def set_privilege(self) -> None:
        """Set whether a new container is unprivileged: API and schema of PVE differ in the default.

        A difference in an existing container is refused.
        """
        if self.new:
            default = self.defaults["unprivileged"]
            scalars = self.desired.hardware.scalars
            self.sets["unprivileged"] = scalars.get("unprivileged", default)
            return
        if "unprivileged" not in self.sets:
            return
        wanted = self.sets.pop("unprivileged")
        kinds = {"0": "privileged", "1": "unprivileged"}
        now = kinds[self.target.get("unprivileged", "0")]
        self.refused["unprivileged"] = ValidationFailed(
            f"{self.desired.guest.label} could not be made {kinds[wanted]}: it is {now}, which "
            "PVE fixes at creation",
            "Back it up and restore it with the other setting, or leave it out",
            "unprivileged",
        )

    def desired_values(
        self, key: str, wanted: SubKeys, existing: Mapping[str, str]
    ) -> dict[str, str | None]:
        """Return the sub-keys to set, with the defaults of a new NIC."""
        nic = _NIC.match(key)
        if nic is None or existing:
            return dict(wanted)
        number = key.removeprefix(nic.group())
        return {"name": f"eth{number}", "bridge": _BRIDGE, "type": "veth", **wanted}

    def set_environment(self) -> None:
        """Set the variables that differ; other variables stay."""
        found = read_environment(self.target.get("env", ""))
        merged = dict(found)
        for name, value in self.desired.hardware.environment.items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = value
        # PVE does not keep blanks at the end of a line of the configuration.
        text = render_environment(merged).rstrip()
        if text != render_environment(found):
            self.set_or_delete("env", text)


# The size of a new volume if the task sets none: PVE's own default for the root file system.
DEFAULT_SIZE = 4 * GIB


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
                self.change.volumes[disk.volume] = self.desired.guest.kind.content
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
            f"Volume {disk.slot} of {self.desired.guest.label} could not be planned: {why}",
            next_step,
            "volume",
        )


def paths_of_node(config: Mapping[str, str]) -> dict[str, str]:
    """Return the paths of the node that a configuration mounts, by slot."""
    volumes = volumes_in(config)
    found: dict[str, str] = {}
    for slot, mount in mounts(config).items():
        if slot not in volumes:
            found[slot] = mount.get("volume", "")
    return found
