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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from urllib.parse import quote

from ..._cluster.tenant import parse_tags, tenants_of
from ..._core.propstring import canonical, same
from ..._core.quantities import render_size
from ..._guest.marker import Marker, join_notes, split_notes
from ..._schema.formats import (
    canonical_sub_key,
    parse_option,
    render_option,
    rule_of,
    sub_keys_of,
)
from ..model import Desired
from .actual import DRIVE
from .boot import boot_order, first_boot_order, order_after
from .drives import DriveChange, change_drives
from .hotplug import hotplug_features, in_dimms
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
        sets = {key: text for key, text in self.sets.items() if key != option}
        return replace(self, sets=sets, deletes=self.deletes - {option})


def changes(desired: Desired, target: Mapping[str, str], *, new: bool = False) -> Change:
    """Return what makes `target` the desired configuration; it is empty for a new VM."""
    update = _Update(desired, target, new)
    update.set_scalars()
    update.set_name()
    update.set_agent()
    update.set_drives()
    update.unset_options()
    update.set_property_strings()
    update.set_boot()
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
    if not images:
        return change
    shown = dict(change.drives.shown)
    grown_later: dict[str, int] = {}
    for disk in desired.disks:
        size = images.get(disk.slot)
        if not size or disk.slot in target:
            continue
        if disk.size is None:
            shown[disk.slot] += f",size={render_size(size)}"
        elif disk.size > size:
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

    def _set_or_delete(self, key: str, text: str) -> None:
        """Set an option; an empty text removes it."""
        if text:
            self.sets[key] = text
        else:
            self.deletes.add(key)

    def set_scalars(self) -> None:
        """Set options that are one value, those of a new VM with our defaults."""
        values = dict(self.desired.scalars)
        if self.new:
            for key, text in NEW_VM.items():
                if key not in self.desired.unset:
                    values.setdefault(key, text)
        for key, value in values.items():
            if not _is_same_scalar(key, value, self.target.get(key)):
                self.sets[key] = value

    def set_name(self) -> None:
        """Set the name, where the task has one."""
        name = self.desired.name
        if name and name != self.target.get("name"):
            self.sets["name"] = name

    def set_agent(self) -> None:
        """Switch on the guest agent of a new VM, unless the task or the template sets it."""
        if not self.desired.default_agent:
            return
        _notes, marker = split_notes(self.target.get("description"))
        is_made_now = self.new or marker.building
        if not is_made_now:
            return
        mentioned = {*self.desired.property_strings, *self.desired.unset, *self.target}
        if "agent" not in mentioned:
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

    def set_property_strings(self) -> None:
        """Set property strings; only the sub-keys that the task mentions count."""
        for key, wanted in self.desired.property_strings.items():
            existing = self._existing_values(key, wanted)
            values = self._desired_values(key, wanted, existing)
            differing = self._differing(key, values, existing)
            if not differing:
                continue
            if existing:
                values = {name: values[name] for name in values if name in differing}
            self._write(key, values, existing)

    def _existing_values(self, key: str, wanted: SubKeys) -> dict[str, str]:
        """Return the sub-keys that the VM has, without those that the desired ones replace."""
        existing = parse_option(key, self.target.get(key, ""))
        if key == "boot":
            replaced = "order" if "legacy" in wanted else "legacy"
            existing.pop(replaced, None)
        return existing

    def _desired_values(
        self, key: str, wanted: SubKeys, existing: Mapping[str, str]
    ) -> dict[str, str | None]:
        """Return the sub-keys to set, with what the task leaves to us."""
        if key == "boot":
            return self._boot_values(wanted)
        if key == "memory":
            return self._memory_values(wanted, existing)
        is_new_nic = key.startswith("net") and not existing
        if is_new_nic:
            return {**_NEW_NIC, **wanted}
        return dict(wanted)

    def _boot_values(self, wanted: SubKeys) -> dict[str, str | None]:
        """Return the sub-keys of the boot order; none where the VM has nothing to boot from."""
        if "legacy" in wanted:
            return dict(wanted)
        config = self.config
        for key in self.gone:
            config.pop(key, None)
        order = boot_order(wanted.get("order") or "", config, self.desired)
        if not order:
            return {}
        return {"order": order}

    def _memory_values(self, wanted: SubKeys, existing: Mapping[str, str]) -> dict[str, str | None]:
        """Return the memory that a VM gets, which can be more where it is hotplugged in modules."""
        values = dict(wanted)
        if self.new or not _differing("memory", values, existing):
            return values
        config = self.config
        if "memory" in hotplug_features(config):
            size = int(values["current"] or 0)
            values["current"] = str(in_dimms(size, config))
        return values

    def _differing(self, key: str, values: SubKeys, existing: Mapping[str, str]) -> set[str]:
        """Return the names of the sub-keys to write."""
        differing = _differing(key, values, existing)
        if key == "machine" and self._is_pinned(values.get("type"), existing.get("type")):
            differing.discard("type")
        return differing

    def _is_pinned(self, wanted: str | None, found: str | None) -> bool:
        """Return whether PVE added a version to the machine type of a Windows guest that is
        wanted.

        It does so at creation and when the kind of guest changes (Machine.pm,
        check_and_pin_machine_string).
        """
        family = _FAMILIES.get(wanted or "")
        if not family or not found:
            return False
        if not _is_windows(self.config):
            return False
        return re.match(rf"^{family}-\d", found) is not None

    def _write(self, key: str, values: SubKeys, existing: Mapping[str, str]) -> None:
        """Set a property string with these sub-keys over those it has; None removes one."""
        merged = dict(existing)
        for name, value in values.items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = canonical_sub_key(key, name, value)
        self._set_or_delete(key, render_option(key, merged))

    def set_boot(self) -> None:
        """Set the first boot order of a new VM; else predict what PVE makes of the one there is."""
        if self.new:
            self._set_first_boot()
        elif "boot" not in self.sets:
            order = order_after(self.target, self.sets, self.gone)
            if order is not None:
                self.side_effects["boot"] = order

    def _set_first_boot(self) -> None:
        mentioned = {*self.desired.property_strings, *self.desired.unset}
        if "boot" in mentioned:
            return
        order = first_boot_order(self.sets, self.desired)
        if order:
            self.sets["boot"] = order

    def predict_machine(self) -> None:
        """Predict the machine type of a guest that becomes a Windows one: PVE adds its newest
        version.
        """
        if self.new or "machine" in {*self.sets, *self.deletes}:
            return
        if not _is_windows(self.sets):
            return
        values = parse_option("machine", self.target.get("machine", ""))
        family = _FAMILIES.get(values.get("type", "pc"))
        if family:
            values["type"] = f"{family}-newest"
            self.side_effects["machine"] = render_option("machine", values)

    def predict_template(self) -> None:
        """Predict that the VM becomes a template."""
        if self.desired.state == "template" and self.target.get("template") != "1":
            self.side_effects["template"] = "1"

    def set_tags(self) -> None:
        """Set the tags, a set; foreign tags stay unless the list is exact.

        A tenant's tag stays in any case, except one that an unfinished clone has from its source.
        """
        found = parse_tags(self.target.get("tags", ""))
        wanted = set(self.desired.tags or ())
        if self.desired.tenant_tag:
            wanted.add(self.desired.tenant_tag)
        kept = self._kept_tags(found, wanted)
        added = wanted - {tag.lower() for tag in found}
        if len(kept) == len(found) and not added:
            return
        tags = sorted({*kept, *added})
        self._set_or_delete("tags", ";".join(tags))

    def _kept_tags(self, found: Sequence[str], wanted: set[str]) -> list[str]:
        """Return the tags that the VM has and keeps."""
        _notes, marker = split_notes(self.target.get("description"))
        is_exact = self.desired.tags is not None and self.desired.tags_exact
        owners = tenants_of(found, self.desired.tenant_prefix)
        kept: list[str] = []
        for tag in found:
            lowered = tag.lower()
            if lowered in marker.inherited_tags:
                continue
            if is_exact and lowered not in wanted and lowered not in owners:
                continue
            kept.append(tag)
        return kept

    def set_notes(self) -> None:
        """Set the notes with the marker; this update finishes a VM that was being made."""
        notes, marker = split_notes(self.target.get("description"))
        wanted = notes
        if self.desired.description is not None:
            wanted = self.desired.description
        if wanted == notes and not marker.building:
            return
        text = join_notes(wanted, Marker(origin=marker.origin))
        if text or "description" in self.target:
            self._set_or_delete("description", text)

    def set_ssh_keys(self) -> None:
        """Set the SSH keys, compared decoded."""
        wanted = self.desired.ssh_keys
        if wanted is None:
            return
        found = decode_keys(self.target.get("sshkeys", ""))
        if list(wanted) != found:
            self._set_or_delete("sshkeys", quote("\n".join(wanted), safe=""))

    def set_password(self) -> None:
        """Set the password as O(update_password) asks for: it cannot be read back."""
        password = self.desired.password
        if not password:
            return
        is_always_set = self.desired.update_password == "always"
        is_missing = self.new or "cipassword" not in self.target
        if is_always_set or is_missing:
            self.sets["cipassword"] = password
            self.secret = True


