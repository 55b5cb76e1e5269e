# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What happens to drives: new ones, options of old ones, growing, moving, detaching and removing
(pure).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..._core.errors import ValidationFailed
from ..._core.propstring import same
from ..._core.quantities import read_size, render_gib, render_size
from ..._schema.formats import canonical_sub_key, render_option, sub_keys_of
from ..model import Desired, Disk
from .actual import CD, DISK, drives, is_cloud_init, is_disk, kind_of, storage_of

# What an EFI or TPM volume is created with; PVE decides its size.
_FIRMWARE_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "efidisk0": {"efitype": "4m", "pre-enrolled-keys": "1"},
    "tpmstate0": {"version": "v2.0"},
}

# Storages whose disks are raw (plugindata and get_formats of each plugin).
RAW_ONLY = frozenset("lvmthin zfspool zfs rbd btrfs iscsi iscsidirect".split())


@dataclass(frozen=True)
class DriveChange:
    """`sets` goes into the update; `after` is how a drive looks when all is done."""

    sets: Mapping[str, str] = field(default_factory=dict)
    # how PVE will show a volume that `sets` creates
    shown: Mapping[str, str] = field(default_factory=dict)
    detached: frozenset[str] = frozenset()  # stay as unusedN
    removed: frozenset[str] = frozenset()  # volume destroyed
    grown: Mapping[str, int] = field(default_factory=dict)  # slot -> bytes
    # slot -> bytes, of new disks that are larger than the image they import
    grown_later: Mapping[str, int] = field(default_factory=dict)
    moved: Mapping[str, str] = field(default_factory=dict)  # slot -> storage
    after: Mapping[str, str] = field(default_factory=dict)
    storages: Mapping[str, str] = field(default_factory=dict)  # storage -> content it must take
    # volume ID that must exist -> content
    volumes: Mapping[str, str] = field(default_factory=dict)
    # slot -> storage, format
    formats: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def keys(self) -> set[str]:
        return {*self.sets, *self.detached, *self.removed, *self.grown, *self.moved}


def change_drives(desired: Desired, target: Mapping[str, str]) -> DriveChange:
    """Return what makes the drives of `target` the desired ones.

    Raises ValidationFailed for a disk that would shrink and for a new one without a size.
    """
    update = _DriveUpdate(desired, drives(target))
    for disk in desired.disks:
        is_unused = disk.slot.startswith("unused")
        if not is_unused:
            update.change_drive(disk)
        elif disk.slot in target:
            update.removed.add(disk.slot)
    if desired.disks_exact:
        update.detach_unlisted()
    update.add_cloud_init_drive()
    update.add_efi_disk()
    return DriveChange(
        sets=update.sets,
        shown=update.shown,
        detached=frozenset(update.detached),
        removed=frozenset(update.removed),
        grown=update.grown,
        moved=update.moved,
        after=update.after,
        storages=update.storages,
        volumes=update.volumes,
        formats=update.formats,
    )


