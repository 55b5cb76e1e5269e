# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of a guest, from its agent or from cloud-init, and the choice among them (pure)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from .._core.errors import ConfigurationError

FAMILIES = ("ipv4", "ipv6", "any")
Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"
_NIC = re.compile(r"^net(\d+)$")
_MAC = re.compile(r"(?:^|[=,])([0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5})(?:,|$)")


@dataclass(frozen=True)
class Address:
    """One address with the interface that has it."""

    address: str
    prefix: int | None = None
    interface: str = ""
    mac: str = ""
    source: str = "agent"

    @property
    def family(self) -> str:
        """`ipv4` or `ipv6`."""
        return "ipv6" if ":" in self.address else "ipv4"

    def as_list(self) -> list[Any]:
        """Return the fields in their order, as the cache keeps them."""
        return [self.address, self.prefix, self.interface, self.mac, self.source]


@dataclass(frozen=True)
class AddressRule:
    """Which address is the host's: `family` first, then the order of `nics`, then the order of `subnets`.

    With `nics` or `subnets` an address that fits none of them is never chosen.
    """

    family: str = "ipv4"
    nics: tuple[str, ...] = ()
    subnets: tuple[Network, ...] = field(default=())


def parse_subnets(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the networks; raises ConfigurationError for a text that is none."""
    found: list[Network] = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(str(text).strip(), strict=False))
        except ValueError as error:
            raise ConfigurationError(
                attempted="Could not read address_subnets",
                answer=str(error),
                next_step="Write a subnet as 10.0.0.0/24 or fd00::/64",
                reason="malformed subnet",
            ) from None
    return tuple(found)


def agent_addresses(answer: Any) -> list[Address]:
    """Return what `agent/network-get-interfaces` lists, without loopback and link-local addresses."""
    interfaces = answer.get("result") if isinstance(answer, Mapping) else answer
    found: list[Address] = []
    for interface in interfaces if isinstance(interfaces, list) else []:
        if not isinstance(interface, Mapping):
            continue
        entries = interface.get("ip-addresses")
        for entry in entries if isinstance(entries, list) else []:
            if not isinstance(entry, Mapping):
                continue
            text = str(entry.get("ip-address") or "").partition("%")[0]
            if _is_useful(text):
                found.append(
                    Address(
                        text,
                        entry.get("prefix"),
                        str(interface.get("name") or ""),
                        str(interface.get("hardware-address") or "").lower(),
                    )
                )
    return found


def cloud_init_addresses(config: Mapping[str, Any]) -> list[Address]:
    """Return the static addresses of `ipconfigN`, in the order of the NICs."""
    found: list[Address] = []
    for key in sorted((key for key in config if re.fullmatch(r"ipconfig\d+", key)), key=lambda key: int(key[8:])):
        nic = f"net{key[8:]}"
        parts = dict(part.split("=", 1) for part in str(config[key]).split(",") if "=" in part)
        for name in ("ip", "ip6"):
            text, _slash, prefix = parts.get(name, "").partition("/")
            if _is_useful(text):
                mac = nic_macs(config).get(nic, "")
                found.append(Address(text, int(prefix) if prefix.isdigit() else None, nic, mac, "cloud-init"))
    return found


def nic_macs(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the MAC of each `netN`, in lower case."""
    found: dict[str, str] = {}
    for key, value in config.items():
        match = _MAC.search(str(value)) if _NIC.match(key) else None
        if match:
            found[key] = match.group(1).lower()
    return found


def choose_address(
    addresses: Sequence[Address], rule: AddressRule, macs: Mapping[str, str] | None = None
) -> Address | None:
    """Return the address of the host, or None when none fits. `macs` tells the guest's interfaces from `netN`."""
    ranked: list[tuple[tuple[int, int, int], Address]] = []
    for position, address in enumerate(addresses):
        if rule.family != "any" and address.family != rule.family:
            continue
        nic = _nic_rank(address, rule.nics, macs or {})
        subnet = _subnet_rank(address, rule.subnets)
        if nic is not None and subnet is not None:
            ranked.append(((nic, subnet, position), address))
    return min(ranked, key=lambda pair: pair[0])[1] if ranked else None


def _nic_rank(address: Address, nics: Sequence[str], macs: Mapping[str, str]) -> int | None:
    if not nics:
        return 0
    for rank, nic in enumerate(nics):
        if nic in (address.interface, address.mac) or nic.lower() == address.mac:
            return rank
        if address.mac and macs.get(nic) == address.mac:
            return rank
    return None


def _subnet_rank(address: Address, subnets: Sequence[Network]) -> int | None:
    if not subnets:
        return 0
    parsed = ipaddress.ip_address(address.address)
    for rank, subnet in enumerate(subnets):
        if parsed.version == subnet.version and parsed in subnet:
            return rank
    return None


def is_own(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether whoever connects to the address reaches itself; Python before 3.13 forgets the mapped ones."""
    mapped = getattr(address, "ipv4_mapped", None)
    plain = mapped or address
    return plain.is_loopback or plain.is_unspecified


@lru_cache(maxsize=65536)  # the loopback of thousands of guests is the same, and a sync looks at each address twice
def _is_useful(text: str) -> bool:
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (is_own(parsed) or parsed.is_link_local or parsed.is_multicast)