def _is_same_scalar(key: str, wanted: str, found: str | None) -> bool:
    """Return whether an option has the wanted value, PVE's default standing in for a missing
    one.
    """
    rule = rule_of(key) or {}
    if key == "nameserver":
        return _is_same_list(wanted, found)
    if key == "hotplug":
        current = found
        if current is None:
            current = str(rule.get("default", ""))
        return _hotplug_words(wanted) == _hotplug_words(current)
    if found is not None:
        return wanted == canonical(found, rule)
    if "default" in rule:
        return wanted == canonical(rule["default"], rule)
    if rule.get("type") == "boolean":
        return wanted in ("", "0")
    return wanted == ""


def _is_same_list(wanted: str, found: str | None) -> bool:
    if found is None:
        return False
    return wanted.split() == found.replace(",", " ").split()


def _hotplug_words(text: str) -> frozenset[str]:
    if text == "1":
        text = "network,disk,usb"
    return frozenset(text.replace(";", ",").split(","))


def _differing(key: str, values: SubKeys, found: Mapping[str, str]) -> set[str]:
    """Return the names of the sub-keys that do not have the wanted value."""
    fmt = sub_keys_of(key)
    differing: set[str] = set()
    for name, value in values.items():
        if value is None:
            holds = name not in found
        else:
            holds = same(name, value, found.get(name), fmt)
        if not holds:
            differing.add(name)
    return differing


def _is_windows(config: Mapping[str, str]) -> bool:
    return config.get("ostype", "").startswith("w")


def apply_to(change: Change, target: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration that the change leads to, as PVE would show it."""
    result = dict(target)
    for key in change.deletes:
        result.pop(key, None)
    result.update(change.sets)
    for slot in filter(DRIVE.match, change.sets):
        result[slot] = change.drives.shown.get(slot, change.sets[slot])
    for slot in change.drives.removed:
        result.pop(slot, None)
    result.update(change.drives.after)
    result.update(change.side_effects)
    if "tags" in result:
        result["tags"] = ";".join(sorted(parse_tags(result["tags"])))
    return result
