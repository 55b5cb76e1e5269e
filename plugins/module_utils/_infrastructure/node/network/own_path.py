# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The own path of a node, to the API and to the other nodes: the interfaces with these addresses,
and the interfaces below them (pure).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from .model import Interfaces, Settings
from .settings import PORT_KEYS

HARMLESS = frozenset({"comments"})  # settings whose change cannot interrupt a connection


def own_path(interfaces: Interfaces, addresses: Iterable[str]) -> frozenset[str]:
    """Return the interfaces that carry one of these addresses: the interface itself, its ports and
    slaves, and the parent of a VLAN.

    If none has such an address, the interface with the default gateway counts.
    """
    own = set(addresses)
    tops = [name for name, one in interfaces.items() if addresses_of(one) & own]
    if not tops:
        tops = [name for name, one in interfaces.items() if one.get("gateway")]
    found: set[str] = set()
    while tops:
        name = tops.pop()
        if name not in found and name in interfaces:
            found.add(name)
            tops += below(interfaces[name])
    return frozenset(found)


def below(settings: Settings) -> list[str]:
    """Return the interfaces below this one: ports, slaves, the parent of a VLAN."""
    names: list[str] = []
    for key in PORT_KEYS:
        names += settings.get(key, ())
    if settings.get("vlan-raw-device"):
        names.append(settings["vlan-raw-device"])
    return names


def addresses_of(settings: Settings) -> set[str]:
    """Return the addresses of an interface without their prefixes."""
    return {str(one.ip) for one in networks_of(settings)}


def networks_of(settings: Settings) -> list[Any]:
    """Return the addresses of an interface with their networks."""
    found = []
    for key in ("cidr", "cidr6"):
        try:
            found.append(ipaddress.ip_interface(settings[key]))
        except (KeyError, ValueError):
            continue
    return found
