# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of an update of a VM: the request of each, and its summary. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ....._foundation.core.errors import NotSupported
from ....._foundation.resource.plan import Step
from ....._foundation.schema.formats import parse_option
from ....kinds.marker import join_notes, split_notes
from ....kinds.model import Actual
from ....kinds.vm.config.actual import drives, is_cd, is_cloud_init, storage_of
from ....kinds.vm.config.changes import ConfigChange
from ....kinds.vm.config.hotplug import is_cloud_init_key
from ....kinds.vm.model import DesiredVm
from ...plan.snippets import marked_notes, regenerate, unmark
from ...plan.steps import (
    PlannedUpdate,
    config_step,
    migration,
    require_migration_allowed,
    switch_protection,
    with_digest,
)
from .refusals.update import moves_cloud_init, taken_drives

_CARD = re.compile(r"net(\d+)$")


@dataclass(frozen=True)
class PlannedVmUpdate(PlannedUpdate[DesiredVm]):
    """A planned update of a VM."""

    @property
    def renews_drive(self) -> bool:
        """Whether the cloud-init drive of a running VM must be written; a start writes it too."""
        if not self.running:
            return False
        has_drive = any(map(is_cloud_init, drives(self.after).values()))
        if not has_drive:
            return False
        if self.actual.marker.stale:
            return True
        return any(map(self._is_on_drive, self.change.keys))

    def _is_on_drive(self, key: str) -> bool:
        """Return whether the cloud-init drive contains the value of an option.

        It also contains the name, and the MAC of a NIC with addresses (qemu-server:
        cloudinit_pending_properties; Cloudinit.pm, nocloud_network).
        """
        card = _CARD.match(key)
        if card is None:
            return key == "name" or is_cloud_init_key(key)
        if f"ipconfig{card.group(1)}" not in self.after:
            return False
        return _mac(self.actual.target.get(key)) != _mac(self.after.get(key))

    def write_options(self, *, first: bool) -> Step:
        """Return the step that writes and deletes options, and marks the drive as stale."""
        if not self.renews_drive:
            return super().write_options(first=first)
        step = super().write_options(first=first)
        data = dict(step.data)
        data["description"] = marked_notes(self.actual, self.notes)
        deletes = self.change.deletes - {"description"}
        data.pop("delete", None)
        if deletes:
            data["delete"] = ",".join(sorted(deletes))
        return replace(step, data=data)


def _mac(card: str | None) -> str:
    """Return the MAC of a NIC, an empty text if PVE has not generated it yet."""
    return parse_option("net0", card or "").get("macaddr", "").upper()


def update_steps(update: PlannedVmUpdate) -> list[Step]:
    """Return the steps that write the options of a VM, in the order that PVE needs."""
    protection = update.change.sets.get("protection")
    if protection is None or not taken_drives(update.change):
        return [*_written(update, first=True), *_drive_steps(update)]
    rest = update.without("protection")
    switch = switch_protection(update.actual, protection)
    if protection == "0":
        # Protection is switched off before drives are removed, and on after that.
        return [switch, *_written(rest, first=False), *_drive_steps(rest)]
    return [*_written(rest, first=True), switch, *_drive_steps(rest)]


def _with_replacement_note(update: PlannedVmUpdate, step: Step) -> Step:
    """Return the step that replaces a system disk with the old volume in the notes.

    A run that is interrupted before its last step, which notes the image, leaves a new disk that
    nothing else distinguishes from the old one.
    """
    replacement = update.desired.guest.replacement
    slots = [disk.slot for disk in update.desired.hardware.disks if disk.replaces]
    if replacement is None or "description" in step.data or step.data.keys().isdisjoint(slots):
        return step
    target = update.actual.target
    notes, marker = split_notes(target.get("description"))
    volume = drives(target)[slots[0]].get("file", "")
    noted = join_notes(notes, marker.replacing(replacement.image, volume))
    return replace(step, data={**step.data, "description": noted})


