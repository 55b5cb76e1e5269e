# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses, before the first write, changes that PVE would refuse half way through an update (pure).

The rules come from qemu-server: Qemu.pm, update_vm_api, resize_vm and move_vm_disk; QemuServer.pm,
clone_disk.
"""

from __future__ import annotations

from collections.abc import Mapping

from ......_foundation.core.errors import Conflict, NotSupported, ValidationFailed
from ......_foundation.schema.formats import parse_option
from .....kinds.model import Actual
from .....kinds.vm.config.actual import DRIVE, drives, is_cloud_init
from .....kinds.vm.config.changes import ConfigChange
from .....kinds.vm.config.hotplug import waits_for_stop
from .....kinds.vm.model import DesiredVm
from ....plan import power
from ....plan.refusals import require_one_tenant, require_unprotected

_DEFAULT_MEMORY = "512"
# The sub-keys that PVE uses only to create the disk, with their defaults (qemu-server: Drive.pm;
# API2/Qemu.pm, create_disks). A later change would change the text alone.
_FIXED: Mapping[str, Mapping[str, str]] = {
    "efidisk0": {"efitype": "2m", "pre-enrolled-keys": "0"},
    "tpmstate0": {"version": "v1.2"},
}


def require_preconditions(
    desired: DesiredVm, actual: Actual, change: ConfigChange, after: Mapping[str, str]
) -> None:
    """Raise FleetError for a change that PVE would refuse half way."""
    runs = actual.running and not power.stops_first(desired.guest, actual)
    require_unprotected(desired, actual, taken_drives(change))
    require_one_tenant(desired.guest, actual, after)
    _require_valid_boot(actual, change, after)
    _require_valid_balloon(actual, change)
    _require_valid_firmware(actual, change, after, runs=runs)
    if runs:
        _require_fixed_cloud_init(actual, change)
        _require_no_waiting_disks(actual, change)
        _require_growable(actual, change.drives.grown_later, change.drives.sets)


def _require_fixed_cloud_init(actual: Actual, change: ConfigChange) -> None:
    if not moves_cloud_init(change, actual.target):
        return
    raise Conflict(
        attempted=f"The cloud-init drive of {actual.label} was not moved",
        answer="the VM runs, and PVE adds the new drive only when the old one is unplugged",
        next_step="Stop the VM first, or move the drive in a task with state=stopped",
        reason="running",
    )


def moves_cloud_init(change: ConfigChange, target: Mapping[str, str]) -> bool:
    """Return whether the cloud-init drive is removed and added again: PVE refuses the new one until
    the old one is removed (qemu-server: API2/Qemu.pm, create_disks).
    """
    is_new = any(":cloudinit" in text for text in change.drives.sets.values())
    removed = [drive for slot, drive in drives(target).items() if slot in change.drives.removed]
    return is_new and any(map(is_cloud_init, removed))


def taken_drives(change: ConfigChange) -> set[str]:
    """Return the drives that the change removes or detaches."""
    detached = filter(DRIVE.match, change.deletes)
    return {*change.drives.removed, *detached}


def _require_valid_boot(actual: Actual, change: ConfigChange, after: Mapping[str, str]) -> None:
    order = parse_option("boot", change.sets.get("boot", "")).get("order", "")
    devices = filter(None, order.split(";"))
    missing = [device for device in devices if device not in after]
    if not missing:
        return
    raise ValidationFailed(
        attempted=f"The boot order of {actual.label} was not changed",
        answer=f"{', '.join(missing)} would not be there",
        next_step="Name devices that the VM has or that the task adds, or disk, network and cdrom",
        reason="boot",
    )


def _require_valid_balloon(actual: Actual, change: ConfigChange) -> None:
    if not change.sets.keys() & {"memory", "balloon"}:
        return
    values = {**actual.target, **change.sets}
    memory = parse_option("memory", values.get("memory", "")).get("current", _DEFAULT_MEMORY)
    balloon = values.get("balloon", "0")
    if int(balloon or 0) <= int(memory):
        return
    raise ValidationFailed(
        attempted=f"The memory of {actual.label} was not changed",
        answer=(
            f"balloon, the minimum it can shrink to, would be {balloon} MiB and the memory"
            f" {memory} MiB"
        ),
        next_step="Give both memory and balloon, the latter not larger",
        reason="balloon",
    )


def _require_valid_firmware(
    actual: Actual, change: ConfigChange, after: Mapping[str, str], *, runs: bool
) -> None:
    if runs and "tpmstate0" in change.drives.moved:
        raise Conflict(
            attempted=f"tpmstate0 of {actual.label} was not moved",
            answer="PVE does not move the state of a TPM while the VM runs",
            next_step="Stop the VM first, or move the disk in a task with state=stopped",
            reason="running",
        )
    before, target = drives(actual.target), drives(after)
    for slot in sorted(change.sets.keys() & _FIXED.keys() & before.keys() & target.keys()):
        for name, default in _FIXED[slot].items():
            if before[slot].get(name, default) == target[slot].get(name, default):
                continue
            raise NotSupported(
                attempted=f"{slot} of {actual.label} was not changed",
                answer=f"{name} cannot change once the disk is made",
                next_step=(
                    "Remove the disk first, with all that the guest keeps in it, and add another"
                ),
                reason=f"{slot}.{name}",
            )


def _require_no_waiting_disks(actual: Actual, change: ConfigChange) -> None:
    """Raise Conflict for a disk that waits for a stop: PVE would change the disk it replaces."""
    live = drives(actual.live)
    target = drives(actual.target)
    for slot in sorted({*change.drives.grown, *change.drives.moved}):
        running_volume = live.get(slot, {}).get("file")
        next_volume = target.get(slot, {}).get("file")
        if running_volume == next_volume:
            continue
        raise Conflict(
            attempted=f"Disk {slot} of {actual.label} was not changed",
            answer="it was added or replaced while the VM runs, and waits for a stop",
            next_step=(
                "Stop or reboot the VM first, for example with state=restarted in a task before"
                " this one"
            ),
            reason="disk waits for a stop",
        )


def _require_growable(actual: Actual, grown: Mapping[str, int], sets: Mapping[str, str]) -> None:
    """Raise Conflict for an imported disk that grows but is only added at the next stop."""
    for slot in sorted(grown):
        if not waits_for_stop(slot, None, sets[slot], actual.live):
            continue
        raise Conflict(
            attempted=f"Disk {slot} of {actual.label} was not added",
            answer=(
                "it is larger than the image it is imported from, and waits for a stop before"
                " it can grow"
            ),
            next_step="Stop the VM first, leave size out, or use a drive that can be plugged in",
            reason="disk waits for a stop",
        )
