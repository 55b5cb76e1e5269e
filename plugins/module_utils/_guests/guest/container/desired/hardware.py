# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hardware that the options describe, in PVE's keys, without the volumes (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ....._foundation.core import validate
from ....._foundation.core.quantities import parse_memory
from ....._foundation.schema.check import find_refusal
from ....._foundation.schema.formats import rule_of
from ....._foundation.schema.lxc import LXC
from ...desired.devices import SubKeys, add_open, addresses_of, declared
from ...desired.gathered import (
    GatheredOptions,
    ReservedOptions,
    add_declared,
    add_open_options,
    in_canonical_form,
)
from .values import TABLES

# PVE's names of options that the module has itself: they cannot be set in `options`.
_OWN = {
    "hostname": "name",
    "tags": "tags",
    "description": "description",
    "memory": "memory",
    "swap": "swap",
    "rootfs": "rootfs",
    "features": "features",
    "env": "environment",
    "template": "state",
    "pool": "pool",
    "password": "password",
    "ssh-public-keys": "ssh_keys",
}
_CLOSED = ReservedOptions(
    devices=re.compile(r"^(net|mp|dev|unused)\d+$"),
    device_step="Use mounts, nics and devices",
    set_by_pve=frozenset(("lock", "digest")),
    pve_step="The API does not set it",
    own=_OWN,
)
_VARIABLE = re.compile(r"\w+")
_SLOTS = {"nics": re.compile(r"^net\d+$"), "devices": re.compile(r"^dev\d+$")}


def read_hardware(options: Mapping[str, Any]) -> GatheredOptions:
    """Return the hardware of checked options. Raises ValidationFailed."""
    hardware = GatheredOptions()
    add_declared(TABLES, "", options, hardware)
    for name, minimum in (("memory", 16), ("swap", 0)):
        if options[name] is not None:
            hardware.scalars[name] = parse_memory(options[name], what=name, minimum=minimum)
    if options["features"] is not None:
        hardware.property_strings["features"] = declared(TABLES, "features", options["features"])
    add_open_options(options["options"] or {}, hardware, _CLOSED, LXC)
    _add_devices("nics", options["nics"] or [], hardware)
    _add_devices("devices", options["devices"] or [], hardware)
    return in_canonical_form(hardware, LXC)


def read_environment(given: Mapping[str, Any]) -> dict[str, str | None]:
    """Return environment variables by name, None to remove one. Raises ValidationFailed."""
    variables: dict[str, str | None] = {}
    for raw_name, value in given.items():
        name = str(raw_name)
        if value is None:
            variables[name] = None
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        is_name = _VARIABLE.fullmatch(name) is not None
        if not is_name or find_refusal("env", f"{name}={text}", schema=LXC):
            raise validate.refused(
                "environment",
                name,
                "is not a variable that PVE takes",
                "Use letters, digits and underscores, and a value without control characters",
            )
        variables[name] = text
    return variables


def _add_devices(place: str, items: Sequence[Mapping[str, Any]], hardware: GatheredOptions) -> None:
    """Add NICs or devices of the node by their slots."""
    listed: set[str] = set()
    for item in items:
        key = str(item["name"])
        is_slot = _SLOTS[place].match(key) is not None
        if not is_slot or not rule_of(key, schema=LXC):
            example = {"nics": "net0; the name in the container is interface", "devices": "dev0"}
            raise validate.refused(
                place, key, "is not a slot", f"Use a name such as {example[place]}"
            )
        if key in listed:
            raise validate.refused(place, key, "is listed twice", "List each slot once")
        listed.add(key)
        if item.get("state") == "absent":
            hardware.unset.add(key)
            continue
        values: SubKeys = declared(TABLES, place, item)
        if place == "nics":
            values.update(addresses_of(key, item))
        add_open(f"{place}.{key}", item, values)
        hardware.property_strings[key] = values
