# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options to set and to delete so that a configuration becomes the desired one, with the boot
order: its words disk, cdrom and network, and how PVE itself changes it (pure).

Values are compared by meaning: tags as sets in lower case, MACs in upper case, sizes as bytes,
booleans, keys decoded, property strings by key, PVE's own default for a missing option. Options and
sub-keys that the task does not mention stay unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar
from urllib.parse import quote

from ....._foundation.core.errors import ValidationFailed
from ....._foundation.core.quantities import render_gib, render_size
from ....._foundation.schema.formats import QEMU, Schema, parse_option, render_option
from ....._foundation.schema.values import differing_sub_keys, hotplug_features
from ...config.change import (
    ConfigChange,
    ConfigUpdate,
    DriveChange,
    SubKeys,
    VolumeUpdate,
    with_options,
    without,
)
from ...hardware import DesiredVm, Disk, VmHardware
from ...marker import Marker, split_notes
from .actual import (
    CD,
    DISK,
    FIRMWARE,
    decode_keys,
    drives,
    is_cd,
    is_cloud_init,
    is_disk,
    kind_of,
    storage_of,
)
from .hotplug import in_dimms

_NET = re.compile(r"^net\d+\Z")


def first_boot_order(config: Mapping[str, str], hardware: VmHardware) -> str:
    """Return the order of a new VM: its first disk, its first CD, its first NIC.

    An empty text if it has none of them. It is set explicitly so that check mode can predict it.
    """
    first: list[str] = []
    for names in _devices(config, hardware).values():
        first += names[:1]
    return _order(first)


def boot_order(text: str, config: Mapping[str, str], hardware: VmHardware) -> str:
    """Return the order with the words disk, network and cdrom replaced by the VM's devices."""
    devices = _devices(config, hardware)
    order: list[str] = []
    for item in filter(None, text.split(";")):
        order += devices.get(item, [item])
    unique = dict.fromkeys(order)
    return ";".join(unique)


def order_after(
    target: Mapping[str, str], sets: Mapping[str, str], gone: Collection[str]
) -> str | None:
    """Return the boot order as PVE itself changes it with an update, or None if it stays.

    PVE takes out a removed device, and appends a CD drive that is written (update_vm_api).
    """
    text = parse_option("boot", target.get("boot", "")).get("order")
    if not text:
        return None
    before = text.split(";")
    written_cds: list[str] = []
    for slot, drive in drives(sets).items():
        is_listed = slot in before
        if is_cd(drive) and not is_listed:
            written_cds.append(slot)
    after = [device for device in before if device not in gone]
    after += sorted(written_cds)
    return None if after == before else _order(after)


def _order(devices: Sequence[str]) -> str:
    """Return the option that boots from these devices; without devices an empty text."""
    if not devices:
        return ""
    joined = ";".join(devices)
    return f"order={joined}"


def _devices(config: Mapping[str, str], hardware: VmHardware) -> dict[str, list[str]]:
    """Return the bootable devices of a VM, by the words for them, in the order of a first boot."""
    disks: list[str] = []
    cds: list[str] = []
    for slot, drive in drives(config).items():
        is_firmware = slot.startswith(FIRMWARE)
        if is_cd(drive):
            cds.append(slot)
        elif is_disk(drive) and not is_firmware:
            disks.append(slot)
    keys = {*config, *hardware.property_strings} - hardware.unset
    nics = filter(_NET.match, keys)
    return {
        "disk": sorted(disks, key=_by_index),
        "cdrom": sorted(cds, key=_by_index),
        "network": sorted(nics, key=_by_index),
    }


def _by_index(key: str) -> tuple[str, int]:
    """Return the family of a device and its number."""
    family = key.rstrip("0123456789")
    number = key.removeprefix(family)
    return family, int(number)


# Defaults of a new VM that is not cloned.
NEW_VM: Mapping[str, str] = {"cores": "2", "ostype": "l26", "scsihw": "virtio-scsi-single"}


_NIC = re.compile(r"^(?:net|ipconfig)(?=\d+$)")


# The two machine types without a version, and the prefixes of their versioned names.
_FAMILIES = {"pc": "pc-i440fx", "q35": "pc-q35"}


_NEW_NIC: Mapping[str, str] = {"model": "virtio", "bridge": "vmbr0"}


