# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has to be set and deleted so that a configuration becomes the desired one (pure).

Values are compared by meaning: tags as sets in lower case, MACs in upper case, sizes as bytes,
booleans, keys decoded, property strings by key, PVE's own default for a missing option. What the
task does not mention is left alone, inside a property string too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from urllib.parse import quote

from ..._cluster.tenant import parse_tags, tenants_of
from ..._core.quantities import render_size
from ..._guest.marker import Marker, join_notes, split_notes
from ..._schema.formats import (
    canonical_sub_key,
    parse_option,
    render_option,
)
from ..._schema.values import differing_sub_keys, hotplug_features, is_same_option
from ..model import Desired
from .actual import DRIVE
from .boot import boot_order, first_boot_order, order_after
from .drives import DriveChange, change_drives
from .hotplug import in_dimms
from .view import decode_keys

# Sub-keys of a property string; None removes one.
SubKeys: TypeAlias = "Mapping[str, str | None]"
# What a new VM gets that is not cloned and has no other values.
NEW_VM: Mapping[str, str] = {"cores": "2", "ostype": "l26", "scsihw": "virtio-scsi-single"}
_NIC = re.compile(r"^(?:net|ipconfig)(?=\d+$)")
# The two machine types without a version, and what their names begin with when they have one.
_FAMILIES = {"pc": "pc-i440fx", "q35": "pc-q35"}
_NEW_NIC: Mapping[str, str] = {"model": "virtio", "bridge": "vmbr0"}


@dataclass(frozen=True)
class Change:
    """What one update writes: options to set, options to delete, and what is done to drives."""

    sets: Mapping[str, str] = field(default_factory=dict)
    deletes: frozenset[str] = frozenset()
    drives: DriveChange = field(default_factory=DriveChange)
    # what PVE itself changes with it
    side_effects: Mapping[str, str] = field(default_factory=dict)
    secret: bool = False

    @property
    def keys(self) -> set[str]:
        return {*self.sets, *self.deletes, *self.drives.keys, *self.side_effects}

    @property
    def gone(self) -> frozenset[str]:
        return self.deletes | self.drives.removed

    def without(self, option: str) -> Change:
        """Return the change without what it does to an option."""
        sets = _without(self.sets, {option})
        return replace(self, sets=sets, deletes=self.deletes - {option})


def changes(desired: Desired, target: Mapping[str, str], *, new: bool = False) -> Change:
    """Return what makes `target` the desired configuration; it is empty for a `new` VM."""
    update = _Update(desired, target, new)
    update.set_scalars()
    update.set_agent()
    update.set_drives()
    update.unset_options()
    for key, wanted in desired.property_strings.items():
        update.set_property_string(key, wanted)
    update.set_boot()
    update.predict_boot()
    update.predict_machine()
    update.predict_template()
    update.set_tags()
    update.set_notes()
    update.set_ssh_keys()
    update.set_password()
    return Change(
        sets=update.sets,
        deletes=frozenset(update.deletes),
        drives=update.drives,
        side_effects=update.side_effects,
        secret=update.secret,
    )


def with_images(
    change: Change, desired: Desired, target: Mapping[str, str], images: Mapping[str, int]
) -> Change:
    """Return the change with the sizes, in bytes by slot, of the images that new disks import.

    A new disk without a size gets that of its image; a larger one grows once it is there.
    """
    shown = dict(change.drives.shown)
    grown_later: dict[str, int] = {}
    for disk in desired.disks:
        image_size = images.get(disk.slot, 0)
        is_imported = image_size and disk.slot not in target
        if not is_imported:
            continue
        if disk.size is None:
            shown[disk.slot] += f",size={render_size(image_size)}"
        elif disk.size > image_size:
            grown_later[disk.slot] = disk.size
    drives = replace(change.drives, shown=shown, grown_later=grown_later)
    return replace(change, drives=drives)


