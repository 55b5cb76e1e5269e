# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The volumes, NICs, addresses and variables of a container's configuration (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ....._foundation.core.propstring import parse
from ....._foundation.core.quantities import whole_number
from ...addresses import GuestAddress, is_useful

_MOUNT = re.compile(r"^(?:rootfs|mp\d+)$")
# A mount, or a volume that no mount uses.
VOLUME = re.compile(rf"{_MOUNT.pattern}|^unused\d+$")
_NIC = re.compile(r"^net\d+$")
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