def all_changes(
    desired: DesiredVm, target: Mapping[str, str], *, new: bool = False
) -> ConfigChange:
    """Return the change from `target` to the desired configuration; `target` is empty for a `new`
    VM. Drives that cannot be changed as desired are in `drives.refused`.
    """
    update = _VmConfigUpdate(desired, target, new)
    update.set_scalars()
    update.set_agent()
    update.change_drives(change_drives(desired, target))
    update.unset_options()
    update.set_property_strings()
    update.set_boot()
    update.predict_machine()
    update.predict_template()
    update.set_tags()
    update.set_notes()
    update.set_ssh_keys()
    update.set_password()
    return update.change


class _VmConfigUpdate(ConfigUpdate):
    """The desired VM beside its present configuration, and the change that results from both."""

    desired: DesiredVm
    defaults: ClassVar[Mapping[str, str]] = NEW_VM
    name_key: ClassVar[str] = "name"
    schema: ClassVar[Schema] = QEMU
    of_nic: ClassVar[re.Pattern[str]] = _NIC

    def set_agent(self) -> None:
        """Switch on the guest agent of a new VM, unless the task or the template sets it."""
        if not self.desired.hardware.default_agent:
            return
        _notes, marker = self.notes
        is_new = self.new or marker.building
        is_decided = self.is_decided("agent")
        if is_new and not is_decided:
            self.sets["agent"] = "1"

    def desired_values(
        self, key: str, wanted: SubKeys, existing: Mapping[str, str]
    ) -> dict[str, str | None]:
        """Return the sub-keys to set, including values that the task leaves to us or to PVE."""
        rules = {
            "boot": self._boot_values,
            "machine": self._machine_values,
            "memory": self._memory_values,
        }
        rule = rules.get(key)
        if rule is not None:
            return rule(wanted, existing)
        is_new_nic = key.startswith("net") and not existing
        if is_new_nic:
            return {**_NEW_NIC, **wanted}
        return dict(wanted)

    def _boot_values(self, wanted: SubKeys, _existing: Mapping[str, str]) -> dict[str, str | None]:
        """Return the sub-keys of the boot order; none if the VM has no bootable device.

        The order and its old form replace each other. Raises ValidationFailed if the VM has devices
        to boot from, and none of the order.
        """
        if "legacy" in wanted:
            return {"order": None, **wanted}
        config = without(self.config, self.gone)
        text = wanted.get("order") or ""
        order = boot_order(text, config, self.desired.hardware)
        if text and not order and first_boot_order(config, self.desired.hardware):
            raise ValidationFailed(
                f"The boot order of {self.desired.guest.label} was not set: the VM has no "
                f"{' and no '.join(text.split(';'))}",
                "Name devices that the VM has or that the task adds",
                "boot",
            )
        if not order:
            return {}
        return {"order": order, "legacy": None}

    def _memory_values(self, wanted: SubKeys, existing: Mapping[str, str]) -> dict[str, str | None]:
        """Return the memory of the VM; hotplugged modules can make it more than requested."""
        values = dict(wanted)
        config = self.config
        features = hotplug_features(config.get("hotplug"))
        if self.new:
            return values
        if "memory" not in features:
            return values
        if differing_sub_keys("memory", values, existing):
            size = int(values["current"] or 0)
            values["current"] = str(in_dimms(size, config))
        return values

    def _machine_values(
        self, wanted: SubKeys, existing: Mapping[str, str]
    ) -> dict[str, str | None]:
        """Return the machine type with the version that PVE added to the type of a Windows guest.

        PVE adds it at creation and if the guest OS type changes (Machine.pm,
        check_and_pin_machine_string).
        """
        values = dict(wanted)
        family = _FAMILIES.get(values.get("type") or "")
        if family is None:
            return values
        if not _is_windows(self.config):
            return values
        found = existing.get("type", "")
        is_pinned = re.match(rf"^{family}-\d", found)
        if is_pinned:
            values["type"] = found
        return values

    def set_boot(self) -> None:
        """Set the first boot order of a new VM, or predict how PVE changes an existing order."""
        if self.new and not self.is_decided("boot"):
            order = first_boot_order(self.sets, self.desired.hardware)
            self.set_or_delete("boot", order)
        if "boot" in self.sets or not (self.sets or self.gone):
            return
        predicted = order_after(self.target, self.sets, self.gone)
        if predicted is not None:
            self.side_effects["boot"] = predicted

    def predict_machine(self) -> None:
        """Predict the machine type of a new Windows guest: PVE adds its newest version."""
        is_written = "machine" in {*self.sets, *self.deletes}
        if self.new or is_written:
            return
        if not _is_windows(self.sets):
            return
        values = parse_option("machine", self.target.get("machine", ""))
        kind = values.get("type", "pc")
        if kind in _FAMILIES:
            values["type"] = f"{_FAMILIES[kind]}-newest"
            self.side_effects["machine"] = render_option("machine", values)

    def set_ssh_keys(self) -> None:
        """Set the SSH keys, compared decoded and without comments between them."""
        wanted = self.desired.hardware.ssh_keys
        if wanted is None:
            return
        found: list[str] = []
        for line in decode_keys(self.target.get("sshkeys", "")):
            is_comment = line.startswith("#")
            if not is_comment:
                found.append(line)
        if list(wanted) != found:
            self.set_or_delete("sshkeys", quote("\n".join(wanted), safe=""))

    def set_password(self) -> None:
        """Set the password as O(update_password) requires: PVE does not return a password."""
        password = self.desired.hardware.password
        if not password:
            return
        has_one = "cipassword" in self.target
        is_always_set = self.desired.hardware.update_password == "always"
        if has_one and not is_always_set:
            return
        self.sets["cipassword"] = password
        self.secret = True


