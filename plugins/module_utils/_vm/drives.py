# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What happens to drives: new ones, options of old ones, growing, moving, detaching and removing (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .._core.errors import ValidationFailed
from .._core.propstring import canonical, render, same
from .._core.quantities import read_size, render_gib, render_size
from .._schema.formats import format_of
from .actual import drives, is_cloud_init, is_disk, storage_of
from .model import Desired, Disk

# What an EFI or TPM volume is created with; PVE decides its size.
_FIRMWARE = {"efidisk0": {"efitype": "4m", "pre-enrolled-keys": "1"}, "tpmstate0": {"version": "v2.0"}}

# Storages whose disks are raw (plugindata and get_formats of each plugin).
RAW_ONLY = frozenset("lvmthin zfspool zfs rbd btrfs iscsi iscsidirect".split())


@dataclass
class DriveChange:
    """`sets` goes into the update; `after` is how a drive looks when all is done."""

    sets: dict[str, str] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)  # how PVE will show a volume that `sets` creates
    detached: set[str] = field(default_factory=set)  # stay as unusedN
    removed: set[str] = field(default_factory=set)  # volume destroyed
    grown: dict[str, int] = field(default_factory=dict)  # slot -> bytes
    moved: dict[str, str] = field(default_factory=dict)  # slot -> storage
    after: dict[str, str] = field(default_factory=dict)
    storages: dict[str, str] = field(default_factory=dict)  # storage -> content it must take
    volumes: dict[str, str] = field(default_factory=dict)  # volume ID that must exist -> content
    formats: dict[str, tuple[str, str]] = field(default_factory=dict)  # slot -> storage, format it must be able to hold

    @property
    def keys(self) -> set[str]:
        return {*self.sets, *self.detached, *self.removed, *self.grown, *self.moved}


def change_drives(desired: Desired, target: Mapping[str, str]) -> DriveChange:
    """Return what makes the drives of `target` the desired ones.

    Raises ValidationFailed for a disk that would shrink and for a new one without a size.
    """
    change = DriveChange()
    found = drives(target)
    for disk in desired.disks:
        there = found.get(disk.slot)
        if disk.slot.startswith("unused"):
            change.removed |= {disk.slot} & target.keys()
        elif disk.state != "present":
            if there is not None:
                (change.detached if disk.state == "detached" else change.removed).add(disk.slot)
        elif there is None:
            _create(disk, desired, change)
        else:
            _require_kind(desired.label, disk, there)
            _update(desired.label, disk, there, change)
    if desired.disks_exact:
        listed = {disk.slot for disk in desired.disks}
        change.detached |= {slot for slot, drive in found.items() if slot not in listed and _is_data(slot, drive)}
    _cloud_init_drive(desired, found, change)
    named = {disk.slot for disk in desired.disks} | found.keys()
    if desired.plain.get("bios") == "ovmf" and "efidisk0" not in named:
        _create(Disk("efidisk0", storage=_main_storage(desired, found)), desired, change)
    return change


def _is_data(slot: str, drive: Mapping[str, str]) -> bool:
    """What an exact list of disks speaks of: neither firmware nor CD nor cloud-init drives."""
    return is_disk(drive) and slot not in _FIRMWARE


def _create(disk: Disk, desired: Desired, change: DriveChange) -> None:
    fmt = format_of(disk.slot) or {}
    parts = {key: value for key, value in disk.options.items() if value is not None}
    if disk.volume:
        parts["file"] = disk.volume
        change.sets[disk.slot] = change.shown[disk.slot] = render(parts, fmt)
        if disk.volume != "none":
            change.volumes[disk.volume] = "iso"
        return
    storage = disk.storage or desired.default_storage
    change.storages[storage] = "images"
    parts = {**_FIRMWARE.get(disk.slot, {}), **parts}
    if disk.format:
        parts["format"] = disk.format
        change.formats[disk.slot] = storage, disk.format
    shown = dict(parts, file=f"{storage}:new")
    shown.pop("format", None)
    if disk.import_from:
        parts.update({"file": f"{storage}:0", "import-from": disk.import_from})
        change.volumes[disk.import_from] = "import"
    elif disk.slot in _FIRMWARE:
        parts["file"] = f"{storage}:1"
    elif disk.size is None:
        raise ValidationFailed(
            attempted=f"Disk {disk.slot} of {desired.label} could not be planned",
            answer="it does not exist yet and has no size",
            next_step="Give it a size, an image to import or an ISO",
            reason="size missing",
        )
    else:
        parts["file"] = f"{storage}:{render_gib(disk.size)}"
    if disk.size is not None:
        shown["size"] = render_size(disk.size)
    change.sets[disk.slot] = render(parts, fmt)
    change.shown[disk.slot] = render(shown, fmt)


