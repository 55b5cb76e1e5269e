# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules that only plans of VMs have: drives, hotplug, hibernation, and the refusals of an update
that PVE would refuse half way (pure).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ....._foundation.core.errors import Conflict, NotSupported, ValidationFailed
from ....._foundation.resource.plan import Plan, Step
from ....._foundation.schema.formats import parse_option, render_option
from ....._foundation.schema.values import SECRET_CHANGES
from ....kinds.hardware import DesiredVm
from ....kinds.marker import join_notes, split_notes
from ....kinds.model import Actual
from ....kinds.vm.config.actual import DRIVE, drives, is_cd, is_cloud_init, storage_of
from ....kinds.vm.config.changes import ConfigChange, all_changes
from ....kinds.vm.config.hotplug import is_cloud_init_key, waits_for_stop
from ....kinds.vm.kind import VM
from ...plan import power
from ...plan.creation import LIVE
from ...plan.intent import Source
from ...plan.planner import CreationOptions, GuestPlanner, require_valid_data
from ...plan.steps import (
    PlannedUpdate,
    config_step,
    marked_notes,
    migration,
    moves_node,
    regenerate,
    require_migration_allowed,
    unmark,
    with_digest,
)
from .cloning import copy_of, restore_storage
from .decide import VM_RULES, VmIntent
from .replacement import without_replaced

_CARD = re.compile(r"net(\d+)\Z")


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

    def require_possible(self) -> None:
        require_preconditions(self)

    def waits(self, key: str) -> bool:
        live, change = self.actual.live, self.change
        if DRIVE.match(key) and key in change.gone and key in boot_devices(live):
            return True  # a disk that the VM boots from cannot be unplugged
        removed = change.drives.removed
        if key in removed and change.keys - removed:
            live = _with_new_hotplug(live, self.after)
        return self.waits_for(key, live)

    def written(self, *, first: bool) -> list[Step]:
        """Return the steps that write options and remove drives, and then set the boot order.

        `first` is set for the first write of the plan: the digest is valid only for it.
        """
        actual, change = self.actual, self.change
        steps: list[Step] = []
        boot = None
        is_moved = moves_cloud_init(change, actual.target)
        if is_moved:
            steps.append(_remove_drives(actual, change, first=first))
        if change.sets or change.deletes:
            step = _with_replacement_note(self, self.write_options(first=first and not is_moved))
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

    def migrate(self, shared: Collection[str]) -> Step:
        """Return the step that moves the VM to its node. Raises Conflict, NotSupported."""
        desired, actual = self.desired, self.actual
        require_migration_allowed(desired.guest, actual)
        local: set[str] = set()
        for drive in drives(actual.target).values():
            storage = storage_of(drive)
            if storage and storage not in shared:
                local.add(storage)
        _require_no_local_cd(self, local)
        data: dict[str, Any] = {}
        relocation = self.change.relocation
        if relocation is not None:
            local |= set(relocation.before.values()) - set(shared)
            if relocation.mapped:
                data["targetstorage"] = relocation.storage_map
        kind = "offline"
        if self.running:
            kind = "live"
            data["online"] = 1
            if relocation is not None and relocation.keeps_connections:
                data["with-conntrack-state"] = 1
            if local:
                data["with-local-disks"] = 1
        return migration(desired.guest, actual, kind, data)

    def add_hidden_values(
        self, steps: Collection[Step], before: dict[str, Any], new_values: dict[str, Any]
    ) -> None:
        if self.change.secret:
            new_values["cipassword"] = SECRET_CHANGES
        replacement, marker = self.desired.guest.replacement, self.actual.marker
        if replacement is not None and replacement.image != marker.image:
            before["image"] = marker.image.label if marker.image is not None else ""
            new_values["image"] = replacement.image.label if replacement.image is not None else ""
        if steps and self.actual.marker.stale:
            before["cloud_init_drive"] = "outdated"
            new_values["cloud_init_drive"] = "current"

    def renew_drive(self) -> list[Step]:
        """Return the steps that write the cloud-init drive again and mark it as current."""
        if self.renews_drive:
            return [regenerate(self.actual), unmark(self.actual, self.notes)]
        is_stale = self.actual.marker.stale and self.actual.status != "hibernated"
        return [unmark(self.actual)] if is_stale and self.notes is None else []


