# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sub-keys of devices: declared ones, open ones, addresses of NICs (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...._foundation.core import validate
from ...kinds.hardware import MOVED
from .tables import OptionTables
from .values import WORDS_FOR_IPV4, WORDS_FOR_IPV6

SubKeys = dict[str, Any]


def declared(tables: OptionTables, place: str, item: Mapping[str, Any]) -> SubKeys:
    """Return the options that are plain sub-keys of PVE; an empty text removes one."""
    words = tables.words.get(place, {})
    values: SubKeys = {}
    for name, key in tables.scalars[place].items():
        value = item.get(name)
        if value is not None:
            values[key] = words.get(name, {}).get(value, value)
    return values


def add_open(
    where: str, item: Mapping[str, Any], values: SubKeys, closed: frozenset[str] = frozenset()
) -> None:
    """Add the sub-keys that an item gives under PVE's own names."""
    given = item.get("options") or {}
    for name, value in given.items():
        if name in closed.union(values):
            raise validate.refused(
                f"{where}.options", name, "has an option of its own", "Set it there"
            )
        values[str(name)] = value


def require_receiver(
    where: str, slot: str, item: Mapping[str, Any], allowed: re.Pattern[str]
) -> None:
    """Raise ValidationFailed unless an item names the guest that gets its disk exactly if it moves,
    and a slot that this guest can have.
    """
    is_moved = item.get("state") == MOVED
    vmid, target = item.get("target_vmid"), item.get("target_slot") or slot
    if is_moved and vmid is None:
        raise validate.refused(where, MOVED, "names no other guest", "Give target_vmid")
    if not is_moved and (vmid is not None or item.get("target_slot")):
        raise validate.refused(where, vmid or target, "is for state=moved", "Leave it out")
    if is_moved and not allowed.match(str(target)):
        raise validate.refused(f"{where}.target_slot", target, "is not such a slot", "Name another")


@dataclass(frozen=True)
class _Family:
    """A version of IP: its options of a NIC, PVE's sub-key of the gateway, words for an address."""

    address: str
    gateway: str
    gateway_key: str
    words: tuple[str, ...]


_FAMILIES = (
    _Family("ip", "gateway", "gw", (*WORDS_FOR_IPV4, "manual")),
    _Family("ip6", "gateway6", "gw6", (*WORDS_FOR_IPV6, "manual")),
)


def addresses_of(key: str, item: Mapping[str, Any]) -> SubKeys:
    """Return C(ipconfigN) of a VM, or addresses in C(netN) of a container; None removes one."""
    values: SubKeys = {}
    for family in _FAMILIES:
        values.update(_of_family(family, item))
        router = values.get(family.gateway_key)
        if router and values.get(family.address) in (None, *family.words):
            option = f"nics.{key}.{family.gateway}"
            why = f"needs a static {family.address}"
            raise validate.refused(option, router, why, f"Give {family.address} with a prefix")
    return values


def _of_family(family: _Family, item: Mapping[str, Any]) -> SubKeys:
    """Return the sub-keys of one version of IP."""
    values: SubKeys = {}
    if item.get(family.address) is not None:
        values[family.address] = item[family.address].strip() or None
        if values[family.address] in (None, *family.words):
            values[family.gateway_key] = None  # a gateway needs a static address
    if item.get(family.gateway) is not None:
        values[family.gateway_key] = item[family.gateway].strip() or None
    return values
