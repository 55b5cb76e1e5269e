# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI devices that running VMs hold, and the reason why another VM cannot start beside them (pure).

Proxmox VE reserves a device for one running VM, unless it is mediated (qemu-server:
QemuServer/PCI.pm, choose_hostpci_devices and reserve_pci_usage).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..core.propstring import sub_keys

_SLOT = re.compile(r"hostpci\d+")

Addresses: TypeAlias = tuple[str, ...]
"""The addresses that a VM gets at once; without a function, an address means all functions."""


@dataclass(frozen=True)
class Card:
    """A PCI device of a VM: a mapping, or the addresses of the node itself."""

    slot: str
    mapping: str = ""
    host: Addresses = ()

    def alternatives(self, entries: Mapping[str, Sequence[Addresses]]) -> Sequence[Addresses]:
        """Return the devices of which it can be each; none if the mapping is hidden."""
        return entries.get(self.mapping, ()) if self.mapping else (self.host,)


def cards_in(config: Mapping[str, object]) -> tuple[Card, ...]:
    """Return the PCI devices of a configuration that one running VM holds, in Proxmox VE's order."""
    found: list[Card] = []
    for slot in sorted(filter(_SLOT.fullmatch, config), key=lambda slot: int(slot[7:])):
        option = sub_keys(str(config[slot]), "host")
        if option.get("mdev"):
            continue
        mapping = option.get("mapping", "")
        found.append(Card(slot, mapping, () if mapping else addresses_in(option.get("host", ""))))
    return tuple(found)


def addresses_in(path: str) -> Addresses:
    """Return the addresses in the path of a device, with their domain."""
    parts = filter(None, path.split(";"))
    return tuple(part if part.count(":") > 1 else f"0000:{part}" for part in parts)


def why_in_use(
    cards: Iterable[Card],
    entries: Mapping[str, Sequence[Addresses]],
    holders: Mapping[int, Iterable[Card]],
) -> str:
    """Return the reason why a VM with these devices cannot start on a node; empty if it can.

    `entries` are the devices of each mapping on the node, `holders` the devices of running VMs. A
    VM that holds one of several devices of a mapping counts for that mapping.
    """
    held: dict[str, str] = {}
    waiting: dict[str, int] = {}  # VMs that hold any of several devices, by mapping
    for vmid, holder in sorted(holders.items()):
        for card in holder:
            choices = card.alternatives(entries)
            if len(choices) == 1:
                held.update(dict.fromkeys(choices[0], f"in use by VM {vmid}"))
            elif choices:
                waiting[card.mapping] = waiting.get(card.mapping, 0) + 1
    for card in cards:
        choices = card.alternatives(entries)
        if len(choices) == 1:
            reason = _why_held(choices[0], held)
            if reason:
                return f"PCI device {reason}"
            held.update(dict.fromkeys(choices[0], f"its {card.slot} too"))
        elif choices:
            free = [one for one in choices if not _why_held(one, held)]
            waiting[card.mapping] = waiting.get(card.mapping, 0) + 1
            if len(free) < waiting[card.mapping]:
                return f"no device of mapping pci/{card.mapping} is free for {card.slot}"
    return ""


def _why_held(addresses: Iterable[str], held: Mapping[str, str]) -> str:
    """Return the address that is held, and by which VM; an address can mean all functions."""
    for address in addresses:
        for other, holder in held.items():
            if (
                address == other
                or f"{address}.".startswith(f"{other}.")
                or other.startswith(f"{address}.")
            ):
                return f"{address} is {holder}"
    return ""