def _mac(card: str | None) -> str:
    """Return the MAC of a NIC, an empty text if PVE has not generated it yet."""
    return parse_option("net0", card or "").get("macaddr", "").upper()


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


def _remove_drives(actual: Actual, change: ConfigChange, *, first: bool) -> Step:
    names = ",".join(sorted(change.drives.removed))
    data: dict[str, Any] = {"delete": names, "force": 1}
    if first:
        data = with_digest(data, actual)
    return config_step(actual, f"Remove {names} and their volumes from {actual.label}", data)


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
        f"{update.actual.label} could not be planned to move to node {node}: {names} holds an ISO "
        "on a storage that only its node has",
        "Eject it with iso=none, or put the ISO on a shared storage",
        "local ISO",
    )


# Keys that PVE adds to the configuration of a VM while its memory is on disk.
_OF_HIBERNATION = frozenset("lock vmstate runningmachine runningcpu running-nets-host-mtu".split())


class VmPlanner(GuestPlanner[DesiredVm, PlannedVmUpdate]):
    """Plans VMs."""

    kind = VM
    update_type = PlannedVmUpdate
    rules = VM_RULES
    all_changes = staticmethod(all_changes)
    copy_of = staticmethod(copy_of)
    still_desired = staticmethod(without_replaced)

    def creation_data(self, intent: VmIntent, source: Source) -> dict[str, Any]:
        """Return the uuid that this run chose."""
        values = parse_option("smbios1", intent.change.sets.get("smbios1", ""))
        values["uuid"] = intent.identity
        return {"smbios1": render_option("smbios1", values)}

    def restore_data(self, desired: DesiredVm, source: Source) -> dict[str, Any]:
        """Return the parameters of a restore, which gives the VM another uuid and other MACs."""
        data: dict[str, Any] = {"archive": source.volume, "unique": 1}
        storage = restore_storage(desired, source.config)
        if storage:
            data["storage"] = storage
        if desired.guest.source is not None and desired.guest.source.live:
            data[LIVE] = 1
        return data

    def plan_change(
        self,
        desired: DesiredVm,
        actual: Actual,
        change: ConfigChange,
        *,
        shared: Collection[str] = (),
        creating: CreationOptions | None = None,
        bases: Collection[str] = (),
    ) -> Plan:
        is_changed = bool(change.keys) or moves_node(desired.guest, actual)
        if actual.status == "hibernated" and is_changed:
            return self._wake_first(desired, actual, change, shared)
        return super().plan_change(
            desired, actual, change, shared=shared, creating=creating, bases=bases
        )

    def _wake_first(
        self, desired: DesiredVm, actual: Actual, change: ConfigChange, shared: Collection[str]
    ) -> Plan:
        """Return the plan for a hibernated VM, which PVE locks: it is started, and then updated.

        Raises Conflict if the task does not start it.
        """
        power.require_possible_state(desired.guest, actual)
        require_valid_data(self.kind, actual.label, change.sets)
        if not power.will_start(desired.guest):
            raise Conflict(
                f"{actual.label} was not changed: it is hibernated, and PVE changes nothing of it "
                "until it has been started",
                "Start it in the same task with state=started, or leave its options as they are",
                "hibernated",
            )
        awake = replace(
            actual,
            status="running",
            live=_without_hibernation(actual.live),
            target=_without_hibernation(actual.target),
        )
        rest = self.plan_change(desired.with_guest(state="started"), awake, change, shared=shared)
        steps = (replace(power.wake(actual), reread=True), *rest.steps)
        return replace(
            rest,
            steps=steps,
            before={**rest.before, "status": actual.status},
            after={**rest.after, "status": awake.status},
        )


def _without_hibernation(config: Mapping[str, str]) -> dict[str, str]:
    awake = dict(config)
    for key in _OF_HIBERNATION:
        awake.pop(key, None)
    return awake


def _with_new_hotplug(live: Mapping[str, str], after: Mapping[str, str]) -> Mapping[str, str]:
    """Return the running options when volumes are destroyed, by a request after the update."""
    old, new = live.get("hotplug"), after.get("hotplug")
    if old == new or waits_for_stop("hotplug", old, new, live):
        return live
    rest = dict(live)
    rest.pop("hotplug", None)
    if new:
        rest["hotplug"] = new
    return rest


