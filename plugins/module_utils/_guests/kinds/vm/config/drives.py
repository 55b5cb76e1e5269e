# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of drives: new ones, options of old ones, growing, moving, detaching and removing
(pure).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ....._foundation.core.errors import ValidationFailed
from ....._foundation.core.quantities import render_gib, render_size
from ....._foundation.schema.formats import QEMU, Schema, render_option
from ...config.change import DriveChange
from ...config.volumes import VolumeUpdate, with_options
from ...hardware import Disk
from ...marker import Marker, split_notes
from ..model import DesiredVm
from .actual import CD, DISK, drives, is_cloud_init, is_disk, kind_of, storage_of

# The options of a new EFI or TPM volume; PVE decides its size.
_FIRMWARE_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "efidisk0": {"efitype": "4m", "pre-enrolled-keys": "1"},
    "tpmstate0": {"version": "v2.0"},
}

# Sub-keys of a disk that belong to its volume.
_OF_VOLUME = frozenset(("file", "size", "format"))


def change_drives(desired: DesiredVm, target: Mapping[str, str]) -> DriveChange:
    """Return the change that makes the drives of `target` the desired ones.

    `refused` contains disks that would shrink, new disks without a size, drives of another kind,
    and a cloud-init drive whose slot is in use.
    """
    _notes, marker = split_notes(target.get("description"))
    update = _DriveUpdate(desired=desired, existing=drives(target), marker=marker)
    update.change_all(desired.hardware.disks, target)
    update.add_cloud_init_drive()
    update.add_efi_disk()
    return update.change


@dataclass
class _DriveUpdate(VolumeUpdate):
    """The desired drives beside the drives of the VM, and the change that results from both."""

    desired: DesiredVm
    marker: Marker = Marker()
    schema: ClassVar[Schema] = QEMU
    file_key: ClassVar[str] = "file"
    noun: ClassVar[str] = "Disk"

    def desired_options(self, disk: Disk, existing: Mapping[str, str]) -> dict[str, str]:
        """Return the sub-keys of a drive, with the desired ones over the existing ones.

        A volume that does not exist yet has no name.
        """
        after = _with_options(disk, existing)
        storage = disk.storage or storage_of(existing)
        if disk.volume:
            after["file"] = disk.volume
        elif disk.is_cdrom or storage != storage_of(existing):
            after["file"] = f"{storage}:new"
        if disk.size is not None:
            after["size"] = render_size(disk.size)
        return after

    def detach_unlisted(self) -> None:
        """Detach the disks that are missing from an exact list; firmware disks stay."""
        unlisted = self.existing.keys() - self.desired.hardware.slots - _FIRMWARE_OPTIONS.keys()
        for slot in unlisted:
            if is_disk(self.existing[slot]):
                self.change.detached.add(slot)

    def add_efi_disk(self) -> None:
        """Add the disk that UEFI needs if neither the task nor the VM has one."""
        is_uefi = self.desired.hardware.scalars.get("bios") == "ovmf"
        slots = {*self.desired.hardware.slots, *self.existing}
        if is_uefi and "efidisk0" not in slots:
            self.create(Disk("efidisk0", storage=self._main_storage()))

    def add_cloud_init_drive(self) -> None:
        """Add the cloud-init drive if cloud-init is requested and the VM has none, or move it to
        the named slot. A VM can have only one drive (qemu-server: API2/Qemu.pm, create_disks).
        """
        named = self.desired.hardware.cloud_init_drive
        if named is None:
            return
        kept = {slot for slot, drive in self.existing.items() if is_cloud_init(drive)}
        kept -= self.change.removed
        if kept and named in ("", *kept):
            return
        self.change.removed |= kept
        slot = named or "ide2"
        storage = self.desired.hardware.cloud_init_storage or self._main_storage()
        user = self._user_of(slot)
        if user:
            self.change.refused[slot] = self._in_use(slot, user)
            self.change.after[slot] = f"{storage}:cloudinit,media=cdrom"
            return
        self.change.storages[storage] = "images"
        self.change.sets[slot] = f"{storage}:cloudinit"
        self.change.predicted[slot] = f"{storage}:vm-cloudinit,media=cdrom"

    def _user_of(self, slot: str) -> str:
        """Return the drive that uses the slot of the cloud-init drive, or an empty text."""
        if slot in self.existing:
            return str(self.existing[slot].get("file"))
        if slot in self.change.sets:
            return "a drive of disks"
        return ""

    def _in_use(self, slot: str, user: str) -> ValidationFailed:
        return ValidationFailed(
            attempted=f"The cloud-init drive of {self.desired.guest.label} could not be planned",
            answer=f"{slot} is in use: {user}",
            next_step=(
                "Name a free drive with cloud_init.drive; one that goes is free for the next task"
            ),
            reason="cloud-init drive",
        )

    def _main_storage(self) -> str:
        """Return the storage of the first disk, for drives that the task does not list."""
        storages: list[str | None] = []
        for disk in self.desired.hardware.disks:
            is_present = disk.state == "present"
            if is_present and not disk.is_cdrom:
                storages.append(disk.storage)
        for _slot, drive in sorted(self.existing.items()):
            media = drive.get("media", "disk")
            if media == "disk":
                storages.append(storage_of(drive))
        named = filter(None, storages)
        return next(named, self.desired.hardware.default_storage)

    def create(self, disk: Disk) -> None:
        if disk.volume:
            self._attach(disk, disk.volume)
        else:
            self._allocate(disk)

    def _attach(self, disk: Disk, volume: str) -> None:
        """Attach an existing volume: an ISO or a disk."""
        text = render_option(disk.slot, {**disk.options, "file": volume})
        self.change.sets[disk.slot] = text
        self.change.predicted[disk.slot] = text
        if volume != "none":
            self.change.volumes[volume] = "iso" if disk.is_cdrom else "images"

    def _is_replaced(self, existing: Mapping[str, str]) -> bool:
        """Return whether the system disk comes from the image that replaces it: the notes name the
        image, or an interrupted run has noted the volume that was there before.
        """
        replacement = self.desired.guest.replacement
        if replacement is None:
            return False
        if self.marker.completed == replacement:
            return True
        return self.marker.has_replaced(replacement.image, existing.get("file", ""))

    def _replace(self, disk: Disk, existing: Mapping[str, str]) -> None:
        """Replace the volume of a disk by an image of a template; PVE keeps the old volume as an
        unused one (qemu-server: API2/Qemu.pm, update_vm_api).
        """
        merged = _with_options(disk, existing)
        options = {name: value for name, value in merged.items() if name not in _OF_VOLUME}
        storage = disk.storage or storage_of(existing)
        self._allocate(replace(disk, storage=storage, options=options))

    def _allocate(self, disk: Disk) -> None:
        """Create a volume: firmware, an imported image, or an empty disk."""
        slot = disk.slot
        storage = disk.storage or self.desired.hardware.default_storage
        options = dict(_FIRMWARE_OPTIONS.get(slot, {}))
        for name, value in disk.options.items():
            if value is not None:
                options[name] = value
        options_after = {**options, "file": f"{storage}:new"}
        if disk.size is not None:
            options_after["size"] = render_size(disk.size)
        written = {
            **options,
            "file": f"{storage}:{self._allocation_of(disk)}",
            "import-from": disk.import_from,
            "format": disk.format,
        }
        if disk.import_from:
            self.change.volumes[disk.import_from] = "images" if disk.replaces else "import"
        self.need_space(disk, storage)
        self.change.sets[slot] = render_option(slot, written)
        self.change.predicted[slot] = render_option(slot, options_after)

    def _allocation_of(self, disk: Disk) -> str:
        """Return the size in the request: 0 for an image, GiB for a disk, 1 for firmware."""
        if disk.import_from:
            return "0"
        if disk.slot in _FIRMWARE_OPTIONS:
            return "1"
        if disk.size is None:
            raise ValidationFailed(
                attempted=f"Disk {disk.slot} of {self.desired.guest.label} could not be planned",
                answer="it does not exist yet and has no size",
                next_step="Give it a size, an image to import or an ISO",
                reason="size missing",
            )
        return render_gib(disk.size)

    def update(self, disk: Disk) -> None:
        """Change the options of a drive, then its size and its storage."""
        slot = disk.slot
        existing = self.existing[slot]
        _require_kind(self.desired.guest.label, disk, existing)
        if disk.replaces and not self._is_replaced(existing):
            self._replace(disk, existing)
            return
        after = _with_options(disk, existing)
        if disk.volume and disk.volume != existing.get("file"):
            if not disk.is_cdrom:
                raise _has_other_volume(self.desired.guest.label, disk, existing)
            after["file"] = disk.volume
            after.pop("size", None)
            if disk.volume != "none":
                self.change.volumes[disk.volume] = "iso"
        self.set_options(slot, after)
        self.grow_and_move(disk, after, storage_of(existing))