@dataclass
class _DriveUpdate:
    """The desired drives beside those that the VM has, and what grows from both."""

    desired: Desired
    existing: Mapping[str, Mapping[str, str]]  # sub-keys of drives by slot
    sets: dict[str, str] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    detached: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    grown: dict[str, int] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    storages: dict[str, str] = field(default_factory=dict)
    volumes: dict[str, str] = field(default_factory=dict)
    formats: dict[str, tuple[str, str]] = field(default_factory=dict)

    def change_drive(self, disk: Disk) -> None:
        """Create, update, detach or remove a drive."""
        if disk.slot in self.existing:
            self._change_existing(disk)
        elif disk.state == "present":
            self._create(disk)

    def _change_existing(self, disk: Disk) -> None:
        if disk.state == "present":
            self._update(disk)
        elif disk.state == "detached":
            self.detached.add(disk.slot)
        else:
            self.removed.add(disk.slot)

    def detach_unlisted(self) -> None:
        """Detach the disks that an exact list does not have; it does not cover firmware."""
        unlisted = self.existing.keys() - self.desired.slots - _FIRMWARE_OPTIONS.keys()
        for slot in unlisted:
            if is_disk(self.existing[slot]):
                self.detached.add(slot)

    def add_efi_disk(self) -> None:
        """Add the disk that UEFI needs, where the task and the VM have none."""
        is_uefi = self.desired.scalars.get("bios") == "ovmf"
        slots = {*self.desired.slots, *self.existing}
        if is_uefi and "efidisk0" not in slots:
            self._create(Disk("efidisk0", storage=self._main_storage()))

    def add_cloud_init_drive(self) -> None:
        """Add the cloud-init drive where cloud-init is asked for and the VM has none."""
        slot = self.desired.cloud_init_drive
        has_drive = any(map(is_cloud_init, self.existing.values()))
        if has_drive:
            return
        if slot is None:
            return
        self._require_free(slot)
        storage = self.desired.cloud_init_storage or self._main_storage()
        self.storages[storage] = "images"
        self.sets[slot] = f"{storage}:cloudinit"
        self.shown[slot] = f"{storage}:vm-cloudinit,media=cdrom"

    def _require_free(self, slot: str) -> None:
        """Raise ValidationFailed where the slot of the cloud-init drive is in use."""
        if slot in self.existing:
            user = self.existing[slot].get("file")
        elif slot in self.sets:
            user = "a drive of disks"
        else:
            return
        raise ValidationFailed(
            attempted=f"The cloud-init drive of {self.desired.label} could not be planned",
            answer=f"{slot} is in use: {user}",
            next_step=(
                "Name a free drive with cloud_init.drive; one that goes is free for the next task"
            ),
            reason="cloud-init drive",
        )

    def _main_storage(self) -> str:
        """Return the storage of the first disk, for drives that belong to the VM as a whole."""
        storages: list[str | None] = []
        for disk in self.desired.disks:
            is_present = disk.state == "present"
            if is_present and not disk.is_cdrom:
                storages.append(disk.storage)
        for _slot, drive in sorted(self.existing.items()):
            media = drive.get("media", "disk")
            if media == "disk":
                storages.append(storage_of(drive))
        named = filter(None, storages)
        return next(named, self.desired.default_storage)

    def _create(self, disk: Disk) -> None:
        if disk.volume:
            self._attach(disk, disk.volume)
        else:
            self._allocate(disk)

    def _attach(self, disk: Disk, volume: str) -> None:
        """Attach an existing volume, such as an ISO."""
        text = render_option(disk.slot, {**disk.options, "file": volume})
        self.sets[disk.slot] = text
        self.shown[disk.slot] = text
        self._need_iso(volume)

    def _need_iso(self, volume: str) -> None:
        if volume != "none":
            self.volumes[volume] = "iso"

    def _allocate(self, disk: Disk) -> None:
        """Create a volume: firmware, an imported image, or an empty disk."""
        slot = disk.slot
        storage = disk.storage or self.desired.default_storage
        options = dict(_FIRMWARE_OPTIONS.get(slot, {}))
        for name, value in disk.options.items():
            if value is not None:
                options[name] = value
        shown = {**options, "file": f"{storage}:new"}
        if disk.size is not None:
            shown["size"] = render_size(disk.size)
        written = {
            **options,
            "file": f"{storage}:{self._allocation_of(disk)}",
            "import-from": disk.import_from,
            "format": disk.format,
        }
        if disk.import_from:
            self.volumes[disk.import_from] = "import"
        self._need_space(disk, storage)
        self.sets[slot] = render_option(slot, written)
        self.shown[slot] = render_option(slot, shown)

    def _need_space(self, disk: Disk, storage: str) -> None:
        """Note what the storage of a new or moved volume must take."""
        self.storages[storage] = "images"
        if disk.format:
            self.formats[disk.slot] = storage, disk.format

    def _allocation_of(self, disk: Disk) -> str:
        """Return how much PVE allocates: 0 for an image, GiB for a disk; firmware is always 1."""
        if disk.import_from:
            return "0"
        if disk.slot in _FIRMWARE_OPTIONS:
            return "1"
        if disk.size is None:
            raise ValidationFailed(
                attempted=f"Disk {disk.slot} of {self.desired.label} could not be planned",
                answer="it does not exist yet and has no size",
                next_step="Give it a size, an image to import or an ISO",
                reason="size missing",
            )
        return render_gib(disk.size)

    def _update(self, disk: Disk) -> None:
        """Change the options of a drive, then its size and its storage."""
        slot = disk.slot
        existing = self.existing[slot]
        _require_kind(self.desired.label, disk, existing)
        after = _with_options(disk, existing)
        if disk.volume and disk.volume != existing.get("file"):
            after["file"] = disk.volume
            after.pop("size", None)
            self._need_iso(disk.volume)
        if after != existing:
            text = render_option(slot, after)
            self.sets[slot] = text
            self.shown[slot] = text
        size = _grown_size(self.desired.label, disk, existing)
        if size is not None:
            self.grown[slot] = size
            after["size"] = render_size(size)
        storage = _new_storage(disk, existing)
        if storage is not None:
            self.moved[slot] = storage
            self._need_space(disk, storage)
            after["file"] = f"{storage}:moved"
        if size is not None or storage is not None:
            self.after[slot] = render_option(slot, after)


