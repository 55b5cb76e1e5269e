# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The change of a configuration: options to set and to delete, changes of volumes, and their part
that VMs and containers share (pure).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from ...._foundation.cluster.tenant import parse_tags, tenants_of
from ...._foundation.core.errors import FleetError, ValidationFailed
from ...._foundation.core.propstring import same
from ...._foundation.core.quantities import read_size, readable_sizes, render_size
from ...._foundation.schema.formats import (
    Schema,
    canonical_sub_key,
    parse_option,
    render_option,
    sub_keys_of,
)
from ...._foundation.schema.values import differing_sub_keys, is_same_option
from ..hardware import MOVED, DesiredGuest, Disk
from ..kind import Kind
from ..marker import Marker, join_notes, split_notes


@dataclass
class DriveChange:
    """`sets` goes into the update; `after` are the drives in their final form."""

    sets: dict[str, str] = field(default_factory=dict)
    # how PVE will show a volume that `sets` creates
    predicted: dict[str, str] = field(default_factory=dict)
    detached: set[str] = field(default_factory=set)  # stay as unusedN
    removed: set[str] = field(default_factory=set)  # volume destroyed
    grown: dict[str, int] = field(default_factory=dict)  # slot -> bytes
    # slot -> bytes, of new disks that are larger than the image they import
    grown_later: dict[str, int] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)  # slot -> storage
    handed: dict[str, Disk] = field(default_factory=dict)  # slot -> a disk that another guest gets
    after: dict[str, str] = field(default_factory=dict)
    storages: dict[str, str] = field(default_factory=dict)  # storage -> content it must take
    # volume ID that must exist -> content
    volumes: dict[str, str] = field(default_factory=dict)
    # slot -> storage, format
    formats: dict[str, tuple[str, str]] = field(default_factory=dict)
    # slot -> why it cannot become the desired drive; `after` has that drive nevertheless
    refused: dict[str, FleetError] = field(default_factory=dict)

    @property
    def gone(self) -> set[str]:
        """The slots whose volumes the guest no longer has."""
        return {*self.removed, *self.handed}

    @property
    def keys(self) -> set[str]:
        return {*self.sets, *self.detached, *self.gone, *self.grown, *self.moved, *self.refused}


@dataclass(frozen=True)
class Relocation:
    """The storage of each volume that is moved before or after the migration, by slot, and the map
    of the migration, by storage.
    """

    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    mapped: Mapping[str, str] = field(default_factory=dict)
    mapped_slots: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()  # the storages that no volume uses when it arrives
    stuck: Mapping[str, str] = field(default_factory=dict)  # slot -> the storage that it needs
    keeps_connections: bool = False  # whether tracked connections of a running VM move with it

    @property
    def storage_map(self) -> str:
        """The map in the form of a request."""
        return ",".join(f"{source}:{target}" for source, target in sorted(self.mapped.items()))


@dataclass(frozen=True)
class ConfigChange:
    """The content of one update: options to set, options to delete, and the changes of drives."""

    sets: Mapping[str, str] = field(default_factory=dict)
    deletes: frozenset[str] = frozenset()
    drives: DriveChange = field(default_factory=DriveChange)
    relocation: Relocation | None = None  # if the guest moves to another node
    # options that PVE itself changes with it
    side_effects: Mapping[str, str] = field(default_factory=dict)
    secret: bool = False

    @property
    def keys(self) -> set[str]:
        return {*self.sets, *self.deletes, *self.drives.keys, *self.side_effects}

    @property
    def gone(self) -> frozenset[str]:
        return self.deletes | self.drives.gone

    def without(self, option: str) -> ConfigChange:
        """Return the change with one option removed from it."""
        sets = without(self.sets, {option})
        return replace(self, sets=sets, deletes=self.deletes - {option})


