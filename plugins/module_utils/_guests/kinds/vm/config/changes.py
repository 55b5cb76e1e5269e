# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options to set and to delete so that a configuration becomes the desired one (pure).

Values are compared by meaning: tags as sets in lower case, MACs in upper case, sizes as bytes,
booleans, keys decoded, property strings by key, PVE's own default for a missing option. Options and
sub-keys that the task does not mention stay unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar
from urllib.parse import quote

from ....._foundation.core.errors import ValidationFailed
from ....._foundation.core.quantities import render_size
from ....._foundation.schema.formats import QEMU, Schema, parse_option, render_option
from ....._foundation.schema.values import differing_sub_keys, hotplug_features
from ...config.change import ConfigChange, possible, without
from ...config.update import ConfigUpdate, SubKeys
from ..model import DesiredVm
from .boot import boot_order, first_boot_order, order_after
from .drives import change_drives
from .hotplug import in_dimms
from .view import decode_keys

# Defaults of a new VM that is not cloned.
NEW_VM: Mapping[str, str] = {"cores": "2", "ostype": "l26", "scsihw": "virtio-scsi-single"}
_NIC = re.compile(r"^(?:net|ipconfig)(?=\d+$)")
# The two machine types without a version, and the prefixes of their versioned names.
_FAMILIES = {"pc": "pc-i440fx", "q35": "pc-q35"}
_NEW_NIC: Mapping[str, str] = {"model": "virtio", "bridge": "vmbr0"}


def changes(desired: DesiredVm, target: Mapping[str, str], *, new: bool = False) -> ConfigChange:
    """Return `all_changes`. Raises FleetError for a difference that no change can remove."""
    change = all_changes(desired, target, new=new)
    return possible(change)


def all_changes(
    desired: DesiredVm, target: Mapping[str, str], *, new: bool = False
) -> ConfigChange:
    """Return the change from `target` to the desired configuration; `target` is empty for a `new`
    VM. Drives that cannot be changed as desired are in `drives.refused`.
    """
    update = _VmConfigUpdate(desired, target, new)
    update.set_scalars()
    update.set_agent()
    update.set_drives()
    update.unset_options()
    update.set_property_strings()
    update.set_boot()
    update.predict_boot()
    update.predict_machine()
    update.predict_template()
    update.set_tags()
    update.set_notes()
    update.set_ssh_keys()
    update.set_password()
    return update.change


def with_images(
    change: ConfigChange, desired: DesiredVm, target: Mapping[str, str], images: Mapping[str, int]
) -> ConfigChange:
    """Return the change with the sizes, in bytes by slot, of images and of attached disks.

    A new disk without a size gets the size of its image; a larger one grows after the import.
    """
    predicted = dict(change.drives.predicted)
    grown_later: dict[str, int] = {}
    for disk in desired.hardware.disks:
        image_size = images.get(disk.slot, 0)
        sets = change.drives.sets.get(disk.slot, "")
        is_attached = disk.volume is not None and sets.startswith(disk.volume)
        if not image_size or not ("import-from=" in sets or is_attached):
            continue
        if disk.size is None:
            predicted[disk.slot] += f",size={render_size(image_size)}"
        elif disk.size > image_size:
            grown_later[disk.slot] = disk.size
    drives = replace(change.drives, predicted=predicted, grown_later=grown_later)
    return replace(change, drives=drives)


@dataclass
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

    def set_drives(self) -> None:
        """Add the changes of the drives."""
        self.drives = change_drives(self.desired, self.target)
        self.sets.update(self.drives.sets)
        self.deletes |= self.drives.detached

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
                attempted=f"The boot order of {self.desired.guest.label} was not set",
                answer=f"the VM has no {' and no '.join(text.split(';'))}",
                next_step="Name devices that the VM has or that the task adds",
                reason="boot",
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
        """Set the first boot order of a new VM."""
        if self.new and not self.is_decided("boot"):
            order = first_boot_order(self.sets, self.desired.hardware)
            self.set_or_delete("boot", order)

    def predict_boot(self) -> None:
        """Predict how PVE changes an existing boot order."""
        if "boot" in self.sets:
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
