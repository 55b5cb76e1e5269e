"""Valid values of a firewall rule: protocols, ports, addresses, macros."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..errors import ParamError
from ..schema.debian import debian_names
from ..schema.formats import FormatError, fmt

NAME = re.compile(r"[A-Za-z][A-Za-z0-9\-_]+")
_SCOPED = re.compile(r"(dc/|guest/)?([A-Za-z][A-Za-z0-9\-_]+)")
_SET = re.compile(r"\+(?:guest/|dc/|sdn/)?([A-Za-z][A-Za-z0-9\-_]+)")
_LONGEST = 64
MACROS = {
    name.lower(): name
    for name in (
        "Amanda Auth BGP BitTorrent BitTorrent32 CVS Ceph Citrix DAAP DCC DHCPfwd DHCPv6"
        " DNS Distcc FTP Finger GNUnet GRE Git HKP HTTP HTTPS ICPV2 ICQ IMAP IMAPS IPIP"
        " IPsec IPsecah IPsecnat IRC Jetdirect L2TP LDAP LDAPS MDNS MSNP MSSQL Mail Munin"
        " MySQL NNTP NNTPS NTP NeighborDiscovery OSPF OpenVPN PCA PMG POP3 POP3S PPtP Ping"
        " PostgreSQL Printer RDP RIP RNDC Razor Rdate Rsync SANE SMB SMBswat SMTP SMTPS"
        " SNMP SPAMD SPICEproxy SSH SVN SixXS Squid Submission Syslog TFTP Telnet Telnets"
        " Time Trcrt VNC VNCL Web Webcache Webmin Whois"
    ).split()
}
_WITH_PORTS = ("tcp", "udp", "udplite", "dccp", "sctp", "6", "17", "33", "132", "136")
_PROTOCOLS = debian_names()["protocols"]
# The numbers 1 and 58 do not count as ICMP (Firewall.pm, $proto_is_icmp).
_ICMP = ("icmp",)
_ICMP6 = ("icmpv6", "ipv6-icmp")
_ICMP_TYPES = frozenset(
    "any echo-reply destination-unreachable network-unreachable host-unreachable"
    " protocol-unreachable port-unreachable fragmentation-needed source-route-failed"
    " network-unknown host-unknown network-prohibited host-prohibited TOS-network-unreachable"
    " TOS-host-unreachable communication-prohibited"
    " host-precedence-violation precedence-cutoff source-quench redirect network-redirect"
    " host-redirect TOS-network-redirect TOS-host-redirect echo-request"
    " router-advertisement router-solicitation time-exceeded"
    " ttl-zero-during-transit ttl-zero-during-reassembly parameter-problem ip-header-bad"
    " required-option-missing timestamp-request timestamp-reply address-mask-request"
    " address-mask-reply".split()
)
_ICMP6_TYPES = frozenset(
    "destination-unreachable no-route communication-prohibited beyond-scope address-unreachable"
    " port-unreachable failed-policy reject-route packet-too-big time-exceeded"
    " ttl-zero-during-transit ttl-zero-during-reassembly parameter-problem bad-header"
    " unknown-header-type unknown-option echo-request echo-reply router-solicitation"
    " router-advertisement neighbor-solicitation neighbour-solicitation neighbor-advertisement"
    " neighbour-advertisement redirect".split()
)
_SERVICES = debian_names()["services"]


def clean_cidr(text: str) -> str:
    """The network without bits beyond its mask; a single address without one."""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise FormatError("value does not look like a valid IP address or CIDR network\n") from None
    if network.prefixlen == network.max_prefixlen:
        return str(network.network_address)
    return str(network)


def ip_version(text: str) -> int:
    """4 or 6."""
    return ipaddress.ip_network(text, strict=False).version


@fmt("IPorCIDR")
def _ip_or_cidr(value: str) -> None:
    clean_cidr(value)


@fmt("IPorCIDRorAlias")
def _ip_or_alias(value: str) -> None:
    if not _SCOPED.fullmatch(value):
        clean_cidr(value)


@fmt("pve-fw-addr-spec")
def _addresses(value: str) -> None:
    address_version(value)


def address_version(value: str) -> int | None:
    """The IP version of a list of addresses, None for a set or alias; raises FormatError."""
    if value.startswith("+"):
        if len(value) > _LONGEST + 1:
            raise FormatError("ipset name too long\n")
        return None
    if _SCOPED.fullmatch(value):
        if len(value) > _LONGEST:
            raise FormatError("alias name too long\n")
        return None
    versions: set[int] = set()
    parts = value.split(",")
    if not all(parts):
        raise FormatError("extraneous commas in list\n")
    for part in parts:
        versions |= _versions_in(part)
        if len(versions) > 1:
            raise FormatError(f"detected mixed ipv4/ipv6 addresses in address list '{value}'\n")
        if "-" in part and len(parts) > 1:
            raise FormatError("you can't use a range in a list\n")
    return versions.pop()


def _versions_in(part: str) -> set[int]:
    """The IP versions of an address, a network or the ends of a range."""
    first, dash, last = part.partition("-")
    try:
        versions = {ip_version(end) for end in ((first, last) if dash else (part,))}
        ipaddress.ip_network(first)
    except ValueError:
        # Net::IP names the characters only if they are not those of an address.
        cause = "Cannot determine IP version for"
        if "/" not in part and ":" not in part and not re.fullmatch(r"[\d.]+", part):
            cause = "Invalid chars in IP"
        raise FormatError(f"invalid IP address: {cause} {part}\n") from None
    return versions


def _check_ports(value: str, *, icmp: bool) -> None:
    parts = value.split(",")
    if not all(parts):
        raise FormatError("extraneous commas in list\n")
    count, special = 0, False
    for part in parts:
        numbers = re.fullmatch(r"(\d+)(?::(\d+))?", part)
        if numbers:
            found = [number for number in numbers.groups() if number]
            count += len(found)
            _check_numbers(part, found)
        elif icmp and part in _ICMP_TYPES | _ICMP6_TYPES:
            special = True
        elif part not in _SERVICES:
            raise FormatError(f"invalid port '{part}'\n")
    if special and count:
        raise FormatError("ICMP ports not allowed in port range\n")
    if count > 15:
        raise FormatError("too many entries in port list (> 15 numbers)\n")


def _check_numbers(part: str, found: list[str]) -> None:
    for number in found:
        if int(number) > 65535:
            raise FormatError(f"invalid port '{number}'\n")
    if len(found) == 2 and int(found[0]) > int(found[1]):
        other = f"{found[1]}:{found[0]}"
        raise FormatError(f"backwards range '{part}' not allowed, did you mean '{other}'?\n")


@fmt("pve-fw-dport-spec")
def _dport(value: str) -> None:
    _check_ports(value, icmp=True)


@fmt("pve-fw-sport-spec")
def _sport(value: str) -> None:
    _check_ports(value, icmp=False)


@fmt("pve-fw-protocol-spec")
def _protocol(value: str) -> None:
    if value and value not in _PROTOCOLS:
        raise FormatError(f"unknown protocol '{value}'\n")


@fmt("pve-fw-icmp-type-spec")
def _icmp_type(value: str) -> None:
    if value and value not in _ICMP_TYPES | _ICMP6_TYPES:
        raise FormatError(f"invalid icmp-type value '{value}'\n")


# -- rules ---------------------------------------------------------------------------------------


# The types of a rule at each place (Firewall.pm, verify_rule).
_TYPES = {
    "ct": ("in", "out", "group"),
    "vm": ("in", "out", "group"),
    "group": ("in", "out", "forward"),
    "cluster": ("in", "out", "forward", "group"),
    "host": ("in", "out", "forward", "group"),
    "vnet": ("forward", "group"),
}
_WITHOUT_INTERFACE = ("group", "vnet")


@dataclass(frozen=True)
class Environment:
    """The place of a rule, with the names of the cluster, of the place and of SDN's IP sets."""

    kind: str
    cluster: dict[str, Any]
    own: dict[str, Any]
    networks: Collection[str]

    @property
    def is_guest(self) -> bool:
        """Whether the rule is one of a machine or container."""
        return self.kind in ("vm", "ct")