def without(values: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    """Return the options that are not among `keys`."""
    remaining = dict(values)
    for key in keys:
        remaining.pop(key, None)
    return remaining


# Sub-keys of a property string; None removes one.
SubKeys: TypeAlias = "Mapping[str, str | None]"


@dataclass
class ConfigUpdate:
    """The desired guest beside its present configuration, and the change that results from both."""

    desired: DesiredGuest
    target: Mapping[str, str]
    new: bool
    sets: dict[str, str] = field(default_factory=dict)
    deletes: set[str] = field(default_factory=set)
    drives: DriveChange = field(default_factory=DriveChange)
    side_effects: dict[str, str] = field(default_factory=dict)
    secret: bool = False
    # options of a new guest that the task leaves out
    defaults: ClassVar[Mapping[str, str]]
    name_key: ClassVar[str]
    schema: ClassVar[Schema]
    # the options of a NIC; its number follows the match
    of_nic: ClassVar[re.Pattern[str]]

    @property
    def change(self) -> ConfigChange:
        """The change so far."""
        return ConfigChange(
            sets=self.sets,
            deletes=frozenset(self.deletes),
            drives=self.drives,
            side_effects=self.side_effects,
            secret=self.secret,
        )

    @property
    def gone(self) -> set[str]:
        """The options and drives that are removed so far."""
        return self.deletes | self.drives.gone

    @property
    def config(self) -> dict[str, str]:
        """The configuration with the options that are set so far."""
        return {**self.target, **self.sets}

    @property
    def notes(self) -> tuple[str, Marker]:
        """The notes of the guest, and the marker in them."""
        return split_notes(self.target.get("description"))

    def change_drives(self, drives: DriveChange) -> None:
        """Add the changes of the disks."""
        self.drives = drives
        self.sets.update(drives.sets)
        self.deletes |= drives.detached

    def set_or_delete(self, key: str, text: str) -> None:
        """Set an option; an empty text removes it if the guest has it."""
        if text:
            self.sets[key] = text
        else:
            self.deletes |= {key} & self.target.keys()

    def is_decided(self, key: str) -> bool:
        """Return whether the task sets or removes a property string, or the guest has it."""
        return key in {
            *self.desired.hardware.property_strings,
            *self.desired.hardware.unset,
            *self.target,
        }

    def set_scalars(self) -> None:
        """Set the name and the scalar options; a new guest also gets our defaults."""
        values: dict[str, str] = {}
        if self.new:
            values.update(without(self.defaults, self.desired.hardware.unset))
        if self.desired.guest.name:
            values[self.name_key] = self.desired.guest.name
        values.update(self.desired.hardware.scalars)
        for key, wanted in values.items():
            found = self.target.get(key)
            if not is_same_option(key, wanted, found, self.schema):
                self.sets[key] = wanted

    def unset_options(self) -> None:
        """Delete options that the task removes, and NICs that are missing from an exact list."""
        self.deletes |= self.desired.hardware.unset & self.target.keys()
        if self.desired.hardware.nics_exact:
            unlisted = set()
            for key in filter(self.of_nic.match, self.target):
                number = self.of_nic.sub("", key)
                if f"net{number}" not in self.desired.hardware.property_strings:
                    unlisted.add(key)
            self.deletes |= unlisted

    def set_property_strings(self) -> None:
        """Set each property string of the task."""
        for key, wanted in self.desired.hardware.property_strings.items():
            self.set_property_string(key, wanted)

    def set_property_string(self, key: str, wanted: SubKeys) -> None:
        """Set the sub-keys that differ from the guest's, or all sub-keys of a new property string.

        Only sub-keys that the task mentions count.
        """
        existing = parse_option(key, self.target.get(key, ""), self.schema)
        values = self.desired_values(key, wanted, existing)
        differing = differing_sub_keys(key, values, existing, self.schema)
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
                merged[name] = canonical_sub_key(key, name, value, self.schema)
        self.set_or_delete(key, render_option(key, merged, self.schema))

    def desired_values(
        self, key: str, wanted: SubKeys, existing: Mapping[str, str]
    ) -> dict[str, str | None]:
        """Return the sub-keys to set, including values that the task leaves to us or to PVE."""
        raise NotImplementedError

    def predict_template(self) -> None:
        """Predict that the guest becomes a template."""
        is_template = self.target.get("template") == "1"
        if self.desired.guest.state == "template" and not is_template:
            self.side_effects["template"] = "1"

    def set_tags(self) -> None:
        """Set the tags, in any order; unlisted tags stay unless the list is exact.

        A tenant's tag always stays, unless an unfinished clone inherited it from its source.
        """
        found = parse_tags(self.target.get("tags", ""))
        wanted = self.desired.guest.own_tags
        _notes, marker = self.notes
        needed = self.desired.guest.own_tags.union(
            tenants_of(found, self.desired.guest.tenant_prefix)
        )
        kept: list[str] = []
        for tag in found:
            lowered = tag.lower()
            if lowered in marker.inherited_tags:
                continue
            is_needed = lowered in needed
            if is_needed or self.desired.guest.keeps_other_tags:
                kept.append(tag)
        added = wanted.difference(map(str.lower, found))
        removed = len(found) - len(kept)
        if added or removed:
            tags = sorted({*kept, *added})
            self.set_or_delete("tags", ";".join(tags))

    def set_notes(self) -> None:
        """Set the notes with the marker; the update also ends the creation of a new guest."""
        notes, marker = self.notes
        wanted = self.desired.guest.description
        if wanted is None:
            wanted = notes
        completed = self.desired.guest.replacement or marker.completed
        is_same = wanted == notes and completed == marker.completed
        if is_same and not marker.building:
            return
        text = join_notes(wanted, completed)
        self.set_or_delete("description", text)


def applied(change: ConfigChange, target: Mapping[str, str], kind: Kind) -> dict[str, str]:
    """Return the configuration after the change, as PVE would show it."""
    result = without(target, change.deletes)
    result.update(change.sets)
    for slot in filter(kind.volume_option.match, change.sets):
        result[slot] = change.drives.predicted.get(slot, change.sets[slot])
    result = without(result, change.drives.gone)
    result.update(change.drives.after)
    result.update(change.side_effects)
    if "tags" in result:
        tags = parse_tags(result["tags"])
        result["tags"] = ";".join(sorted(tags))
    return result


def with_images(
    change: ConfigChange,
    desired: DesiredGuest,
    target: Mapping[str, str],
    images: Mapping[str, int],
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
class VolumeUpdate:
    """The desired and the existing disks of a guest, and the change between them."""

    schema: ClassVar[Schema]
    file_key: ClassVar[str]  # the sub-key with the volume
    noun: ClassVar[str]  # the word for a disk in messages
    desired: DesiredGuest
    existing: Mapping[str, Mapping[str, str]]  # sub-keys by slot
    change: DriveChange = field(default_factory=DriveChange)  # the change so far

    def create(self, disk: Disk) -> None:
        """Create a volume, or attach an existing one."""
        raise NotImplementedError

    def update(self, disk: Disk) -> None:
        """Change the options, the size and the storage of a disk."""
        raise NotImplementedError

    def desired_options(self, disk: Disk, existing: Mapping[str, str]) -> dict[str, str]:
        """Return the desired sub-keys of a disk that cannot be changed to them."""
        raise NotImplementedError

    def detach_unlisted(self) -> None:
        """Detach the disks that are missing from an exact list."""
        raise NotImplementedError

    def change_all(self, disks: Iterable[Disk], target: Mapping[str, str]) -> None:
        """Change the listed disks, remove listed volumes that no disk uses, and detach unlisted
        disks if the list is exact.
        """
        for disk in disks:
            is_unused = disk.slot.startswith("unused")
            if not is_unused:
                try:
                    self._change(disk)
                except ValidationFailed as error:
                    self.change.refused[disk.slot] = error
                    self.change.sets.pop(disk.slot, None)
                    desired = self.desired_options(disk, self.existing.get(disk.slot, {}))
                    self.change.after[disk.slot] = render_option(disk.slot, desired, self.schema)
            elif disk.slot in target and disk.state == MOVED:
                self.change.handed[disk.slot] = disk
            elif disk.slot in target:
                self.change.removed.add(disk.slot)
        if self.desired.hardware.disks_exact:
            self.detach_unlisted()

    def _change(self, disk: Disk) -> None:
        """Create, update, detach or remove a disk."""
        if disk.slot not in self.existing:
            if disk.state == "present":
                self.create(disk)
        elif disk.state == "present":
            self.update(disk)
        elif disk.state == MOVED:
            self.change.handed[disk.slot] = disk
        elif disk.state == "detached":
            self.change.detached.add(disk.slot)
        else:
            self.change.removed.add(disk.slot)

    def need_space(self, disk: Disk, storage: str) -> None:
        """Note the requirements of a new or moved volume on its storage."""
        self.change.storages[storage] = self.desired.guest.kind.content
        if disk.format:
            self.change.formats[disk.slot] = storage, disk.format

    def set_options(self, slot: str, after: Mapping[str, str]) -> None:
        """Set the sub-keys of an existing disk if they differ."""
        if after != self.existing[slot]:
            text = render_option(slot, after, self.schema)
            self.change.sets[slot] = text
            self.change.predicted[slot] = text

    def grow_and_move(self, disk: Disk, after: dict[str, str], current: str | None) -> None:
        """Note the growth of an existing disk and its move to another storage than `current`."""
        slot = disk.slot
        size = self._grown_size(disk)
        if size is not None:
            self.change.grown[slot] = size
            after["size"] = render_size(size)
        storage = None if current in (None, disk.storage) else disk.storage
        if storage is not None:
            self.change.moved[slot] = storage
            self.need_space(disk, storage)
            after[self.file_key] = f"{storage}:moved"
        if size is not None or storage is not None:
            self.change.after[slot] = render_option(slot, after, self.schema)

    def _grown_size(self, disk: Disk) -> int | None:
        """Return the bytes to which a disk grows, or None. Raises ValidationFailed for less."""
        size = read_size(self.existing[disk.slot].get("size"))
        if disk.size is None or size is None or disk.size == size:
            return None
        if disk.size > size:
            return disk.size
        existing_size, wanted = readable_sizes(size, disk.size)
        raise ValidationFailed(
            f"{self.noun} {disk.slot} of {self.desired.guest.label} was not changed: it has "
            f"{existing_size} and cannot shrink to {wanted}",
            f"PVE cannot shrink disks: write {render_size(size)}, or copy to a new disk",
            "shrink",
        )


def with_options(disk: Disk, existing: Mapping[str, str], schema: Schema) -> dict[str, str]:
    """Return the sub-keys of an existing disk, overwritten by the requested ones."""
    fmt = sub_keys_of(disk.slot, schema)
    after = dict(existing)
    for name, value in disk.options.items():
        if value is None:
            after.pop(name, None)
            continue
        if same(name, value, existing.get(name), fmt):
            continue
        after[name] = canonical_sub_key(disk.slot, name, value, schema)
    return after
