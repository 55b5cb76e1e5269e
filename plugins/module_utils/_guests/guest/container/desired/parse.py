# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parses the options of module container into values; no later code parses them again (pure).

Every refusal is a ValidationFailed, or a ConfigurationError for a name that no map contains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from ....._foundation.core import validate
from ....._foundation.core.quantities import parse_memory
from ....._foundation.schema.check import find_refusal
from ....._foundation.schema.formats import rule_of
from ....._foundation.schema.lxc import LXC
from ....._foundation.spec.container import container_spec
from ....._foundation.spec.fleet import with_defaults
from ....._foundation.spec.generated.container_rules import (
    CHECKS,
    EMPTY_REMOVES,
    PROPERTY_STRINGS,
    RANGES,
    SCALARS,
    WORDS,
)
from ....kinds.container.kind import CONTAINER
from ....kinds.hardware import MOVED, ContainerHardware, DesiredContainer, Disk
from ...desired.gathered import (
    GatheredOptions,
    ReservedOptions,
    SubKeys,
    add_declared,
    add_open,
    add_open_options,
    addresses_of,
    canonical_sub_keys,
    declared,
    disk_of,
    in_canonical_form,
    require_receiver,
)
from ...desired.guest import GuestOptions, is_exact, options_of, read_guest
from ...desired.layers import name_presets
from ...desired.values import COMMON, OptionTables, checked_at, checked_items, is_blank

_SHORTEST_PASSWORD = 5


ContainerOptions: TypeAlias = GuestOptions[DesiredContainer]


def read_options(params: Mapping[str, Any]) -> ContainerOptions:
    """Return the parsed options.

    `params` are the parameters of the module, checked by its argument specification.
    """
    plain = TABLES.without_empty_texts(params)
    name_presets(plain, "mounts")
    options = checked(plain)
    return options_of(DesiredContainer(read_guest(CONTAINER, options), _hardware(options)), options)


def _hardware(options: Mapping[str, Any]) -> ContainerHardware:
    """Return the hardware that checked options describe."""
    keys = read_hardware(options)
    return ContainerHardware(
        scalars=keys.scalars,
        property_strings=keys.property_strings,
        unset=frozenset(keys.unset),
        disks=read_volumes(options["rootfs"], options["mounts"] or []),
        disks_exact=is_exact(options, "mounts"),
        nics_exact=is_exact(options, "nics"),
        environment=read_environment(options["environment"] or {}),
        password=_password(options["root_password"]),
        ssh_keys=options["ssh_keys"],
        default_storage=options["default_storage"],
        allow_privileged=options["allow_privileged"],
    )


def _password(given: str | None) -> str | None:
    """Return the password, None if it is left out. Raises ValidationFailed if PVE refuses it."""
    if given is None or is_blank(given):
        return None
    if len(given) < _SHORTEST_PASSWORD:
        raise validate.refused(
            "root_password", "***", "is too short", f"Use at least {_SHORTEST_PASSWORD} characters"
        )
    return given


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
    devices=re.compile(r"^(net|mp|dev|unused)\d+\Z"),
    device_step="Use mounts, nics and devices",
    set_by_pve=frozenset(("lock", "digest")),
    pve_step="The API does not set it",
    own=_OWN,
)

_VARIABLE = re.compile(r"\w+")
_SLOTS = {"nics": re.compile(r"^net\d+\Z"), "devices": re.compile(r"^dev\d+\Z")}


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


_SLOT = re.compile(r"^(?:mp|unused)\d+\Z")
_UNUSED = re.compile(r"^unused\d+\Z")
_VOLUME_KEYS = frozenset(("volume", "size"))


def read_volumes(
    rootfs: Mapping[str, Any] | None, mounts: Sequence[Mapping[str, Any]]
) -> tuple[Disk, ...]:
    """Return the volumes of a container. Raises ValidationFailed."""
    volumes: dict[str, Disk] = {}
    if rootfs is not None:
        volumes["rootfs"] = _volume("rootfs", "rootfs", "rootfs", rootfs)
    for item in mounts:
        slot = str(item["name"])
        _require_mount(slot, item)
        if slot in volumes:
            raise validate.refused("mounts", slot, "is listed twice", "List each mount point once")
        volumes[slot] = _volume(slot, "mounts", f"mounts.{slot}", item)
    return tuple(volumes.values())


def _require_mount(slot: str, item: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for an invalid slot name, or options that exclude each other."""
    is_slot = _SLOT.match(slot) is not None
    if not is_slot or not rule_of(slot, schema=LXC):
        raise validate.refused(
            "mounts", slot, "is not a mount point", "Use a name such as mp0; rootfs has an option"
        )
    if slot.startswith("unused") and item.get("state") not in ("absent", MOVED):
        raise validate.refused(
            "mounts", slot, "is a volume that no mount point uses", "It can only be absent or moved"
        )
    allowed = _UNUSED if slot.startswith("unused") else _SLOT  # API2/LXC.pm, move_volume
    require_receiver(f"mounts.{slot}", slot, item, allowed)
    if not item.get("volume"):
        return
    for name in ("size", "storage", "storage_class"):
        if item.get(name) is not None:
            raise validate.refused(
                f"mounts.{slot}.{name}",
                item[name],
                "is given beside an existing volume",
                "Leave it out, or leave volume out for a new one",
            )


def _volume(slot: str, place: str, path: str, item: Mapping[str, Any]) -> Disk:
    """Return the volume that an item describes."""
    values = declared(TABLES, place, item)
    add_open(path, item, values, _VOLUME_KEYS)
    return disk_of(slot, item, canonical_sub_keys(slot, values, LXC))


_SPEC = container_spec()
_WORD = re.compile(r"[^;,\s]+")
# The container configures its address itself.
_MANUAL = "manual"


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a container, each value in the form that its check returns.

    Options that are not given have their defaults; each device has a slot. Raises ValidationFailed
    for the first value that a check refuses.
    """
    options = checked_at(TABLES, "", with_defaults(_SPEC, dict(given)), "")
    for name in ("rootfs", "features"):
        if options[name] is not None:
            options[name] = checked_at(TABLES, name, options[name], name)
    for name, family in (("mounts", "mp"), ("nics", "net"), ("devices", "dev")):
        options[name] = checked_items(TABLES, name, options[name], partial(_slots, family))
    return options


def _slots(family: str, items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the slot of each item, by its position if it has no name."""
    return [str(item.get("name") or f"{family}{place}") for place, item in enumerate(items)]


def _ipv4(address: str, what: str) -> str:
    return address if address == _MANUAL else COMMON["ipv4"](address, what)


def _ipv6(address: str, what: str) -> str:
    return address if address == _MANUAL else COMMON["ipv6"](address, what)


def _words(items: Sequence[str], what: str) -> str:
    """Return a list as PVE writes it."""
    for item in items:
        if item and not _WORD.fullmatch(item):
            raise validate.refused(what, item, "is not a single word", "Write one word an item")
    return ";".join(filter(None, items))


FUNCTIONS: Mapping[str, Callable[[Any, str], Any]] = {
    **COMMON,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "words": _words,
}
"""The checks that declarations name: each takes a value and the option's name for errors."""

TABLES = OptionTables(
    SCALARS,
    PROPERTY_STRINGS,
    WORDS,
    EMPTY_REMOVES,
    checks=CHECKS,
    ranges=RANGES,
    functions=FUNCTIONS,
    nested=("rootfs", "mounts", "nics", "features", "devices"),
)