@dataclass
class _Update:
    """The desired VM beside the configuration it has, and what grows from both."""

    desired: Desired
    target: Mapping[str, str]
    new: bool
    sets: dict[str, str] = field(default_factory=dict)
    deletes: set[str] = field(default_factory=set)
    drives: DriveChange = field(default_factory=DriveChange)
    side_effects: dict[str, str] = field(default_factory=dict)
    secret: bool = False

    @property
    def gone(self) -> set[str]:
        """The options and drives that are taken away so far."""
        return self.deletes | self.drives.removed

    @property
    def config(self) -> dict[str, str]:
        """The configuration with what is set so far."""
        return {**self.target, **self.sets}

    @property
    def notes(self) -> tuple[str, Marker]:
        """The notes of the VM, and the marker in them."""
        return split_notes(self.target.get("description"))

    def _set_or_delete(self, key: str, text: str) -> None:
        """Set an option; an empty text removes it where the VM has it."""
        if text:
            self.sets[key] = text
        else:
            self.deletes |= {key} & self.target.keys()

    def _is_decided(self, key: str) -> bool:
        """Return whether the task sets or removes a property string, or the VM has it."""
        return key in {*self.desired.property_strings, *self.desired.unset, *self.target}

    def set_scalars(self) -> None:
        """Set the name and options that are one value, those of a new VM with our defaults."""
        values: dict[str, str] = {}
        if self.new:
            values.update(_without(NEW_VM, self.desired.unset))
        if self.desired.name:
            values["name"] = self.desired.name
        values.update(self.desired.scalars)
        for key, wanted in values.items():
            found = self.target.get(key)
            if not is_same_option(key, wanted, found):
                self.sets[key] = wanted

    def set_agent(self) -> None:
        """Switch on the guest agent of a new VM, unless the task or the template sets it."""
        if not self.desired.default_agent:
            return
        _notes, marker = self.notes
        is_made_now = self.new or marker.building
        is_decided = self._is_decided("agent")
        if is_made_now and not is_decided:
            self.sets["agent"] = "1"

    def set_drives(self) -> None:
        """Take over what happens to the drives."""
        self.drives = change_drives(self.desired, self.target)
        self.sets.update(self.drives.sets)
        self.deletes |= self.drives.detached

    def unset_options(self) -> None:
        """Delete what the task removes, and the NICs that an exact list does not have."""
        self.deletes |= self.desired.unset & self.target.keys()
        if self.desired.nics_exact:
            self.deletes |= self._unlisted_nics()

    def _unlisted_nics(self) -> set[str]:
        """Return the NICs, and their addresses, that an exact list of NICs does not have."""
        unlisted = set()
        for key in filter(_NIC.match, self.target):
            number = _NIC.sub("", key)
            if f"net{number}" not in self.desired.property_strings:
                unlisted.add(key)
        return unlisted

    def set_property_string(self, key: str, wanted: SubKeys) -> None:
        """Set the sub-keys that differ, over those that the VM has; of a new one all of them.

        Only those that the task mentions count.
        """
        existing = parse_option(key, self.target.get(key, ""))
        values = self._desired_values(key, wanted, existing)
        differing = differing_sub_keys(key, values, existing)
        if not differing:
            return
        merged = dict(existing)
        for name, value in values.items():
            is_kept = existing and name not in differing
            if is_kept:
                continue
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = canonical_sub_key(key, name, value)
        self._set_or_delete(key, render_option(key, merged))

    def _desired_values(
        self, key: str, wanted: SubKeys, existing: Mapping[str, str]
    ) -> dict[str, str | None]:
        """Return the sub-keys to set, with what the task leaves to us or to PVE."""
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
        """Return the sub-keys of the boot order; none where the VM has nothing to boot from.

        An order and the old form of one replace each other.
        """
        if "legacy" in wanted:
            return {"order": None, **wanted}
        config = _without(self.config, self.gone)
        text = wanted.get("order") or ""
        order = boot_order(text, config, self.desired)
        if not order:
            return {}
        return {"order": order, "legacy": None}

    def _memory_values(self, wanted: SubKeys, existing: Mapping[str, str]) -> dict[str, str | None]:
        """Return the memory that a VM gets, which can be more where it is hotplugged in modules."""
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
        """Return the machine type with the version that PVE added to that of a Windows guest.

        It does so at creation and when the kind of guest changes (Machine.pm,
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
        if self.new and not self._is_decided("boot"):
            order = first_boot_order(self.sets, self.desired)
            self._set_or_delete("boot", order)

    def predict_boot(self) -> None:
        """Predict what PVE makes of the boot order of a VM that has one."""
        if "boot" in self.sets:
            return
        predicted = order_after(self.target, self.sets, self.gone)
        if predicted is not None:
            self.side_effects["boot"] = predicted

    def predict_machine(self) -> None:
        """Predict the machine type of a guest that becomes a Windows one: PVE adds its newest
        version.
        """
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

    def predict_template(self) -> None:
        """Predict that the VM becomes a template."""
        is_template = self.target.get("template") == "1"
        if self.desired.state == "template" and not is_template:
            self.side_effects["template"] = "1"

    def set_tags(self) -> None:
        """Set the tags, a set; foreign tags stay unless the list is exact.

        A tenant's tag stays in any case, except one that an unfinished clone has from its source.
        """
        found = parse_tags(self.target.get("tags", ""))
        wanted = self.desired.own_tags
        kept = self._kept_tags(found)
        added = wanted.difference(map(str.lower, found))
        removed = len(found) - len(kept)
        if added or removed:
            tags = sorted({*kept, *added})
            self._set_or_delete("tags", ";".join(tags))

    def _kept_tags(self, found: Sequence[str]) -> list[str]:
        """Return the tags that the VM has and keeps."""
        _notes, marker = self.notes
        needed = self.desired.own_tags.union(tenants_of(found, self.desired.tenant_prefix))
        kept: list[str] = []
        for tag in found:
            lowered = tag.lower()
            if lowered in marker.inherited_tags:
                continue
            is_needed = lowered in needed
            if is_needed or self.desired.keeps_other_tags:
                kept.append(tag)
        return kept

    def set_notes(self) -> None:
        """Set the notes with the marker; this update finishes a VM that was being made."""
        notes, marker = self.notes
        wanted = self.desired.description
        if wanted is None:
            wanted = notes
        is_same = wanted == notes
        if is_same and not marker.building:
            return
        text = join_notes(wanted, Marker(origin=marker.origin))
        self._set_or_delete("description", text)

    def set_ssh_keys(self) -> None:
        """Set the SSH keys, compared decoded and without comments between them."""
        wanted = self.desired.ssh_keys
        if wanted is None:
            return
        found: list[str] = []
        for line in decode_keys(self.target.get("sshkeys", "")):
            is_comment = line.startswith("#")
            if not is_comment:
                found.append(line)
        if list(wanted) != found:
            self._set_or_delete("sshkeys", quote("\n".join(wanted), safe=""))

    def set_password(self) -> None:
        """Set the password as O(update_password) asks for: it cannot be read back."""
        password = self.desired.password
        if not password:
            return
        has_one = "cipassword" in self.target
        is_always_set = self.desired.update_password == "always"
        if has_one and not is_always_set:
            return
        self.sets["cipassword"] = password
        self.secret = True


def _without(values: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    """Return the options that are not among `keys`."""
    left = dict(values)
    for key in keys:
        left.pop(key, None)
    return left


def _is_windows(config: Mapping[str, str]) -> bool:
    return config.get("ostype", "").startswith("w")


def apply_to(change: Change, target: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration that the change leads to, as PVE would show it."""
    result = _without(target, change.deletes)
    result.update(change.sets)
    for slot in filter(DRIVE.match, change.sets):
        result[slot] = change.drives.shown.get(slot, change.sets[slot])
    result = _without(result, change.drives.removed)
    result.update(change.drives.after)
    result.update(change.side_effects)
    if "tags" in result:
        tags = parse_tags(result["tags"])
        result["tags"] = ";".join(sorted(tags))
    return result
