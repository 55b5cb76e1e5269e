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

from ..._foundation.core.errors import ConfigurationError, ValidationFailed
from ..._foundation.core.propstring import canonical, parse
from ..._foundation.core.quantities import whole_number

FAMILIES = ("ipv4", "ipv6", "any")
Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"
_NIC = re.compile(r"^net\d+\Z")
_IPCONFIG = re.compile(r"^ipconfig\d+\Z")
_MAC = re.compile(r"(?:^|[=,])([0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5})(?:,|$)")
# The part of the format of the option C(agent) that is read here; all of it is in
# `_foundation/schema/generated/qemu.py`.
_ENABLED = {"enabled": {"type": "boolean", "default_key": 1}}


@dataclass(frozen=True)
class GuestAddress:
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
    """How the address of the host is chosen: by `family` first, then by the order of `nics`, then
    by the order of `subnets`.

    If `nics` or `subnets` are given, an address that fits none of them is never chosen.
    """

    family: str = "ipv4"
    nics: tuple[str, ...] = ()
    subnets: tuple[Network, ...] = field(default=())


def parse_subnets(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the networks; raises ConfigurationError for a text that is not one."""
    found: list[Network] = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(str(text).strip(), strict=False))
        except ValueError as error:
            raise ConfigurationError(
                f"Could not read address_subnets: {error}",
                "Write a subnet as 10.0.0.0/24 or fd00::/64",
                "malformed subnet",
            ) from None
    return tuple(found)


def agent_is_on(option: str) -> bool:
    """Return whether option C(agent), such as C(enabled=1), switches the agent on."""
    try:
        values = parse(option, _ENABLED)
    except ValidationFailed:
        return False
    switch = values.get("enabled", "0")
    switch = canonical(switch, _ENABLED["enabled"])
    return switch == "1"


def agent_addresses(answer: Any, source: str = "agent") -> list[GuestAddress]:
    """Return the addresses in an answer of `agent/network-get-interfaces`, or of `interfaces` of a
    container, without loopback and link-local addresses.
    """
    interfaces = answer.get("result") if isinstance(answer, Mapping) else answer
    found: list[GuestAddress] = []
    for interface in _dictionaries(interfaces):
        name = _text(interface, "name")
        mac = _text(interface, "hardware-address")
        for entry in _dictionaries(interface.get("ip-addresses")):
            reported = _text(entry, "ip-address")
            text, _percent, _zone = reported.partition("%")
            if not is_useful(text):
                continue
            address = GuestAddress(
                text, whole_number(_text(entry, "prefix")), name, mac.lower(), source
            )
            found.append(address)
    return found


def _text(values: Mapping[str, Any], key: str) -> str:
    return str(values.get(key) or "")


def _dictionaries(value: Any) -> list[Mapping[str, Any]]:
    """Return the dictionaries of a list; an agent can report anything in its place."""
    if not isinstance(value, list):
        return []
    return [one for one in value if isinstance(one, Mapping)]


def cloud_init_addresses(config: Mapping[str, Any]) -> list[GuestAddress]:
    """Return the static addresses of `ipconfigN`, in the order of the NICs."""
    macs = nic_macs(config)
    found: list[GuestAddress] = []
    for key in sorted(filter(_IPCONFIG.match, config), key=_number):
        nic = f"net{_number(key)}"
        parts = _sub_keys(str(config[key]))
        for family in ("ip", "ip6"):
            text, _slash, prefix = parts.get(family, "").partition("/")
            if not is_useful(text):
                continue
            address = GuestAddress(
                text,
                prefix=whole_number(prefix),
                interface=nic,
                mac=macs.get(nic, ""),
                source="cloud-init",
            )
            found.append(address)
    return found


def _number(key: str) -> int:
    """Return N of `ipconfigN`."""
    return int(key.removeprefix("ipconfig"))


def _sub_keys(text: str) -> dict[str, str]:
    try:
        return parse(text, {})
    except ValidationFailed:  # PVE does not store such a text
        return {}


def nic_macs(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the MAC of each `netN`, in lower case."""
    found: dict[str, str] = {}
    for key, value in config.items():
        if not _NIC.match(key):
            continue
        match = _MAC.search(str(value))
        if match:
            mac = match.group(1)
            found[key] = mac.lower()
    return found


def choose_address(
    addresses: Sequence[GuestAddress], rule: AddressRule, macs: Mapping[str, str] | None = None
) -> GuestAddress | None:
    """Return the address of the host, or None if no address fits.

    `macs` are the MACs of the NICs, by `netN`.
    """
    ranked: dict[tuple[int, int], GuestAddress] = {}
    for address in addresses:
        if rule.family not in ("any", address.family):
            continue
        nic = _nic_rank(address, rule.nics, macs or {})
        subnet = _subnet_rank(address, rule.subnets)
        if nic is None or subnet is None:
            continue
        rank = (nic, subnet)
        ranked.setdefault(rank, address)
    if not ranked:
        return None
    first = min(ranked)
    return ranked[first]


def report_of(
    addresses: Sequence[GuestAddress], macs: Mapping[str, str], rule: AddressRule, why: str
) -> dict[str, Any]:
    """Return addresses as modules report them: all of them, the chosen address, and their source.

    `why` is the reason why the guest did not report them, an empty text if it did.
    """
    chosen = choose_address(addresses, rule, macs)
    return {
        "addresses": [
            {
                "address": one.address,
                "prefix": one.prefix,
                "interface": one.interface,
                "family": one.family,
            }
            for one in addresses
        ],
        "address": chosen.address if chosen else None,
        "address_source": addresses[0].source if addresses else None,
        "agent_problem": why or None,
    }


def _nic_rank(address: GuestAddress, nics: Sequence[str], macs: Mapping[str, str]) -> int | None:
    """Return the position of the address's NIC in the list, None if it is not listed.

    A NIC is named by its interface in the guest, its MAC, or as C(netN).
    """
    if not nics:
        return 0
    names = {address.interface, address.mac}
    for rank, nic in enumerate(nics):
        if nic in names:
            return rank
        if nic.lower() == address.mac:
            return rank
        if macs.get(nic) == address.mac:
            return rank
    return None


def _subnet_rank(address: GuestAddress, subnets: Sequence[Network]) -> int | None:
    """Return the position of the address's subnet in the list, None if it is not listed."""
    if not subnets:
        return 0
    parsed = ipaddress.ip_address(address.address)
    for rank, subnet in enumerate(subnets):
        is_same_version = parsed.version == subnet.version
        if is_same_version and parsed in subnet:
            return rank
    return None


def is_own(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether a client that connects to the address reaches itself.

    `is_loopback` of Python before 3.13 does not know IPv4-mapped addresses.
    """
    plain = getattr(address, "ipv4_mapped", None)
    if plain is None:
        plain = address
    if plain.is_loopback:
        return True
    return bool(plain.is_unspecified)


# the loopback of thousands of guests is the same, and a sync looks at each address twice
@lru_cache(maxsize=65536)
def is_useful(text: str) -> bool:
    """Return whether a text is an address by which other machines reach the guest."""
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return False
    if is_own(parsed):
        return False
    is_of_one_link = parsed.is_link_local
    is_of_many = parsed.is_multicast
    return not is_of_one_link and not is_of_many