def _require_kind(label: str, disk: Disk, existing: Mapping[str, str]) -> None:
    """Raise ValidationFailed if a drive would replace a drive of another kind.

    Only a task that explicitly removes a drive may remove it.
    """
    found = kind_of(existing)
    wanted = found
    if disk.is_cdrom:
        wanted = CD
    elif disk.has_content or disk.volume:
        wanted = DISK
    if wanted == found:
        return
    raise ValidationFailed(
        attempted=f"Drive {disk.slot} of {label} was not changed",
        answer=f"it is {found}, and {wanted} is asked for",
        next_step=(
            "Name a drive that is free, or take this one away first, in a task with"
            " state=absent or detached"
        ),
        reason="other kind of drive",
    )


def _has_other_volume(label: str, disk: Disk, existing: Mapping[str, str]) -> ValidationFailed:
    return ValidationFailed(
        attempted=f"Disk {disk.slot} of {label} was not changed",
        answer=f"it has volume {existing.get('file')}, not {disk.volume}",
        next_step="Name a free slot, or detach this disk first, in a task with state=detached",
        reason="other volume",
    )


def _with_options(disk: Disk, existing: Mapping[str, str]) -> dict[str, str]:
    """Return the sub-keys of an existing drive, overwritten by the requested ones."""
    after = with_options(disk, existing, QEMU)
    certificates = disk.options.get("ms-cert") or ""
    if _is_enrolled(certificates, existing):
        after["ms-cert"] = existing["ms-cert"]
    return after


def _is_enrolled(value: str, existing: Mapping[str, str]) -> bool:
    """Return whether the firmware disk has the requested certificates of 2023.

    PVE stores C(2023k) for each of the three values that can be written (qemu-server, OVMF.pm).
    """
    return existing.get("ms-cert") == "2023k" and value.startswith("2023")