def with_faults(rule: dict[str, Any], environment: Environment) -> dict[str, Any]:
    """The rule with what is wrong with it by now, such as an alias that is gone."""
    fresh = {key: value for key, value in rule.items() if key != "ipversion"}
    try:
        check_rule(fresh, environment)
    except ParamError as error:
        fresh["errors"] = dict(error.errors or {})
    return fresh


def check_rule(rule: dict[str, Any], environment: Environment) -> None:
    """Refuse a rule that makes no sense at its place; a macro's name is put right."""
    _check_action(rule, environment)
    _check_interface(rule, environment)
    if rule.get("macro"):
        known = MACROS.get(rule["macro"].lower())
        if known is None:
            raise ParamError({"macro": f"unknown macro '{rule['macro']}'"})
        rule["macro"] = known
    _check_protocol(rule)
    named = {"icmp": 4, "icmpv6": 6, "ipv6-icmp": 6}.get(rule.get("proto", ""))
    versions = {named} if named else set()
    for key in ("source", "dest"):
        if rule.get(key):
            version = address_version(rule[key]) or _named_version(rule, key, environment)
            versions |= {version} if version else set()
            if len(versions) > 1:
                raise ParamError({key: "detected mixed ipv4/ipv6 addresses in rule"})
    rule.pop("ipversion", None)
    if versions:
        rule["ipversion"] = versions.pop()


