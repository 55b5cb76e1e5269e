# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a rule matches a packet (pure).

Source: pve-firewall, src/PVE/Firewall.pm, ipt_rule_to_cmds, ipt_gen_src_or_dst_match, apply_macro
and generate_ipset_chains.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..model import Firewall, IpSet
from ..rules.model import Rule
from .icmp import icmp_type
from .macros import MACROS, MACROS_IPV6
from .model import (
    ACCEPT,
    DROP,
    UNKNOWN,
    Address,
    EvaluatedRule,
    Network,
    Packet,
    PacketVerdict,
    RuleNames,
)

_NUMBERS = {
    "icmp": "1",
    "igmp": "2",
    "tcp": "6",
    "udp": "17",
    "dccp": "33",
    "gre": "47",
    "esp": "50",
    "ah": "51",
    "ipv6-icmp": "58",
    "icmpv6": "58",
    "ospf": "89",
    "ipip": "94",
    "vrrp": "112",
    "sctp": "132",
    "udplite": "136",
}
_SERVICES = {
    "ftp-data": 20,
    "ftp": 21,
    "ssh": 22,
    "telnet": 23,
    "smtp": 25,
    "domain": 53,
    "tftp": 69,
    "http": 80,
    "pop3": 110,
    "ntp": 123,
    "imap2": 143,
    "snmp": 161,
    "ldap": 389,
    "https": 443,
    "microsoft-ds": 445,
    "submissions": 465,
    "submission": 587,
    "ldaps": 636,
    "rsync": 873,
    "imaps": 993,
    "pop3s": 995,
    "openvpn": 1194,
    "mysql": 3306,
    "postgresql": 5432,
}
_WITH_PORTS = ("6", "17", "33", "132", "136")
_ICMP_PROTOCOLS = ("1", "58")
_TYPE_AS_PORT = ("icmp", "icmpv6")
_SDN_SETS = ("-all", "-gateway", "-no-gateway", "-dhcp")
VERSIONS = {"icmp": 4, "icmpv6": 6, "ipv6-icmp": 6}


class NotInForce(Exception):
    """The rule has an error, so Proxmox VE leaves it out."""


def is_match(link: EvaluatedRule, packet: Packet) -> bool | None:
    """Return whether the rule of a link matches; None if this is unknown."""
    rule = link.rule
    if not rule.enable:
        return False
    try:
        required = ip_version(rule, link.names)
        if required and required != packet.version:
            return False
        if link.outside:
            return not _in_set(link.outside, packet.source, link.names)
        rules = expanded(rule, packet.version)
        return _any([_matches(one, link.names, packet) for one in rules])
    except NotInForce:
        return False


def expanded(rule: Rule, version: int) -> list[Rule]:
    """Return the rules of a rule's macro, or the rule itself if it has no macro.

    Raises NotInForce if the macro is unknown or contradicts the rule.
    """
    if not rule.macro:
        return [rule]
    templates = MACROS.get(rule.macro)
    if templates is None and version == 4 and rule.macro in MACROS_IPV6:
        raise NotInForce
    if version == 6:
        templates = MACROS_IPV6.get(rule.macro, templates)
    if templates is None:
        raise NotInForce
    found: list[Rule] = []
    for proto, dport, sport in templates:
        for given, fixed in ((rule.proto, proto), (rule.dport, dport), (rule.sport, sport)):
            if given and fixed and given != fixed:
                raise NotInForce
        filled = replace(rule, macro="", proto=proto or rule.proto, dport=dport or rule.dport)
        found.append(replace(filled, sport=sport or rule.sport))
    return found


def _any(answers: list[bool | None]) -> bool | None:
    if True in answers:
        return True
    return None if None in answers else False


def _matches(rule: Rule, names: RuleNames, packet: Packet) -> bool | None:
    answers = [
        _interface(rule, packet),
        _protocol(rule, packet),
        _address(rule.source, packet.source, names),
        _address(rule.dest, packet.dest, names),
    ]
    if False in answers:
        return False
    return None if None in answers else True


def _interface(rule: Rule, packet: Packet) -> bool | None:
    if not rule.iface:
        return True
    if rule.iface == "lo":
        return packet.source.is_loopback
    return rule.iface == packet.iface if packet.iface else None


def number_of(proto: str) -> str:
    """Return the number of a protocol as text, or its name if the number is unknown."""
    return _NUMBERS.get(proto, proto)


def _protocol(rule: Rule, packet: Packet) -> bool | None:
    """Return whether protocol, ports and ICMP type match. Raises NotInForce."""
    if not rule.proto:
        if rule.dport or rule.sport or rule.icmp_type:
            raise NotInForce
        return True
    number = number_of(rule.proto)
    is_icmp = rule.proto in VERSIONS
    if rule.icmp_type and (rule.dport or not is_icmp):
        raise NotInForce
    has_ports = rule.sport or (rule.dport and rule.proto not in _TYPE_AS_PORT)
    if has_ports and number not in _WITH_PORTS:
        raise NotInForce
    if number_of(packet.proto) != number:
        return False
    if number in _ICMP_PROTOCOLS:
        return _icmp(rule.icmp_type or rule.dport, packet)
    one = _ports(rule.dport, packet.dport)
    other = _ports(rule.sport, packet.sport)
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _icmp(text: str, packet: Packet) -> bool:
    if not text or text == "any":
        return True
    kind = icmp_type(text, packet.version)
    if kind is None:
        raise NotInForce
    number, code = kind
    return packet.icmp_type[0] == number and code in (None, packet.icmp_type[1])


