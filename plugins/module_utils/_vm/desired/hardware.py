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
    "lock": None,
    "digest": None,
    "vmgenid": None,
    "meta": None,
    "pool": "pool",
    "bootdisk": "boot",
}
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
    words = WORDS.get(place, {})
    tables = ((SCALARS, hardware.scalars), (PROPERTY_STRINGS, hardware.property_strings))
    for table, found in tables:
        for name, key in table.get(place, {}).items():
            value = options.get(name)
            if is_blank(value):
                hardware.unset.add(key)
            elif value is not None:
                found[key] = words.get(name, {}).get(value, value)


def _add_rest(options: Mapping[str, Any], hardware: Hardware) -> None:
    """Add the options that have a rule of their own."""
    if options["cores"] is not None:
        hardware.scalars["cores"] = options["cores"]
    if options["agent"] is not None and "agent" not in hardware:
        hardware.property_strings["agent"] = options["agent"]
    if options["boot"]:
        hardware.property_strings["boot"] = {"order": options["boot"]}
    if options["serial_console"]:
        hardware.scalars["serial0"] = "socket"
    elif options["serial_console"] is not None:
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
    snippets = options.get("snippets") or {}
    volumes = {name: value for name, value in snippets.items() if value is not None}
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
        _require_open(key, value, hardware)
        if value is None or is_blank(value):
            hardware.unset.add(key)
        elif isinstance(value, Mapping):
            hardware.property_strings[key] = value
        elif format_of(key) is None:
            hardware.scalars[key] = value
        else:
            hardware.property_strings[key] = str(value)


def _require_open(key: str, value: Any, hardware: Hardware) -> None:
    """Raise ValidationFailed for an option that has an option of its own, and for a value that is
    not a text where PVE has no sub-keys.
    """
    if _DEVICE.match(key):
        raise validate.refused("options", key, "cannot be set there", "Use disks and nics")
    if key in _OWN:
        own = _OWN[key]
        step = "PVE sets it itself" if own is None else f"Use {own}"
        raise validate.refused("options", key, "cannot be set there", step)
    if key in hardware:
        raise validate.refused("options", key, "is also set by an option of its own", "Set it once")
    has_sub_keys = rule_of(key) is None or format_of(key) is not None
    if isinstance(value, Mapping) and has_sub_keys:
        return
    is_filled_list = isinstance(value, list) and not is_blank(value)
    if is_filled_list or isinstance(value, Mapping):
        step = "Write it as PVE does, as one text"
        raise validate.refused(f"options.{key}", value, "is not text", step)


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