def _require_kind(label: str, disk: Disk, existing: Mapping[str, str]) -> None:
    """Raise ValidationFailed where a drive would replace one of another kind.

    A drive is only removed by a task that asks for that.
    """
    found = kind_of(existing)
    wanted = found
    if disk.is_cdrom:
        wanted = CD
    elif disk.has_content:
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


def _with_options(disk: Disk, existing: Mapping[str, str]) -> dict[str, str]:
    """Return the sub-keys of an existing drive with those that are asked for."""
    fmt = sub_keys_of(disk.slot)
    after = dict(existing)
    for name, value in disk.options.items():
        if value is None:
            after.pop(name, None)
            continue
        if same(name, value, existing.get(name), fmt):
            continue
        if _is_enrolled(name, value, existing):
            continue
        after[name] = canonical_sub_key(disk.slot, name, value)
    return after


def _is_enrolled(name: str, value: str, existing: Mapping[str, str]) -> bool:
    """Return whether the firmware disk has the certificates of 2023 that are asked for.

    PVE notes all of them as C(2023k), whichever of the three values was written (qemu-server,
    OVMF.pm).
    """
    is_noted = existing.get(name) == "2023k"
    is_asked_for = value.startswith("2023")
    return name == "ms-cert" and is_noted and is_asked_for


def _grown_size(label: str, disk: Disk, existing: Mapping[str, str]) -> int | None:
    """Return the bytes to which the disk grows, or None where it has its size.

    Raises ValidationFailed where it would shrink.
    """
    size = read_size(existing.get("size"))
    if disk.size is None or size is None:
        return None
    if disk.size == size:
        return None
    if disk.size > size:
        return disk.size
    raise ValidationFailed(
        attempted=f"Disk {disk.slot} of {label} was not changed",
        answer=f"it has {render_size(size)} and cannot shrink to {render_size(disk.size)}",
        next_step="PVE cannot shrink disks: ask for the size it has, or make a new disk and copy",
        reason="shrink",
    )


def _new_storage(disk: Disk, existing: Mapping[str, str]) -> str | None:
    """Return the storage that the disk is moved to, or None where it stays."""
    current = storage_of(existing)
    if current in (None, disk.storage):
        return None
    return disk.storage


def unconverted_disks(config: Mapping[str, str], bases: Collection[str]) -> list[str]:
    """Return the disks of a template that an interrupted conversion left as they were, by slot.

    PVE marks the VM as a template, and then converts one disk after the other (qemu-server:
    API2/Qemu.pm, template; QemuServer.pm, template_create).
    """
    if config.get("template") != "1":
        return []
    found: list[str] = []
    for slot, drive in drives(config).items():
        can_be_base = storage_of(drive) in bases and is_disk(drive)
        volume = drive.get("file", "").rpartition(":")[2]
        name = volume.rpartition("/")[2]
        is_base = name.startswith(("base-", "basevol-"))
        if can_be_base and not is_base:
            found.append(slot)
    return sorted(found)
