# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NICs and addresses in the configuration of a guest, and interfaces of a node (pure)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...._foundation.core import validate
from ...._foundation.core.propstring import sub_keys
from ...._guests.kinds.nics import nics_in
from ..evaluate.model import FirewallNic

_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_CIDRS = ("cidr", "cidr6")


def nics_of(config: Mapping[str, Any]) -> tuple[FirewallNic, ...]:
    """Return the NICs of a VM or a container, in order."""
    return tuple(_nic(name, str(config[name]), config) for name in nics_in(config))


def _nic(name: str, text: str, config: Mapping[str, Any]) -> FirewallNic:
    parts = _parts(text)
    found = _MAC.search(text)
    addressing = {**_parts(str(config.get(f"ipconfig{name[3:]}") or "")), **parts}
    addresses = []
    for key in ("ip", "ip6"):
        address = addressing.get(key, "").partition("/")[0]
        if validate.is_address(address):
            addresses.append(address)
    mac = found.group() if found else ""
    return FirewallNic(name, parts.get("firewall", "0") == "1", mac, tuple(addresses))


def _parts(text: str) -> dict[str, str]:
    pairs = sub_keys(text)
    return {key.strip(): value.strip() for key, value in pairs.items()}


def interface_of(rows: Iterable[Mapping[str, Any]], address: str) -> tuple[str, str]:
    """Return the interface that has an address, and its network; empty texts if none has it."""
    wanted = ipaddress.ip_address(address)
    for row in rows:
        for key in _CIDRS:
            cidr = row.get(key)
            if cidr and ipaddress.ip_interface(str(cidr)).ip == wanted:
                return str(row["iface"]), str(ipaddress.ip_interface(str(cidr)).network)
    return "", ""