def _written(update: PlannedVmUpdate, *, first: bool) -> list[Step]:
    """Return the steps that write options and remove drives, and then set the boot order.

    `first` is set for the first write of the plan: the digest is valid only for it.
    """
    actual, change = update.actual, update.change
    steps: list[Step] = []
    boot = None
    is_moved = moves_cloud_init(change, actual.target)
    if is_moved:
        steps.append(_remove_drives(actual, change, first=first))
    if change.sets or change.deletes:
        step = _with_replacement_note(update, update.write_options(first=first and not is_moved))
        if _allocates(change):
            # A PUT allocates a volume within the request, which can time out; a POST is a task.
            step = replace(step, method="POST", is_task=True)
        if _reorders(change, actual):
            data = dict(step.data)
            boot = data.pop("boot", None)
            step = replace(step, data=data)
        steps.append(step)
    if change.drives.removed and not is_moved:
        is_first = first and not steps
        steps.append(_remove_drives(actual, change, first=is_first))
    if boot:
        summary = f"Set the boot order of {actual.label}"
        steps.append(config_step(actual, summary, {"boot": boot}))
    return steps


def _remove_drives(actual: Actual, change: ConfigChange, *, first: bool) -> Step:
    names = ",".join(sorted(change.drives.removed))
    data: dict[str, Any] = {"delete": names, "force": 1}
    if first:
        data = with_digest(data, actual)
    return config_step(actual, f"Remove {names} and their volumes from {actual.label}", data)


def _drive_steps(update: PlannedVmUpdate) -> list[Step]:
    """Return the steps that write the cloud-init drive again and mark it as current."""
    actual = update.actual
    if update.renews_drive:
        return [regenerate(actual), unmark(actual, update.notes)]
    if actual.status == "hibernated":
        return []
    if actual.marker.stale and update.notes is None:
        return [unmark(actual)]
    return []


def _allocates(change: ConfigChange) -> bool:
    """Return whether a drive of the change is a new volume, written as storage and size."""
    for text in change.drives.sets.values():
        volume, _comma, _options = text.partition(",")
        size = volume.rpartition(":")[2]
        if size.replace(".", "").isdigit():
            return True
    return False


def _reorders(change: ConfigChange, actual: Actual) -> bool:
    """Return whether PVE itself changes the boot order: the desired order is then written later.

    PVE appends a CD drive, and takes out a removed drive.
    """
    removed = change.drives.removed
    if not removed.isdisjoint(boot_devices(actual.live)):
        return True
    order = boot_devices(actual.target)
    return any(
        is_cd(drive) and slot not in order for slot, drive in drives(change.drives.sets).items()
    )


def boot_devices(config: Mapping[str, str]) -> list[str]:
    """Return the devices of a boot order."""
    _word, _equals, devices = config.get("boot", "").partition("order=")
    return devices.split(";")


def migrate(update: PlannedVmUpdate, shared: Collection[str]) -> Step:
    """Return the step that moves the VM to its node. Raises Conflict, NotSupported."""
    desired, actual = update.desired, update.actual
    require_migration_allowed(desired.guest, actual)
    local = _local_storages(actual.target, shared)
    _require_no_local_cd(update, local)
    data: dict[str, Any] = {}
    relocation = update.change.relocation
    if relocation is not None:
        local |= set(relocation.before.values()) - set(shared)
        if relocation.mapped:
            data["targetstorage"] = relocation.storage_map
    kind = "offline"
    if update.running:
        kind = "live"
        data["online"] = 1
        if relocation is not None and relocation.keeps_connections:
            data["with-conntrack-state"] = 1
        if local:
            data["with-local-disks"] = 1
    return migration(desired.guest, actual, kind, data)


def _local_storages(config: Mapping[str, str], shared: Collection[str]) -> set[str]:
    """Return the storages of a VM's drives that are not shared."""
    local: set[str] = set()
    for drive in drives(config).values():
        storage = storage_of(drive)
        if storage and storage not in shared:
            local.add(storage)
    return local


def _require_no_local_cd(update: PlannedVmUpdate, local: Collection[str]) -> None:
    blocking: list[str] = []
    for slot, drive in drives(update.after).items():
        if not is_cd(drive):
            continue
        if storage_of(drive) in local:
            blocking.append(slot)
    if not blocking:
        return
    names = ", ".join(sorted(blocking))
    node = update.desired.guest.node
    raise NotSupported(
        attempted=f"{update.actual.label} could not be planned to move to node {node}",
        answer=f"{names} holds an ISO on a storage that only its node has",
        next_step="Eject it with iso=none, or put the ISO on a shared storage",
        reason="local ISO",
    )
