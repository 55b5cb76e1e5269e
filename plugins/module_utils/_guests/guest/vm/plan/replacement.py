# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replaces the system disk of a VM by the disk of another image (pure)."""

from __future__ import annotations

from dataclasses import replace

from ....._foundation.core.errors import Conflict, ValidationFailed
from ....._foundation.core.quantities import parse_disk_size
from ....kinds.hardware import DesiredVm, Disk
from ....kinds.marker import Marker
from ....kinds.model import Actual
from ....kinds.vm.config.actual import FIRMWARE, drives, is_disk
from ...plan.copies import image_of, image_of_clone


def replaced(desired: DesiredVm, actual: Actual, template: Actual) -> DesiredVm:
    """Return the desired VM with the disk of a template in the place of its system disk.

    The new disk has the size in the task, or else the size of the image. Raises ValidationFailed
    unless the task stops or starts the VM, and if the disk would become smaller and the task does
    not set its size; Conflict unless the template has exactly one disk, in a slot that the VM has too.
    """
    image = image_of_clone(template)
    if image is None:
        raise _impossible(actual, template, "the template has no version")
    if desired.guest.state not in ("stopped", "started"):
        raise ValidationFailed(
            f"The image of {actual.label} was not replaced: it comes from another image than "
            f"{image.label}, and state is {desired.guest.state}",
            "Set state=stopped, or state=started to stop it and start it again",
            "replace_image",
        )
    slots = _system_disks(template)
    existing = drives(actual.target)
    if len(slots) != 1 or slots[0] not in existing or not is_disk(existing[slots[0]]):
        listed = ", ".join(slots) or "none"
        raise _impossible(actual, template, f"the disks of the template are {listed}")
    slot = slots[0]
    wanted = {disk.slot: disk for disk in desired.hardware.disks}
    disk = wanted.get(slot, Disk(slot))
    drive = drives(template.target)[slot]
    if disk.size is None:
        _require_size(actual, slot, existing[slot].get("size"), drive.get("size"))
    size = parse_disk_size(drive.get("size", "0"), what=slot)
    wanted[slot] = replace(disk, import_from=drive["file"], replaces=True, image_size=size)
    marker = Marker(origin=template.vmid, image=image)
    return desired.with_hardware(disks=tuple(wanted.values())).with_guest(replacement=marker)


def without_replaced(desired: DesiredVm, first: Actual, current: Actual) -> DesiredVm:
    """Return the desired VM for the rest of a plan, without a replacement that is finished."""
    if desired.guest.replacement is None:
        return desired
    before, now = drives(first.target), drives(current.target)
    disks: list[Disk] = []
    for disk in desired.hardware.disks:
        is_done = disk.replaces and before.get(disk.slot, {}).get("file") != now[disk.slot]["file"]
        disks.append(replace(disk, replaces=False) if is_done else disk)
    return desired.with_hardware(disks=tuple(disks))


def _require_size(actual: Actual, slot: str, old: str | None, new: str | None) -> None:
    """Raise ValidationFailed if a disk without a size in the task would become smaller.

    The size must be in the task: if a run is interrupted before the new disk grows, nothing else
    shows the old size.
    """
    if old is None or new is None:
        return
    if parse_disk_size(old, what=slot) <= parse_disk_size(new, what=slot):
        return
    raise ValidationFailed(
        f"The image of {actual.label} was not replaced: {slot} has {old}, the image has {new}, "
        "and the task does not name a size",
        f"Name the size of {slot} in disks",
        "size missing",
    )


def _system_disks(template: Actual) -> list[str]:
    """Return the disks of a template, except the firmware's."""
    found: list[str] = []
    for slot, drive in sorted(drives(template.target).items()):
        if is_disk(drive) and slot not in FIRMWARE:
            found.append(slot)
    return found


def _impossible(actual: Actual, template: Actual, answer: str) -> Conflict:
    return Conflict(
        f"The image of {actual.label} was not replaced by {image_of(template).label}: {answer}",
        "Create the VM again, or use an image with one disk that the VM has as well",
        "replace_image",
    )