def _check_interface(rule: dict[str, Any], environment: Environment) -> None:
    if not rule.get("iface"):
        return
    if environment.kind in _WITHOUT_INTERFACE:
        raise ParamError({"type": "parameter -i not allowed for this rule type"})
    if environment.is_guest and not re.fullmatch(r"net\d+", rule["iface"]):
        raise ParamError({"iface": "value does not match the regex pattern 'net\\d+'"})


def _check_action(rule: dict[str, Any], environment: Environment) -> None:
    kind, action = rule["type"], rule["action"]
    if kind not in _TYPES[environment.kind]:
        raise ParamError({"type": f"invalid rule type '{kind}' for rule_env '{environment.kind}'"})
    if kind == "group":
        if not NAME.fullmatch(action):
            raise ParamError({"action": "invalid characters in security group name"})
    elif kind == "forward" and action == "REJECT":
        raise ParamError({"action": "cannot define REJECT rules on forward chain"})
    elif action not in ("ACCEPT", "DROP", "REJECT"):
        raise ParamError({"action": f"unknown action '{action}'"})


def _check_protocol(rule: dict[str, Any]) -> None:
    proto = rule.get("proto", "")
    icmp = proto in _ICMP or proto in _ICMP6
    for key in ("dport", "sport"):
        if not rule.get(key):
            continue
        try:
            _check_ports(rule[key], icmp=icmp and key == "dport")
        except FormatError as error:
            raise ParamError({key: str(error).rstrip("\n")}) from None
        if not proto:
            raise ParamError({"proto": f"missing property - '{key}' requires this property"})
        if proto not in _WITH_PORTS and not (icmp and key == "dport"):
            raise ParamError({key: f"protocol '{proto}' does not support ports"})
        if key == "dport" and rule.get("icmp-type") and icmp:
            raise ParamError({"icmp-type": "'icmp-type' cannot be specified together with 'dport'"})
    if rule.get("icmp-type"):
        if not icmp:
            raise ParamError({"proto": "missing property - 'icmp-type' requires this property"})
        if rule["icmp-type"] not in (_ICMP_TYPES if proto in _ICMP else _ICMP6_TYPES):
            raise ParamError(
                {"icmp-type": f"invalid icmp-type '{rule['icmp-type']}' for proto '{proto}'"}
            )


def _named_version(rule: dict[str, Any], key: str, environment: Environment) -> int | None:
    """The IP version of an alias; refused when there is no such alias or set."""
    value = rule[key]
    shared, own = environment.cluster, environment.own
    if value.startswith("+"):
        found = _SET.fullmatch(value)
        if not found:
            raise ParamError({key: f"invalid ipset name '{value}'"})
        sets = (shared["ipset"], own["ipset"], environment.networks)
        if not any(found[1] in names for names in sets):
            raise ParamError({key: f"no such ipset '{found[1]}'"})
        return None
    scoped = _SCOPED.fullmatch(value)
    name = scoped[2].lower() if scoped else ""
    if name not in shared["aliases"] and name not in own["aliases"]:
        raise ParamError({key: f"no such alias '{value}'"})
    places = [own, shared]
    if scoped and scoped[1]:
        places = [shared] if scoped[1] == "dc/" else [own]
    for place in places:
        if name in place["aliases"]:
            return ip_version(place["aliases"][name]["cidr"])
    return None
