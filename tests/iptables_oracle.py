# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the firewall of Proxmox VE does with a packet between two guests, from its own source.

It is written from pve-firewall, src/PVE/Firewall.pm, and shares no code with the collection: a
mistake there does not hide here. It builds the chains as iptables has them, from raw answers of
the API, and follows a packet through them: ruleset_create_vm_chain, ruleset_generate_vm_rules,
ruleset_add_group_rule, generate_group_rules, ruleset_add_chain_policy, compile_ipsets.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]
ACCEPT, DROP = "ACCEPT", "DROP"
_MARK = "PVEFW-SET-ACCEPT-MARK"
_PROTOCOLS = {"tcp": 6, "udp": 17, "icmp": 1, "icmpv6": 58}


@dataclass(frozen=True)
class Packet:
    """The first packet of a connection, as it leaves the NIC of its source."""

    source: str
    dest: str
    mac: str
    proto: str = "tcp"
    dport: int = 0

    @property
    def version(self) -> int:
        return ipaddress.ip_address(self.source).version


@dataclass
class Config:
    """A firewall file: of the cluster (with groups), or of one guest."""

    options: Row = field(default_factory=dict)
    rules: Sequence[Row] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    ipsets: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    groups: Mapping[str, Sequence[Row]] = field(default_factory=dict)


@dataclass(frozen=True)
class Tap:
    """One NIC of a guest: its netN in the configuration, and the firewall file of its guest."""

    netid: str
    mac: str
    has_firewall: bool
    config: Config
    is_container: bool = False
    addresses: tuple[str, ...] = ()


def _always(_packet: Packet) -> bool:
    return True


def _is_on(options: Row, name: str, default: int) -> bool:
    return bool(int(options.get(name, default)))


def _counts(rule: Row) -> bool:
    """Return whether a rule is in force: it is enabled and has no error."""
    return _is_on(rule, "enable", 0) and not rule.get("errors")


class Oracle:
    """Follows packets through the chains of a cluster."""

    def __init__(self, cluster: Config) -> None:
        self.cluster = cluster

    def reaches(self, source: Tap, dest: Tap, packet: Packet) -> bool:
        """Return whether a packet passes the NIC of its source, and that of its destination."""
        return all(
            self._passes(tap, direction, packet)
            for tap, direction in ((source, "OUT"), (dest, "IN"))
        )

    def _passes(self, tap: Tap, direction: str, packet: Packet) -> bool:
        if not _is_on(self.cluster.options, "enable", 0) or not tap.has_firewall:
            return True  # no fwbr bridge: the packet meets no chain of the guest
        if not _is_on(tap.config.options, "enable", 0):
            return True  # generate_tap_rules_direction: policy ACCEPT
        for match, target in self._tap_chain(tap, direction, packet):
            if not match(packet):
                continue
            if target in (ACCEPT, _MARK):
                return True
            if target in (DROP, "REJECT"):
                return False
            verdict = self._group_chain(target, direction, packet)
            if verdict is not None:
                return verdict
        raise AssertionError("a chain ends with its policy")

    def _tap_chain(self, tap: Tap, direction: str, packet: Packet) -> list[Any]:
        options = tap.config.options
        chain: list[Any] = []
        if direction == "OUT":
            chain += self._filters(tap)
        for rule in tap.config.rules:
            if not _counts(rule) or rule.get("iface") not in (None, tap.netid):
                continue
            if rule["type"] == "group":
                chain.append((_always, f"GROUP {rule['action']}"))
            elif rule["type"] == direction.lower():
                chain += self._rule(rule, tap.config)
        default = {"IN": DROP, "OUT": ACCEPT}[direction]
        policy = options.get(f"policy_{direction.lower()}") or default
        if policy != ACCEPT and packet.proto.startswith("icmp") and packet.dport in (3, 11):
            chain.append((_always, ACCEPT))  # PVEFW-Drop: critical ICMP
        chain.append((_always, policy))
        return chain

    def _filters(self, tap: Tap) -> list[Any]:
        """Return the rules against other MAC and IP addresses (ruleset_create_vm_chain)."""
        chain: list[Any] = []
        if _is_on(tap.config.options, "macfilter", 1):
            chain.append((lambda p: p.mac.lower() != tap.mac.lower(), DROP))
        name = f"ipfilter-{tap.netid}"
        if _is_on(tap.config.options, "ipfilter", 0) or name in tap.config.ipsets:
            members = self._ipfilter(tap, name)
            chain.append((lambda p: not self._in_members(members, p.source, tap.config), DROP))
        return chain

    def _group_chain(self, target: str, direction: str, packet: Packet) -> bool | None:
        """Return the verdict of a security group; None if the packet comes back unmarked.

        A group that does not exist is an empty chain (generate_group_rules).
        """
        name = target.removeprefix("GROUP ")
        for rule in self.cluster.groups.get(name, ()):
            if not _counts(rule) or rule["type"] != direction.lower():
                continue
            for match, action in self._rule(rule, Config()):
                if match(packet):
                    return bool(action == ACCEPT)
        return None

    def _rule(self, rule: Row, own: Config) -> list[Any]:
        """Return the command of a rule; none if it has an error, for which PVE leaves it out."""
        assert not rule.get("macro"), "no macros here"
        try:
            source = self._address(rule.get("source"), own)
            dest = self._address(rule.get("dest"), own)
        except KeyError:
            return []
        proto, dport = rule.get("proto"), str(rule.get("dport") or "")

        def match(packet: Packet) -> bool:
            if not source(packet.source) or not dest(packet.dest):
                return False
            if proto and _PROTOCOLS[proto] != _PROTOCOLS[packet.proto]:
                return False
            return not dport or packet.dport in _ports(dport)

        return [(match, rule["action"])]

    def _address(self, text: str | None, own: Config) -> Callable[[str], bool]:
        """Return the match of an address (ipt_gen_src_or_dst_match). Raises KeyError."""
        if not text:
            return lambda _address: True
        if text.startswith("+"):
            scope, name = _scoped(text[1:])
            places = [
                place
                for key, place in (("guest", own), ("dc", self.cluster))
                if scope in ("", key) and name in place.ipsets
            ]
            if not places:
                raise KeyError(name)
            members = places[0].ipsets[name]
            return lambda address: self._in_members(members, address, own)
        network = ipaddress.ip_network(self._resolved(text, own), strict=False)
        return lambda address: ipaddress.ip_address(address) in network

    def _resolved(self, text: str, own: Config) -> str:
        """Return the network of an alias, or the text. Raises KeyError."""
        scope, name = _scoped(text)
        if not name[:1].isalpha() or ":" in name:
            return text
        if scope != "dc" and name.lower() in own.aliases:
            return own.aliases[name.lower()]
        if scope == "guest":
            raise KeyError(name)
        return self.cluster.aliases[name.lower()]

    def _in_members(self, members: Sequence[Row], address: str, own: Config) -> bool:
        """Return whether a set has an address: the longest prefix decides (hash:net nomatch)."""
        found: tuple[int, bool] | None = None
        ip = ipaddress.ip_address(address)
        for member in members:
            try:
                network = ipaddress.ip_network(self._resolved(member["cidr"], own), strict=False)
            except KeyError:
                continue
            if network.version != ip.version or ip not in network:
                continue
            if found is None or network.prefixlen > found[0]:
                found = (network.prefixlen, not int(member.get("nomatch") or 0))
        return found is not None and found[1]

    def _ipfilter(self, tap: Tap, name: str) -> list[Row]:
        """Return the members of the filter of a NIC, with those that PVE adds (compile_ipsets)."""
        members = list(tap.config.ipsets.get(name, ()))
        if tap.is_container:
            members += [{"cidr": one} for one in tap.addresses]
        members.append({"cidr": _link_local(tap.mac)})
        members.append({"cidr": "fe80::/10", "nomatch": 1})
        return members


