# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hardware that the options ask for, in PVE's keys, disks apart (pure).

The options are gathered under PVE's keys first; then each value gets its canonical form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._core import validate
from ..._core.quantities import parse_memory
from ..._schema.formats import format_of, rule_of
from ..._spec.vm_rules import EMPTY_REMOVES, PROPERTY_STRINGS, SCALARS, WORDS
from . import canonical
from .devices import read_nics
from .values import is_blank

# Options of the module itself, which cannot be set in `options` too.
_OWN = {
    "name": "name",
    "tags": "tags",
    "description": "description",
    "memory": "memory",
    "cores": "cores",
    "sshkeys": "cloud_init.ssh_keys",
    "cipassword": "cloud_init.password",
    "template": "state",
    "pool": "pool",
    "bootdisk": "boot",
}
_SET_BY_PVE = frozenset(("lock", "digest", "vmgenid", "meta"))
_DEVICE = re.compile(r"^(net|ide|sata|scsi|virtio|ipconfig|unused)\d+$")


@dataclass
class Hardware:
    """Options in PVE's keys: scalars, property strings by sub-key, and options to remove."""

    scalars: dict[str, Any] = field(default_factory=dict)
    property_strings: dict[str, Any] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)

    def __contains__(self, key: str) -> bool:
        return key in {*self.scalars, *self.property_strings, *self.unset}


def read_hardware(options: Mapping[str, Any]) -> Hardware:
    """Return the hardware of checked options. Raises ValidationFailed."""
    hardware = Hardware()
    _add_declared("", options, hardware)
    _add_rest(options, hardware)
    _add_cloud_init(options["cloud_init"] or {}, hardware)
    _add_memory(options, hardware)
    _add_open_options(options["options"] or {}, hardware)
    _add_nics(options["nics"] or [], hardware)
    return _in_canonical_form(hardware)


def _add_declared(place: str, options: Mapping[str, Any], hardware: Hardware) -> None:
    """Add what the declarations say all of: plain options, property strings, empty texts."""
    for name, key in EMPTY_REMOVES[place].items():
        if key and is_blank(options.get(name)):
            hardware.unset.add(key)
    scalars = SCALARS.get(place, {})
    property_strings = PROPERTY_STRINGS.get(place, {})
    for name, key in {**scalars, **property_strings}.items():
        value = options.get(name)
        if value is None:
            continue
        if is_blank(value):
            hardware.unset.add(key)
            continue
        words = WORDS.get(place, {}).get(name, {})
        value = words.get(value, value)
        if name in scalars:
            hardware.scalars[key] = value
        else:
            hardware.property_strings[key] = value


def _add_rest(options: Mapping[str, Any], hardware: Hardware) -> None:
    """Add the options that have a rule of their own."""
    if options["cores"] is not None:
        hardware.scalars["cores"] = options["cores"]
    if options["boot"]:
        hardware.property_strings["boot"] = {"order": options["boot"]}
    is_removed = "agent" in hardware
    if options["agent"] is not None and not is_removed:
        hardware.property_strings["agent"] = options["agent"]
    if options["serial_console"] is None:
        return
    if options["serial_console"]:
        hardware.scalars["serial0"] = "socket"
    else:
        hardware.unset.add("serial0")


def _add_memory(options: Mapping[str, Any], hardware: Hardware) -> None:
    """Add memory and balloon, which must not be larger."""
    maximum = 1 << 32
    if options["memory"] is not None:
        floor = parse_memory(options["memory_floor"], what="memory_floor", least=16)
        maximum = parse_memory(options["memory"], least=floor)
        hardware.property_strings["memory"] = {"current": maximum}
    if options["balloon"] is not None and "balloon" not in hardware:
        size = parse_memory(options["balloon"], what="balloon", least=0, most=maximum)
        hardware.scalars["balloon"] = size


def _add_cloud_init(options: Mapping[str, Any], hardware: Hardware) -> None:
    """Add the options of cloud-init, except the password and the SSH keys."""
    _add_declared("cloud_init", options, hardware)
    volumes = dict(options.get("snippets", {}))
    for name in list(volumes):
        if volumes[name] is None:
            del volumes[name]
    if volumes:
        hardware.property_strings["cicustom"] = volumes


def _add_nics(items: Sequence[Mapping[str, Any]], hardware: Hardware) -> None:
    for key, value in read_nics(items).items():
        if value is None:
            hardware.unset.add(key)
        else:
            hardware.property_strings[key] = value


def _add_open_options(options: Mapping[str, Any], hardware: Hardware) -> None:
    """Add the open-ended dictionary: any PVE option by its own name; null removes one."""
    for raw_key, value in options.items():
        key = str(raw_key)
        _require_open(key, hardware)
        if value is None or is_blank(value):
            hardware.unset.add(key)
            continue
        _require_text(key, value)
        if isinstance(value, Mapping):
            hardware.property_strings[key] = value
        elif format_of(key) is None:
            hardware.scalars[key] = value
        else:
            hardware.property_strings[key] = str(value)


def _require_open(key: str, hardware: Hardware) -> None:
    """Raise ValidationFailed for an option that has an option of its own."""
    why = "cannot be set there"
    if _DEVICE.match(key):
        raise validate.refused("options", key, why, "Use disks and nics")
    if key in _SET_BY_PVE:
        raise validate.refused("options", key, why, "PVE sets it itself")
    if key in _OWN:
        raise validate.refused("options", key, why, f"Use {_OWN[key]}")
    if key in hardware:
        raise validate.refused(
            "options",
            key,
            "is also set by an option of its own",
            "Set it once",
        )


def _require_text(key: str, value: Any) -> None:
    """Raise ValidationFailed for a value that is not a text where PVE has no sub-keys."""
    if not isinstance(value, (Mapping, list)):
        return
    is_unknown = rule_of(key) is None
    has_sub_keys = is_unknown or format_of(key) is not None
    if has_sub_keys and isinstance(value, Mapping):
        return
    raise validate.refused(
        f"options.{key}",
        value,
        "is not text",
        "Write it as PVE does, as one text",
    )


def _in_canonical_form(gathered: Hardware) -> Hardware:
    """Return the hardware with each value as PVE writes it. Raises ValidationFailed."""
    hardware = Hardware(unset=gathered.unset)
    for key, value in gathered.scalars.items():
        hardware.scalars[key] = canonical.scalar(key, value)
    for key, given in gathered.property_strings.items():
        if isinstance(given, Mapping):
            hardware.property_strings[key] = canonical.sub_keys(key, given)
        else:
            hardware.property_strings[key] = canonical.property_string(key, given)
    return hardware