def _require_kind(label: str, disk: Disk, there: Mapping[str, str]) -> None:
    """Raise ValidationFailed where one kind of drive would take the place of another: only who asks loses a drive."""
    holds = "the cloud-init drive" if is_cloud_init(there) else "a disk" if is_disk(there) else "a CD drive"
    wants = "a CD drive" if disk.is_cdrom else "a disk"
    is_told = disk.is_cdrom or any((disk.size, disk.storage, disk.import_from, disk.format))
    if is_told and wants != holds:
        raise ValidationFailed(
            attempted=f"Drive {disk.slot} of {label} was left alone",
            answer=f"it is {holds}, and {wants} is asked for",
            next_step="Name a drive that is free, or take this one away first, in a task with state=absent or detached",
            reason="other kind of drive",
        )


def _update(label: str, disk: Disk, there: Mapping[str, str], change: DriveChange) -> None:
    fmt = format_of(disk.slot) or {}
    merged = dict(there)
    for name, value in disk.options.items():
        if value is None:
            merged.pop(name, None)
        elif not same(name, value, there.get(name), fmt):
            merged[name] = canonical(value, fmt.get(name, {}))
    if disk.volume and disk.volume != there.get("file"):
        merged["file"] = disk.volume
        merged.pop("size", None)
        if disk.volume != "none":
            change.volumes[disk.volume] = "iso"
    if merged != there:
        change.sets[disk.slot] = change.shown[disk.slot] = render(merged, fmt)
    size = read_size(there.get("size"))
    if disk.size is not None and size is not None:
        if disk.size < size:
            raise ValidationFailed(
                attempted=f"Disk {disk.slot} of {label} was left alone",
                answer=f"it has {render_size(size)} and cannot shrink to {render_size(disk.size)}",
                next_step="PVE cannot shrink disks: ask for the size it has, or make a new disk and copy",
                reason="shrink",
            )
        if disk.size > size:
            change.grown[disk.slot] = disk.size
            merged["size"] = render_size(disk.size)
    if disk.storage and storage_of(there) and disk.storage != storage_of(there):
        change.moved[disk.slot] = disk.storage
        change.storages[disk.storage] = "images"
        if disk.format:
            change.formats[disk.slot] = disk.storage, disk.format
        merged["file"] = f"{disk.storage}:moved"
    if disk.slot in change.grown or disk.slot in change.moved:
        change.after[disk.slot] = render(merged, fmt)


def _cloud_init_drive(desired: Desired, found: Mapping[str, Mapping[str, str]], change: DriveChange) -> None:
    """Add the cloud-init drive where cloud-init is asked for and no drive is one."""
    slot = desired.cloud_init_drive
    if slot is None or any(is_cloud_init(drive) for drive in found.values()):
        return
    if slot in found or slot in change.sets:
        file = found[slot].get("file") if slot in found else "a drive of disks"
        raise ValidationFailed(
            attempted=f"The cloud-init drive of {desired.label} could not be planned",
            answer=f"{slot} is in use: {file}",
            next_step="Name a free drive with cloud_init.drive; one that goes is free for the next task",
            reason="cloud-init drive",
        )
    storage = desired.cloud_init_storage or _main_storage(desired, found)
    change.storages[storage] = "images"
    change.sets[slot] = f"{storage}:cloudinit"
    change.shown[slot] = f"{storage}:vm-cloudinit,media=cdrom"


def _main_storage(desired: Desired, found: Mapping[str, Mapping[str, str]]) -> str:
    """Return the storage of the first disk, so that what belongs to it lies beside it."""
    for disk in desired.disks:
        if disk.state == "present" and disk.storage and not disk.is_cdrom:
            return disk.storage
    for slot in sorted(found):
        storage = storage_of(found[slot])
        if storage and found[slot].get("media") != "cdrom":
            return storage
    return desired.default_storage