def _is_windows(config: Mapping[str, str]) -> bool:
    return config.get("ostype", "").startswith("w")


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
        if slot in self.existing:
            user = str(self.existing[slot].get("file"))
        elif slot in self.change.sets:
            user = "a drive of disks"
        else:
            user = ""
        if user:
            self.change.refused[slot] = self._in_use(slot, user)
            self.change.after[slot] = f"{storage}:cloudinit,media=cdrom"
            return
        self.change.storages[storage] = "images"
        self.change.sets[slot] = f"{storage}:cloudinit"
        self.change.predicted[slot] = f"{storage}:vm-cloudinit,media=cdrom"

    def _in_use(self, slot: str, user: str) -> ValidationFailed:
        return ValidationFailed(
            f"The cloud-init drive of {self.desired.guest.label} could not be planned: {slot} is "
            f"in use: {user}",
            "Name a free drive with cloud_init.drive; one that goes is free for the next task",
            "cloud-init drive",
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
            text = render_option(disk.slot, {**disk.options, "file": disk.volume})
            self.change.sets[disk.slot] = text
            self.change.predicted[disk.slot] = text
            if disk.volume != "none":
                self.change.volumes[disk.volume] = "iso" if disk.is_cdrom else "images"
        else:
            self._allocate(disk)

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
                f"Disk {disk.slot} of {self.desired.guest.label} could not be planned: it does "
                "not exist yet and has no size",
                "Give it a size, an image to import or an ISO",
                "size missing",
            )
        return render_gib(disk.size)

    def update(self, disk: Disk) -> None:
        """Change the options of a drive, then its size and its storage."""
        slot = disk.slot
        existing = self.existing[slot]
        # Only a task that explicitly removes a drive may remove it.
        found = kind_of(existing)
        wanted = found
        if disk.is_cdrom:
            wanted = CD
        elif disk.has_content or disk.volume:
            wanted = DISK
        if wanted != found:
            raise ValidationFailed(
                f"Drive {disk.slot} of {self.desired.guest.label} was not changed: it is {found}, "
                f"and {wanted} is asked for",
                "Name a drive that is free, or take this one away first, in a task with"
                " state=absent or detached",
                "other kind of drive",
            )
        if disk.replaces and not self._is_replaced(existing):
            # PVE keeps the old volume as an unused one (qemu-server: API2/Qemu.pm, update_vm_api).
            merged = _with_options(disk, existing)
            options = {name: value for name, value in merged.items() if name not in _OF_VOLUME}
            storage = disk.storage or storage_of(existing)
            self._allocate(replace(disk, storage=storage, options=options))
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


def _has_other_volume(label: str, disk: Disk, existing: Mapping[str, str]) -> ValidationFailed:
    return ValidationFailed(
        f"Disk {disk.slot} of {label} was not changed: it has volume {existing.get('file')}, not "
        f"{disk.volume}",
        "Name a free slot, or detach this disk first, in a task with state=detached",
        "other volume",
    )


def _with_options(disk: Disk, existing: Mapping[str, str]) -> dict[str, str]:
    """Return the sub-keys of an existing drive, overwritten by the requested ones."""
    after = with_options(disk, existing, QEMU)
    certificates = disk.options.get("ms-cert") or ""
    # PVE stores C(2023k) for each of the three values that can be written (qemu-server, OVMF.pm).
    if existing.get("ms-cert") == "2023k" and certificates.startswith("2023"):
        after["ms-cert"] = existing["ms-cert"]
    return after
