# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Maps the NICs of a guest to another site: bridges and addresses by tables (pure)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...._foundation.core import validate
from ...._foundation.core.formatting import formatted
from ...._foundation.core.propstring import parse
from ...._guests.kinds.kind import Kind

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_NIC = "net"
_ADDRESSES = "ipconfig"
# The sub-keys of net (containers) and ipconfig (VMs), and the options of modules vm and container.
_IP = {"ip": "ip", "gw": "gateway", "ip6": "ip6", "gw6": "gateway6"}
_LIST = re.compile(r"[^\s,;]+")
_NOT_STATIC = frozenset(("dhcp", "auto", "manual"))


@dataclass(frozen=True)
class AddressTable:
    """Pairs of networks at the lost site and at this site, the longest prefix first."""

    pairs: tuple[tuple[Network, Network], ...] = ()

    def translate(self, text: str) -> str | None:
        """Return the address at this site for an address with or without a prefix. Return None if
        no network contains it, or if the text is not an address.
        """
        address, slash, prefix = text.partition("/")
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return None
        for source, target in self.pairs:
            if found in source:
                offset = int(found) - int(source.network_address)
                return f"{target.network_address + offset}{slash}{prefix}"
        return None


@dataclass(frozen=True)
class NicMap:
    """The changes of NICs: the new bridge by the former bridge, and the addresses.

    `keeps_macs` is true if guests keep their MAC addresses.
    """

    bridges: Mapping[str, str]
    addresses: AddressTable
    keeps_macs: bool


def read_addresses(given: Mapping[str, Any], option: str) -> AddressTable:
    """Return the table of addresses. Raises ValidationFailed."""
    pairs: list[tuple[Network, Network]] = []
    for source, target in given.items():
        pair = _network(source, option), _network(target, f"{option}.{source}")
        if (pair[0].version, pair[0].prefixlen) != (pair[1].version, pair[1].prefixlen):
            step = "Give two networks of the same IP version with the same prefix"
            raise validate.refused(f"{option}.{source}", target, "has another size", step)
        pairs.append(pair)
    return AddressTable(tuple(sorted(pairs, key=lambda pair: -pair[0].prefixlen)))


def _network(text: Any, option: str) -> Network:
    try:
        return ipaddress.ip_network(str(text))
    except ValueError:
        step = "Write it as 10.0.0.0/24, without host bits"
        raise validate.refused(option, text, "is not a network", step) from None


def mapped_nics(
    kind: Kind, config: Mapping[str, str], table: NicMap
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the NICs as options of a module, and a problem for each address not in the table."""
    nics: list[dict[str, Any]] = []
    problems: list[str] = []
    macs = kind.macs_in(config) if table.keeps_macs else {}
    for key in sorted(filter(is_nic, config)):
        nic: dict[str, Any] = {"name": key}
        if key in macs:
            nic["mac"] = macs[key]
        present = nic_options(kind, config, key)
        bridge = present["bridge"]
        if bridge in table.bridges:
            nic["bridge"] = table.bridges[bridge]
        addresses, missing = _translated(present, table.addresses)
        problems += [f"{formatted(one)} of {key} is in no network of addresses" for one in missing]
        nics.append({**nic, **addresses})
    return nics, problems


def nic_options(kind: Kind, config: Mapping[str, str], key: str) -> dict[str, str]:
    """Return the bridge and the addresses of a NIC as options of module vm or container."""
    text = config[key] if kind.has_rootfs else config.get(key.replace(_NIC, _ADDRESSES), "")
    texts = parse(text, {}) if text else {}
    addresses = {option: texts[short] for short, option in _IP.items() if texts.get(short)}
    return {"bridge": parse(config[key], {}).get("bridge", ""), **addresses}


def mapped_nameservers(config: Mapping[str, str], table: AddressTable) -> list[str]:
    """Return the mapped name servers of a guest, or no name servers if the table changes none.

    A name server outside the networks of the table is public, and is kept.
    """
    known = nameservers_in(config)
    mapped = [table.translate(one) or one for one in known]
    return mapped if mapped != known else []


def nameservers_in(config: Mapping[str, str]) -> list[str]:
    """Return the name servers of a guest."""
    return _LIST.findall(config.get("nameserver", ""))


def is_nic(key: str) -> bool:
    """Return whether a key of a configuration is the key of a NIC."""
    return key.startswith(_NIC) and key.removeprefix(_NIC).isdigit()


def bridges_after(kind: Kind, config: Mapping[str, str], table: NicMap) -> Sequence[str]:
    """Return the bridges of the guest at this site."""
    return sorted({table.bridges.get(name, name) for name in kind.bridges_in(config).values()})


def _translated(
    present: Mapping[str, str], table: AddressTable
) -> tuple[dict[str, str], list[str]]:
    """Return the changed addresses as options, and static addresses that are not in the table."""
    changed: dict[str, str] = {}
    missing: list[str] = []
    if not table.pairs:
        return changed, missing
    for option in _IP.values():
        text = present.get(option, "")
        if not text or text in _NOT_STATIC:
            continue
        target = table.translate(text)
        if target is None:
            missing.append(text)
        elif target != text:
            changed[option] = target
    return changed, missing