def _ports(text: str, port: int) -> bool | None:
    if not text:
        return True
    return _any([_port(part, port) for part in text.split(",")])


def _port(text: str, port: int) -> bool | None:
    first, _colon, last = text.partition(":")
    if not first.isdigit():
        return _SERVICES[text] == port if text in _SERVICES else None
    return int(first) <= port <= int(last or first)


# -- addresses -----------------------------------------------------------------------------------


def ip_version(rule: Rule, names: RuleNames) -> int | None:
    """Return the IP version of a rule. Raises NotInForce for two versions or an unknown name."""
    versions = {VERSIONS[rule.proto]} if rule.proto in VERSIONS else set()
    for text in (rule.source, rule.dest):
        if not text or text.startswith("+"):
            continue
        versions.add(_network(_resolved(text, names)).version)
    if len(versions) > 1:
        raise NotInForce
    return versions.pop() if versions else None


def _resolved(text: str, names: RuleNames) -> str:
    """Return the first address of a text, or the network of an alias."""
    if text[:1].isalpha() and ":" not in text:
        return _alias(text, names)
    return text.split(",")[0].partition("-")[0]


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise NotInForce from None


def _split_scope(text: str) -> tuple[str, str]:
    for scope in ("dc/", "guest/", "sdn/"):
        if text.startswith(scope):
            return scope, text.removeprefix(scope)
    return "", text


def _alias(text: str, names: RuleNames) -> str:
    scope, name = _split_scope(text)
    for other_scope, place in (("dc/", names.guest), ("guest/", names.cluster)):
        for known, (cidr, _comment) in place.aliases.items():
            if scope != other_scope and known.lower() == name.lower():
                return cidr
    raise NotInForce


def _address(text: str, address: Address, names: RuleNames) -> bool | None:
    if not text:
        return True
    if text.startswith("+"):
        return _in_set(text[1:], address, names)
    if text[:1].isalpha() and ":" not in text:
        return address in _network(_alias(text, names))
    return any(_covers(part, address) for part in text.split(","))


def _covers(text: str, address: Address) -> bool:
    first, dash, last = text.partition("-")
    if not dash:
        return address in _network(text)
    low, high = ipaddress.ip_address(first), ipaddress.ip_address(last)
    return low.version == address.version and int(low) <= int(address) <= int(high)


def _in_set(text: str, address: Address, names: RuleNames) -> bool | None:
    """Return whether an IP set contains an address; None for an IP set of SDN.

    The API does not show the IP sets of SDN. The kernel looks up the longest prefix first, and the
    first member that it finds decides.
    """
    scope, name = _split_scope(text)
    found = _find_set(scope, name, names)
    if found is None:
        if scope == "sdn/" or (scope == "" and name.endswith(_SDN_SETS)):
            return None
        raise NotInForce
    members = dict(_members(found, names))
    for prefix in range(address.max_prefixlen, -1, -1):
        network = ipaddress.ip_network(f"{address}/{prefix}", strict=False)
        if network in members:
            return not members[network]
    return False


def _find_set(scope: str, name: str, names: RuleNames) -> tuple[IpSet, Firewall] | None:
    if scope in ("", "guest/") and name in names.guest.ip_sets:
        return names.guest.ip_sets[name], names.guest
    if scope in ("", "dc/") and name in names.cluster.ip_sets:
        return names.cluster.ip_sets[name], names.cluster
    return None


def _members(found: tuple[IpSet, Firewall], names: RuleNames) -> Iterator[tuple[Network, bool]]:
    ip_set, place = found
    own = names if place is names.guest else RuleNames(Firewall(), names.cluster)
    for cidr, (is_excluded, _comment) in ip_set.members.items():
        try:
            yield _network(_resolved(cidr, own)), is_excluded
        except NotInForce:
            continue


def networks_of(text: str, names: RuleNames) -> list[Network] | None:
    """Return the networks of the source or destination of a rule; None for all networks.

    An IP set of SDN counts as all networks, because the API does not show it. Raises NotInForce for
    an unknown name.
    """
    if not text:
        return None
    if text.startswith("+"):
        scope, name = _split_scope(text[1:])
        found = _find_set(scope, name, names)
        if found is not None:
            return [network for network, is_excluded in _members(found, names) if not is_excluded]
        if scope == "sdn/" or name.endswith(_SDN_SETS):
            return None
        raise NotInForce
    if text[:1].isalpha() and ":" not in text:
        return [_network(_alias(text, names))]
    return [network for part in text.split(",") for network in _networks(part)]


def _networks(text: str) -> Iterator[Network]:
    first, dash, last = text.partition("-")
    if not dash:
        yield _network(text)
        return
    ends = ipaddress.ip_address(first), ipaddress.ip_address(last)
    yield from ipaddress.summarize_address_range(*ends)


def decide(links: Sequence[EvaluatedRule], packet: Packet) -> PacketVerdict:
    """Return the decision of the first rule that matches; an empty list accepts.

    The verdict is UNKNOWN if an earlier rule may match and would decide differently.
    """
    uncertain: list[EvaluatedRule] = []
    for link in links:
        answer = is_match(link, packet)
        if answer is None:
            uncertain.append(link)
        if not answer:
            continue
        for one in uncertain:
            if one.rule.accepts != link.rule.accepts:
                return PacketVerdict(UNKNOWN, one)
        return PacketVerdict(ACCEPT if link.rule.accepts else DROP, link)
    return PacketVerdict(ACCEPT)
