# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Merges options of several layers (pure): options for all VMs, options of a class, the VM's own on
top.

Dictionaries are merged by key, disks and network cards by slot, tags add up; anything else is
replaced. An empty list of disks or cards inherits nothing from the lower layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Options of a disk or card that exclude others: an option of the upper layer removes the options
# that it excludes from the lower layer.
_INSTEAD: Mapping[str, tuple[str, ...]] = {
    "bridge": ("network",),
    "network": ("bridge",),
    "storage_class": ("storage",),
    "iso": ("size", "import_from", "storage", "storage_class", "format", "volume"),
    "volume": ("size", "import_from", "storage", "storage_class", "format", "iso"),
    "size": ("iso", "volume"),
    "import_from": ("iso", "volume"),
}
# An address that needs no gateway removes the gateway of the lower layer.
_GATEWAYS = (("ip", "gateway"), ("ip6", "gateway6"))
_NOT_STATIC = ("", "dhcp", "auto")


def lay_over(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a layer's options, overwritten by the layer above; None there is ignored."""
    merged = dict(base)
    for key, value in more.items():
        if value is not None:
            merged[key] = _joined(key, merged.get(key), value)
    return merged


def _joined(key: str, old: Any, new: Any) -> Any:
    """Return the value of an option that both layers have, or the upper one."""
    if old is None:
        return new
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return lay_over(old, new)
    if key == "tags":
        unique = dict.fromkeys([*old, *new])
        return list(unique)
    slots_of = {"disks": disk_slots, "nics": nic_slots}.get(key)
    return new if slots_of is None else _by_slot(slots_of(old), old, slots_of(new), new)


def _by_slot(
    old_slots: Sequence[str],
    old: Sequence[Mapping[str, Any]],
    new_slots: Sequence[str],
    new: Sequence[Mapping[str, Any]],
) -> list[Mapping[str, Any]]:
    """Return the items of both lists, one for each slot; a duplicate slot is refused later."""
    if not new:
        return []
    lower = dict(zip(old_slots, old, strict=True))
    upper = dict(zip(new_slots, new, strict=True))
    is_twice = len(lower) < len(old) or len(upper) < len(new)
    if is_twice:
        return [*old, *new]
    merged: list[Mapping[str, Any]] = []
    for slot in dict.fromkeys((*lower, *upper)):
        item = _item_over(lower.get(slot, {}), upper.get(slot, {}))
        item["name"] = slot
        merged.append(item)
    return merged


def _item_over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a disk or card with the options of the upper layer over the lower ones."""
    given: set[str] = set()
    replaced: set[str] = set()
    for key, value in own.items():
        if value in (None, ""):
            continue
        given.add(key)
        instead = _INSTEAD.get(key, ())
        replaced.update(instead)
    gone = replaced - given
    for address, gateway in _GATEWAYS:
        if own.get(address) in _NOT_STATIC:
            gone.add(gateway)
    kept = dict(base)
    for key in gone:
        kept.pop(key, None)
    return lay_over(kept, own)


def nic_slots(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the name of each card, by its position if it has no name."""
    slots: list[str] = []
    for position, item in enumerate(items):
        name = item.get("name") or f"net{position}"
        slots.append(str(name))
    return slots


def disk_slots(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the drive of each disk; a disk without a name gets the first free drive of its bus."""
    items = list(items)
    names = [item.get("name") for item in items]
    taken = set(map(str, filter(None, names)))
    slots: list[str] = []
    for item, name in zip(items, names, strict=True):
        slot = name
        if not slot:
            bus = item.get("bus") or "scsi"
            slot = free_slot(bus, taken)
        slot = str(slot)
        taken.add(slot)
        slots.append(slot)
    return slots


def free_slot(bus: str, taken: Iterable[str]) -> str:
    """Return the first drive of a bus that is not taken."""
    used = set(taken)
    index = 0
    while f"{bus}{index}" in used:
        index += 1
    return f"{bus}{index}"
