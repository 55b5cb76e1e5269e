# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration of a container: its volumes, NICs, addresses and variables, its figures for a
quota, and the form of its options in results and diffs (pure).

Keys in results are PVE's own. Property strings become dictionaries, tags become a list, a volume
becomes its storage and size. The values of variables, and values that PVE generates, are not shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ....._foundation.cluster.quota import QuotaFigures
from ....._foundation.cluster.tenant import parse_tags
from ....._foundation.core.propstring import parse
from ....._foundation.core.quantities import MIB, read_size, whole_number
from ....._foundation.schema.lxc import LXC
from ....._foundation.schema.values import SECRET_IS_SET, typed_option, typed_sub_keys
from ...addresses import GuestAddress, is_useful
from ...marker import split_notes

_MOUNT = re.compile(r"^(?:rootfs|mp\d+)\Z")


# A mount, or a volume that no mount uses.
VOLUME = re.compile(rf"{_MOUNT.pattern}|^unused\d+\Z")


_NIC = re.compile(r"^net\d+\Z")


# The sub-key whose name may be left out (pve-container: LXC/Config.pm, $rootfs_desc).
_FORMAT_OF_MOUNT = {"volume": {"default_key": 1}}


def mounts(config: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the root file system and the mount points with their sub-keys, by slot."""
    return {slot: parse(config[slot], _FORMAT_OF_MOUNT) for slot in filter(_MOUNT.match, config)}


def volumes_in(config: Mapping[str, str]) -> dict[str, str]:
    """Return the volumes of a configuration by slot, unused volumes included.

    A bind mount (C(/path)) and a device (C(/dev/...)) have no volume.
    """
    volumes: dict[str, str] = {}
    for slot in filter(VOLUME.match, config):
        volume = parse(config[slot], _FORMAT_OF_MOUNT).get("volume", "")
        if is_volume(volume):
            volumes[slot] = volume
    return volumes


def is_privileged(config: Mapping[str, str]) -> bool:
    """Return whether the root user of a container is the root user of the node."""
    return config.get("unprivileged", "0") != "1"


def is_volume(text: str) -> bool:
    """Return whether the source of a mount is a volume of a storage and not a path of the node
    (pve-container: LXC/Config.pm, classify_mountpoint).
    """
    return not text.startswith("/") and ":" in text


def storage_of(volume: str) -> str | None:
    """Return the storage of a volume; None for a path."""
    if not is_volume(volume):
        return None
    storage, _colon, _name = volume.partition(":")
    return storage


def nics(config: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the NICs of a configuration with their sub-keys, by key."""
    return {key: parse(config[key], {}) for key in filter(_NIC.match, config)}


_VARIABLE = re.compile(r"(\w+)=(.*)", re.DOTALL)


_SEPARATOR = "\0"


def read_environment(text: str) -> dict[str, str]:
    """Return the variables of option C(env) by name."""
    variables: dict[str, str] = {}
    for item in filter(None, text.split(_SEPARATOR)):
        # the name is a word, the value can have equals signs
        found = _VARIABLE.match(item)
        if found:
            variables[found.group(1)] = found.group(2)
    return variables


def render_environment(variables: Mapping[str, str]) -> str:
    """Return option C(env) with these variables."""
    return _SEPARATOR.join(f"{name}={value}" for name, value in variables.items())


# The source of addresses in results.
_CONFIGURED = "config"


def configured_addresses(config: Mapping[str, str]) -> list[GuestAddress]:
    """Return the static addresses of C(netN), in the order of the NICs."""
    found: list[GuestAddress] = []
    cards = nics(config)
    for key in sorted(cards, key=lambda slot: int(slot.removeprefix("net"))):
        nic = cards[key]
        for family in ("ip", "ip6"):
            text, _slash, prefix = nic.get(family, "").partition("/")
            if not is_useful(text):
                continue
            mac = nic.get("hwaddr", "").lower()
            interface = nic.get("name", key)
            found.append(GuestAddress(text, whole_number(prefix), interface, mac, _CONFIGURED))
    return found


_DEFAULT_MEMORY = 512  # MiB


def memory_of(config: Mapping[str, str]) -> int:
    """Return the memory of a container in bytes."""
    return int(config.get("memory") or _DEFAULT_MEMORY) * MIB


def cores_of(config: Mapping[str, str]) -> int:
    """Return the cores of a container; 0 if it can use all cores of its node."""
    return int(config.get("cores") or 0)


def figures_of(config: Mapping[str, str], *, template: bool = False) -> QuotaFigures:
    """Return the figures that a quota counts of a container with that configuration.

    Its disk is the root file system with all mounted volumes; bind mounts have no size.
    """
    volumes = volumes_in(config)
    disk = 0
    for slot, mount in mounts(config).items():
        if slot in volumes:
            disk += read_size(mount.get("size")) or 0
    if template:
        return QuotaFigures(disk=disk)
    return QuotaFigures(vms=1, cores=cores_of(config), memory=memory_of(config), disk=disk)


# Not part of a user's configuration: PVE generates them, or they are state.
HIDDEN = frozenset("digest lock snapstate parent".split())


def format_value(key: str, config: Mapping[str, str]) -> Any:
    """Return one option's value as plain data."""
    text = config[key]
    if VOLUME.match(key):
        return _mount(key, config)
    if key == "env":  # often with passwords
        return dict.fromkeys(read_environment(text), SECRET_IS_SET)
    if key == "tags":
        return sorted(parse_tags(text))
    if key == "description":
        return split_notes(text)[0]
    return typed_option(key, text, LXC)


def _mount(slot: str, config: Mapping[str, str]) -> dict[str, Any]:
    """Return a mount with its storage and size; the volume of a bind mount is its path."""
    values = typed_sub_keys(slot, mounts(config).get(slot, {}), LXC)
    source = values.pop("volume", "")
    volume = volumes_in(config).get(slot)
    if volume is None:
        return {"path": source, **values}
    return {"storage": storage_of(volume), **values}
