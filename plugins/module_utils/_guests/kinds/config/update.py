# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options to set and to delete so that a guest becomes the desired one: the part that VMs and
containers share (pure).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from ...._foundation.cluster.tenant import parse_tags, tenants_of
from ...._foundation.schema.formats import Schema, canonical_sub_key, parse_option, render_option
from ...._foundation.schema.values import differing_sub_keys, is_same_option
from ..hardware import DesiredGuest
from ..kind import Kind
from ..marker import Marker, join_notes, split_notes
from .change import ConfigChange, DriveChange, without

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
            self.deletes |= self._unlisted_nics()

    def _unlisted_nics(self) -> set[str]:
        """Return the NICs, with their addresses, that are missing from an exact list of NICs."""
        unlisted = set()
        for key in filter(self.of_nic.match, self.target):
            number = self.of_nic.sub("", key)
            if f"net{number}" not in self.desired.hardware.property_strings:
                unlisted.add(key)
        return unlisted

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
        kept = self._kept_tags(found)
        added = wanted.difference(map(str.lower, found))
        removed = len(found) - len(kept)
        if added or removed:
            tags = sorted({*kept, *added})
            self.set_or_delete("tags", ";".join(tags))

    def _kept_tags(self, found: Sequence[str]) -> list[str]:
        """Return the tags of the guest that stay."""
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
        return kept

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