VM_PLANNER = VmPlanner()
plan_update = VM_PLANNER.plan_update
plan_change = VM_PLANNER.plan_change


_DEFAULT_MEMORY = "512"
# The sub-keys that PVE uses only to create the disk, with their defaults (qemu-server: Drive.pm;
# API2/Qemu.pm, create_disks). A later change would change the text alone.
_FIXED: Mapping[str, Mapping[str, str]] = {
    "efidisk0": {"efitype": "2m", "pre-enrolled-keys": "0"},
    "tpmstate0": {"version": "v1.2"},
}


def require_preconditions(update: PlannedUpdate[DesiredVm]) -> None:
    """Raise FleetError for a change that PVE would refuse half way."""
    actual, change = update.actual, update.change
    _require_valid_boot(actual, change, update.after)
    _require_valid_balloon(actual, change)
    _require_valid_firmware(actual, change, update.after, runs=update.running)
    if update.running:
        if moves_cloud_init(change, actual.target):
            raise Conflict(
                f"The cloud-init drive of {actual.label} was not moved: the VM runs, and PVE adds "
                "the new drive only when the old one is unplugged",
                "Stop the VM first, or move the drive in a task with state=stopped",
                "running",
            )
        _require_no_waiting_disks(actual, change)
        _require_growable(actual, change.drives.grown_later, change.drives.sets)


def moves_cloud_init(change: ConfigChange, target: Mapping[str, str]) -> bool:
    """Return whether the cloud-init drive is removed and added again: PVE refuses the new one until
    the old one is removed (qemu-server: API2/Qemu.pm, create_disks).
    """
    is_new = any(":cloudinit" in text for text in change.drives.sets.values())
    removed = [drive for slot, drive in drives(target).items() if slot in change.drives.removed]
    return is_new and any(map(is_cloud_init, removed))


def _require_valid_boot(actual: Actual, change: ConfigChange, after: Mapping[str, str]) -> None:
    order = parse_option("boot", change.sets.get("boot", "")).get("order", "")
    devices = filter(None, order.split(";"))
    missing = [device for device in devices if device not in after]
    if not missing:
        return
    raise ValidationFailed(
        f"The boot order of {actual.label} was not changed: {', '.join(missing)} would not be "
        "there",
        "Name devices that the VM has or that the task adds, or disk, network and cdrom",
        "boot",
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
        f"The memory of {actual.label} was not changed: balloon, the minimum it can shrink to, "
        f"would be {balloon} MiB and the memory {memory} MiB",
        "Give both memory and balloon, the latter not larger",
        "balloon",
    )


def _require_valid_firmware(
    actual: Actual, change: ConfigChange, after: Mapping[str, str], *, runs: bool
) -> None:
    if runs and "tpmstate0" in change.drives.moved:
        raise Conflict(
            f"tpmstate0 of {actual.label} was not moved: PVE does not move the state of a TPM "
            "while the VM runs",
            "Stop the VM first, or move the disk in a task with state=stopped",
            "running",
        )
    before, target = drives(actual.target), drives(after)
    for slot in sorted(change.sets.keys() & _FIXED.keys() & before.keys() & target.keys()):
        for name, default in _FIXED[slot].items():
            if before[slot].get(name, default) == target[slot].get(name, default):
                continue
            raise NotSupported(
                f"{slot} of {actual.label} was not changed: {name} cannot change once the disk is "
                "made",
                "Remove the disk first, with all that the guest keeps in it, and add another",
                f"{slot}.{name}",
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
            f"Disk {slot} of {actual.label} was not changed: it was added or replaced while the "
            "VM runs, and waits for a stop",
            "Stop or reboot the VM first, for example with state=restarted in a task before"
            " this one",
            "disk waits for a stop",
        )


def _require_growable(actual: Actual, grown: Mapping[str, int], sets: Mapping[str, str]) -> None:
    """Raise Conflict for an imported disk that grows but is only added at the next stop."""
    for slot in sorted(grown):
        if not waits_for_stop(slot, None, sets[slot], actual.live):
            continue
        raise Conflict(
            f"Disk {slot} of {actual.label} was not added: it is larger than the image it is "
            "imported from, and waits for a stop before it can grow",
            "Stop the VM first, leave size out, or use a drive that can be plugged in",
            "disk waits for a stop",
        )