def _scoped(text: str) -> tuple[str, str]:
    scope, slash, name = text.partition("/")
    if slash and scope in ("dc", "guest"):
        return scope, name
    return "", text


def _ports(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _colon, last = part.partition(":")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _link_local(mac: str) -> str:
    parts = [int(part, 16) for part in mac.split(":")]
    parts[0] ^= 2
    whole = [*parts[:3], 0xFF, 0xFE, *parts[3:]]
    pairs = [f"{high:02x}{low:02x}" for high, low in zip(whole[::2], whole[1::2], strict=True)]
    return "fe80::" + ":".join(pairs)


# -- from the API --------------------------------------------------------------------------------


def read_cluster(get: Callable[..., Any]) -> Config:
    """Return the firewall of the cluster, from raw answers."""
    base = ("cluster", "firewall")
    names = [row["name"] for row in get(*base, "ipset")]
    groups = [row["group"] for row in get(*base, "groups")]
    return Config(
        get(*base, "options"),
        get(*base, "rules"),
        {row["name"].lower(): row["cidr"] for row in get(*base, "aliases")},
        {name: get(*base, "ipset", name) for name in names},
        {name: get(*base, "groups", name) for name in groups},
    )


def read_taps(get: Callable[..., Any], row: Row) -> list[Tap]:
    """Return the NICs of a guest of the listing, from raw answers."""
    base = ("nodes", row["node"], row["type"], row["vmid"])
    config = get(*base, "config")
    names = [one["name"] for one in get(*base, "firewall", "ipset")]
    own = Config(
        get(*base, "firewall", "options"),
        get(*base, "firewall", "rules"),
        {one["name"].lower(): one["cidr"] for one in get(*base, "firewall", "aliases")},
        {name: get(*base, "firewall", "ipset", name) for name in names},
    )
    taps = []
    for key in sorted(config):
        if key.startswith("net") and key[3:].isdigit():
            parts = dict(part.split("=", 1) for part in config[key].split(",") if "=" in part)
            mac = next(value for value in parts.values() if value.count(":") == 5)
            address = parts.get("ip", "").partition("/")[0]
            addresses = (address,) if address[:1].isdigit() else ()
            is_container = row["type"] == "lxc"
            taps.append(Tap(key, mac, parts.get("firewall") == "1", own, is_container, addresses))
    return taps
