# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a guest in PVE's keys, gathered and brought into canonical form (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.core import validate
from ...._foundation.schema.formats import Schema, format_of, rule_of
from ..desired import canonical
from .tables import OptionTables
from .values import is_blank


@dataclass
class GatheredOptions:
    """Options in PVE's keys: scalars, property strings by sub-key, and options to remove."""

    scalars: dict[str, Any] = field(default_factory=dict)
    property_strings: dict[str, Any] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)

    def __contains__(self, key: str) -> bool:
        return key in {*self.scalars, *self.property_strings, *self.unset}


def add_declared(
    tables: OptionTables, place: str, options: Mapping[str, Any], hardware: GatheredOptions
) -> None:
    """Add the options whose declarations are enough: scalars, property strings, empty texts."""
    for name, key in tables.empty_removes.get(place, {}).items():
        if key and is_blank(options.get(name)):
            hardware.unset.add(key)
    scalars = tables.scalars.get(place, {})
    property_strings = tables.property_strings.get(place, {})
    for name, key in {**scalars, **property_strings}.items():
        value = options.get(name)
        if value is None:
            continue
        if is_blank(value):
            hardware.unset.add(key)
            continue
        words = tables.words.get(place, {}).get(name, {})
        value = words.get(value, value)
        if name in scalars:
            hardware.scalars[key] = value
        else:
            hardware.property_strings[key] = value


@dataclass(frozen=True)
class ReservedOptions:
    """The options of PVE that the open-ended dictionary must not contain, and why."""

    devices: re.Pattern[str]  # the slots of devices
    device_step: str  # the next step for a device
    set_by_pve: frozenset[str]
    pve_step: str  # the next step for an option that PVE sets
    own: Mapping[str, str]  # options of the module itself, by PVE's names

    def require_open(self, key: str, hardware: GatheredOptions) -> None:
        """Raise ValidationFailed for a key that must be set by an option of the module."""
        why = "cannot be set there"
        if self.devices.match(key):
            raise validate.refused("options", key, why, self.device_step)
        if key in self.set_by_pve:
            raise validate.refused("options", key, why, self.pve_step)
        if key in self.own:
            raise validate.refused("options", key, why, f"Use {self.own[key]}")
        if key in hardware:
            why = "is also set by an option of its own"
            raise validate.refused("options", key, why, "Set it once")


def add_open_options(
    options: Mapping[str, Any], hardware: GatheredOptions, closed: ReservedOptions, schema: Schema
) -> None:
    """Add the open-ended dictionary: any PVE option by its own name; null removes one.

    Raises ValidationFailed for an option that is `closed`.
    """
    for raw_key, value in options.items():
        key = str(raw_key)
        closed.require_open(key, hardware)
        if value is None or is_blank(value):
            hardware.unset.add(key)
            continue
        _require_text(key, value, schema)
        if isinstance(value, Mapping):
            hardware.property_strings[key] = value
        elif format_of(key, schema=schema) is None:
            hardware.scalars[key] = value
        else:
            hardware.property_strings[key] = str(value)


def _require_text(key: str, value: Any, schema: Schema) -> None:
    """Raise ValidationFailed for a dictionary or list if the option has no sub-keys in PVE."""
    if not isinstance(value, (Mapping, list)):
        return
    is_unknown = rule_of(key, schema=schema) is None
    has_sub_keys = is_unknown or format_of(key, schema=schema) is not None
    if has_sub_keys and isinstance(value, Mapping):
        return
    raise validate.refused(
        f"options.{key}", value, "is not text", "Write it as PVE does, as one text"
    )


def in_canonical_form(gathered: GatheredOptions, schema: Schema) -> GatheredOptions:
    """Return the hardware with each value as PVE writes it. Raises ValidationFailed."""
    hardware = GatheredOptions(unset=gathered.unset)
    for key, value in gathered.scalars.items():
        hardware.scalars[key] = canonical.scalar(key, value, schema)
    for key, given in gathered.property_strings.items():
        if isinstance(given, Mapping):
            hardware.property_strings[key] = canonical.sub_keys(key, given, schema)
        else:
            hardware.property_strings[key] = canonical.property_string(key, given, schema)
    return hardware
