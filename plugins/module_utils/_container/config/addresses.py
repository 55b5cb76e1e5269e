# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The static addresses of a container (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from ..._core.quantities import whole_number
from ..._guest.addresses import Address, is_useful
from .actual import nics

# The source of addresses in results.
_CONFIGURED = "config"


def configured_addresses(config: Mapping[str, str]) -> list[Address]:
    """Return the static addresses of C(netN), in the order of the NICs."""
    found: list[Address] = []
    cards = nics(config)
    for key in sorted(cards, key=lambda slot: int(slot.removeprefix("net"))):
        nic = cards[key]
        for family in ("ip", "ip6"):
            text, _slash, prefix = nic.get(family, "").partition("/")
            if not is_useful(text):
                continue
            mac = nic.get("hwaddr", "").lower()
            interface = nic.get("name", key)
            found.append(Address(text, whole_number(prefix), interface, mac, _CONFIGURED))
    return found
