# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The formats that the API schema names: which texts have them, and PVE's cause for others.

Sources: pve-common, JSONSchema.pm and ParseUtils.pm; the file that registers a format is named
beside the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from ..core import validate
from .generated.names import PROTOCOLS, SERVICES, ZONE_LINKS, ZONES
from .generated.qemu import CPU_MODELS

FindBreach = Callable[[str], "str | None"]
"""Returns why a text does not have a format, in PVE's words, or None."""

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?"
_DNS_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")
_TAG = re.compile(r"[a-z0-9_][a-z0-9_\-+.]*", re.IGNORECASE)
_VOLUME = re.compile(r"[a-z][a-z0-9\-_.]*[a-z0-9]:.+", re.IGNORECASE)
_NEW_DISK = re.compile(r"(?:[^/:\s]+:)?\d+(?:\.\d+)?")
_STORAGE = re.compile(r"[a-z][a-z0-9\-_.]*[a-z0-9]", re.IGNORECASE)
_CONFIG_ID = re.compile(r"[a-z][a-z0-9_-]+", re.IGNORECASE)
_SIZE = re.compile(r"\d+(?:\.\d+)?[KMGT]?")
_MAC = re.compile(r"[0-9a-f][02468ace](?::[0-9a-f]{2}){5}", re.IGNORECASE)
_BRIDGE = re.compile(r"[-_.\w]+")
_CPUSET = re.compile(r"\s*\d+(?:-\d+)?(?:\s*,\s*\d+(?:-\d+)?)*\s*")
_URL_ENCODED = re.compile(r"(?:[-_.~A-Za-z0-9!*'()]|%[0-9A-Fa-f]{2})*")
_NODE = re.compile(_LABEL)
_INTERFACE = re.compile(r"[a-z][a-z0-9_]{1,20}(?:[:.]\d+)?", re.IGNORECASE)
_MAC_PREFIX = re.compile(r"[0-9a-f][02468ace](?::[0-9a-f]{2}){0,2}(?::[0-9a-f]?)?", re.IGNORECASE)
_EMAIL_USER = r"[\w+\-~]+(?:\.[\w+\-~]+)*"
_EMAIL = rf"{_EMAIL_USER}@[a-zA-Z0-9\-]+(?:\.[a-zA-Z0-9\-]+)*"
# The parts of names in certificates, and of alternative names that prove them (pve-manager:
# NodeConfig.pm).
_DOMAIN = re.compile(r"[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9][a-z0-9_-]*)+", re.IGNORECASE)
_DOMAIN_ALIAS = re.compile(r"[a-z0-9_][a-z0-9_-]*(?:\.[a-z0-9_][a-z0-9_-]*)+", re.IGNORECASE)
_SIMPLE_NAME = re.compile(r"[A-Za-z0-9.\-_]+")
_POOL = re.compile(r"[A-Za-z0-9.\-_]+(?:/[A-Za-z0-9.\-_]+){0,2}")
_REALM = r"[A-Za-z][A-Za-z0-9.\-_]+"
_USER = re.compile(rf"[^\s:/]+@{_REALM}")
_TOKEN = re.compile(rf"[^\s:/]+@{_REALM}!{_REALM}")
_LVM_NAME = re.compile(r"[a-z0-9][a-z0-9\-_.]*[a-z0-9]", re.IGNORECASE)
_HA_NODE = re.compile(rf"{_LABEL}(?::\d+)?")
_HA_RESOURCE = re.compile(r"[a-z]+:\S+")
_FABRIC_ID = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9-]{0,6}[a-zA-Z0-9]?")
_ISIS_NET = re.compile(r"[a-f0-9]{2}(?:\.[a-f0-9]{4}){3,9}\.[a-f0-9]{2}", re.IGNORECASE)
_REFERENCE = re.compile(r"(?:dc/|guest/)?[A-Za-z][A-Za-z0-9\-_]+")
_SET = re.compile(r"\+(?:dc/|guest/|sdn/)?[A-Za-z][A-Za-z0-9\-_]+")
_LONGEST_REFERENCE = 64
_MOST_PORTS = 15
_HELPERS = frozenset("amanda ftp irc netbios-ns pptp sane sip snmp tftp".split())
_CONTENT = frozenset("images rootdir vztmpl iso backup snippets import none".split())
# iptables -p icmp -h, ip6tables -p icmpv6 -h (pve-firewall: Firewall.pm)
ICMP_TYPES = frozenset(
    "any echo-reply destination-unreachable network-unreachable host-unreachable"
    " protocol-unreachable port-unreachable fragmentation-needed source-route-failed"
    " network-unknown host-unknown network-prohibited host-prohibited TOS-network-unreachable"
    " TOS-host-unreachable communication-prohibited host-precedence-violation precedence-cutoff"
    " source-quench redirect network-redirect host-redirect TOS-network-redirect"
    " TOS-host-redirect echo-request router-advertisement router-solicitation time-exceeded"
    " ttl-zero-during-transit ttl-zero-during-reassembly parameter-problem ip-header-bad"
    " required-option-missing timestamp-request timestamp-reply address-mask-request"
    " address-mask-reply no-route beyond-scope address-unreachable failed-policy reject-route"
    " packet-too-big bad-header unknown-header-type unknown-option neighbor-solicitation"
    " neighbour-solicitation neighbor-advertisement neighbour-advertisement".split()
)
_HOTPLUG = frozenset(("network", "disk", "cpu", "memory", "usb", "cloudinit"))

# PVE's own models besides QEMU's, and the flags that a VM may set (CPUConfig.pm, CPUFlags.pm).
_CPU_LEVELS = ("x86-64-v2", "x86-64-v2-AES", "x86-64-v3", "x86-64-v4")
_CPU_FLAGS = (
    "nested-virt",
    "md-clear",
    "pcid",
    "spec-ctrl",
    "ssbd",
    "ibpb",
    "virt-ssbd",
    "amd-ssbd",
    "amd-no-ssb",
    "pdpe1gb",
    "hv-tlbflush",
    "hv-evmcs",
    "aes",
)


def _matches(pattern: re.Pattern[str], what: str) -> FindBreach:
    return lambda text: (
        None if pattern.fullmatch(text) else f"value does not look like a valid {what}"
    )


def _is_host(text: str) -> bool:
    """Return whether a text is an address or a DNS name (pve-common: JSONSchema.pm,
    pve_verify_address).
    """
    return validate.is_address(text) or bool(_DNS_NAME.fullmatch(text))


def _volume_or_new(text: str) -> str | None:
    good = (
        text in ("none", "cdrom")
        or text.startswith("/")
        or _VOLUME.fullmatch(text)
        or _NEW_DISK.fullmatch(text)
    )
    return None if good and text else f"unable to parse volume ID '{text}'"


def _volume_or_path(text: str) -> str | None:
    return (
        None
        if text.startswith("/") or _VOLUME.fullmatch(text)
        else f"unable to parse volume ID '{text}'"
    )


def _ip_or_word(version: int, words: frozenset[str]) -> FindBreach:
    """Return the check of an address with a prefix, or of a word in its place."""

    def find_breach(text: str) -> str | None:
        if text in words or validate.is_cidr(text, version):
            return None
        return f"value does not look like a valid ipv{version} network configuration"

    return find_breach


def _ip(version: int) -> FindBreach:
    def find_breach(text: str) -> str | None:
        if validate.is_address(text, version):
            return None
        return f"value does not look like a valid IPv{version} address"

    return find_breach


def _mount_path(text: str) -> str | None:
    """Return why the path of a mount point is refused (pve-container: LXC/Config.pm,
    verify_lxc_mp_string).
    """
    parts = text.split("/")
    is_upward = text.startswith("../")
    if is_upward or not {".", ".."}.isdisjoint(parts[1:]):
        return f"{text} contains illegal character sequences"
    return None


def _link_local_or_ip(text: str) -> bool:
    """Return whether a text is an address, a link-local one with its interface (pve-container:
    LXC/Config.pm, verify_ip_with_ll_iface).
    """
    address, percent, interface = text.partition("%")
    if percent and address.startswith("fe80:"):
        return validate.is_address(address) and bool(_INTERFACE.fullmatch(interface))
    return validate.is_address(text)


def _vlan_or_range(text: str) -> bool:
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if found is None:
        return False
    first, last = int(found[1]), int(found[2] or 4094)
    return 2 <= first <= last <= 4094 and first != int(found[2] or 0)


def _route_target(text: str) -> bool:
    """Return whether a text is a BGP route target (pve-network: EvpnPlugin.pm)."""
    parts = text.split(":")
    return len(parts) == 2 and all(part.isdigit() and int(part) < 2**32 for part in parts)


def _zfs_block_size(text: str) -> str | None:
    """Check a power of 2 from 512 bytes to 16 MiB (pve-storage: ZFSPoolPlugin.pm)."""
    found = re.fullmatch(r"([1-9][0-9]*)([km]?)", text, re.IGNORECASE)
    size = int(found[1]) << {"": 0, "k": 10, "m": 20}[found[2].lower()] if found else 0
    if not text or (512 <= size <= 16 << 20 and not size & (size - 1)):
        return None
    return f"'{text}' is not a power of 2 between 512B and 16MiB, such as 4k, 16k or 1m"


def _portal(text: str) -> bool:
    """Return whether a text is a host with an optional port (pve-common: Tools.pm,
    parse_host_and_port).
    """
    if re.fullmatch(r"[A-Za-z0-9\-.]+(?::\d+)?", text):
        return True
    bracketed = re.fullmatch(r"\[([^]]+)\](?::\d+)?", text)
    return validate.is_address(bracketed[1] if bracketed else re.sub(r"\.\d+$", "", text), 6)


def _directory(text: str) -> bool:
    """Return whether a text is a kind of content with its directory (pve-storage: Plugin.pm,
    verify_dir_override).
    """
    found = re.fullmatch(r"([a-z]+)=(.+)", text)
    if found is None or found[1] not in _CONTENT or ".." in found[2] or text.endswith("."):
        return False
    return len(found[2]) < 1023 and all(len(part) < 255 for part in found[2].split("/"))


def _addresses(text: str) -> str | None:
    """Check the source or the destination of a firewall rule (pve-firewall: Firewall.pm,
    parse_address_list, verify_rule).
    """
    if text.startswith("+") and not _SET.fullmatch(text):
        return f"invalid ipset name '{text}'"
    if text.startswith("+") or _REFERENCE.fullmatch(text):
        is_short = len(text) <= _LONGEST_REFERENCE + text.startswith("+")
        return None if is_short else "the name is too long"
    versions: set[int] = set()
    items = text.split(",")
    for item in items:
        ends = item.split("-")
        networks = [validate.network(end, strict=True) for end in ends]
        if len(ends) > 2 or None in networks or (len(ends) == 2 and len(items) > 1):
            return f"invalid IP address: {item}"
        versions.update(network.version for network in networks if network)
    return "detected mixed ipv4/ipv6 addresses" if len(versions) > 1 else None


def _ports(more: Collection[str]) -> FindBreach:
    """Return the check of ports; `more` are names that PVE accepts besides the names of services
    (pve-firewall: Firewall.pm, parse_port_name_number_or_range).
    """

    def find_breach(text: str) -> str | None:
        numbers = 0
        for item in text.split(","):
            found = re.fullmatch(r"(\d+)(?::(\d+))?", item)
            if found is None and item not in SERVICES and item not in more:
                return f"invalid port '{item}'"
            if found is not None:
                ends = [int(end) for end in found.groups() if end]
                numbers += len(ends)
                if max(ends) > 65535 or ends != sorted(ends):
                    return f"invalid port '{item}'"
        return "too many entries in port list (> 15 numbers)" if numbers > _MOST_PORTS else None

    return find_breach


def _hotplug(text: str) -> str | None:
    if text in ("0", "1"):
        return None
    wrong = [item for item in re.split(r"[,;\s]+", text) if item not in _HOTPLUG]
    return f"invalid hotplug feature '{wrong[0]}'" if wrong else None


def _cpu_type(text: str) -> str | None:
    """Check a CPU type (CPUConfig.pm, validate_vm_cpu_conf).

    Only the server knows whether a custom type exists.
    """
    if text in CPU_MODELS or text in _CPU_LEVELS or text.startswith("custom-"):
        return None
    return f"Built-in cputype '{text}' is not defined (missing 'custom-' prefix?)"


def _cpu_flags(text: str) -> str | None:
    wrong = [flag for flag in text.split(";") if flag[1:] not in _CPU_FLAGS]
    return f"VM-specific CPU flags must be a subset of: {', '.join(_CPU_FLAGS)}" if wrong else None


def _phys_bits(text: str) -> str | None:
    good = text == "host" or (re.fullmatch("[0-9]{1,2}", text) and 8 <= int(text) <= 64)
    return None if good else "value must be an integer between 8 and 64 or 'host'"


def _only_in_custom_models(_text: str) -> str:
    return "Property 'reported-model' not allowed in VM-specific CPU config."


def _one_of(names: Collection[str], what: str) -> FindBreach:
    return lambda text: None if text in names else f"invalid {what} '{text}'"


def _is(check: Callable[[str], object], what: str) -> FindBreach:
    return lambda text: None if check(text) else f"value does not look like a valid {what}"


_CHECKS: dict[str, FindBreach] = {
    "CIDR": _is(
        lambda text: validate.is_cidr(text, 4) or validate.is_cidr(text, 6), "CIDR network"
    ),
    "CIDRv4": _is(lambda text: validate.is_cidr(text, 4), "IPv4 CIDR network"),
    "CIDRv6": _is(lambda text: validate.is_cidr(text, 6), "IPv6 CIDR network"),
    "IPorCIDR": _is(validate.network, "IP address or CIDR network"),
    "IPorCIDRorAlias": _is(
        lambda text: _REFERENCE.fullmatch(text) or validate.network(text),
        "IP address, CIDR network or alias",
    ),
    "address": _is(_is_host, "address"),
    "disk-size": _matches(_SIZE, "disk size"),
    "dns-name": _matches(_DNS_NAME, "DNS name"),
    "email": _matches(re.compile(_EMAIL, re.ASCII), "email address"),
    "email-or-username": _matches(
        re.compile(f"{_EMAIL}|{_EMAIL_USER}", re.ASCII), "email address or user name"
    ),
    # pve-manager: Status/Graphite.pm
    "graphite-path": _matches(_DNS_NAME, "graphite path"),
    "ip": _is(validate.is_address, "IP address"),
    "ipv4": _ip(4),
    "ipv4mask": _is(lambda text: validate.network(f"0.0.0.0/{text}"), "IP netmask"),
    "ipv6": _ip(6),
    # pve-access-control: Auth/LDAP.pm
    "ldap-simple-attr": _matches(re.compile("[a-zA-Z0-9]+"), "simple LDAP attribute name"),
    "lxc-ip-with-ll-iface": _is(_link_local_or_ip, "IP address"),
    "mac-addr": _matches(_MAC, "unicast MAC address"),
    "mac-prefix": _matches(_MAC_PREFIX, "unicast MAC address prefix"),
    "pve-acme-alias": _matches(_DOMAIN_ALIAS, "alias name"),
    "pve-acme-domain": _matches(_DOMAIN, "domain name"),
    "pve-bridge-id": _matches(_BRIDGE, "bridge ID"),
    "pve-configid": _matches(_CONFIG_ID, "configuration ID"),
    "pve-cpu-flags": _cpu_flags,
    "pve-cpu-reported": _only_in_custom_models,
    "pve-cpu-type": _cpu_type,
    "pve-cpuset": _matches(_CPUSET, "CPU set"),
    # pve-container: LXC/Config.pm, verify_ct_timezone
    "pve-ct-timezone": _one_of(ZONES | {"host"}, "time zone"),
    "pve-dir-override": _is(_directory, "override of a directory"),
    "pve-fw-addr-spec": _addresses,
    "pve-fw-conntrack-helper": lambda text: (
        None if _HELPERS.issuperset(text.split(",")) else f"unknown helper in '{text}'"
    ),
    "pve-fw-dport-spec": _ports(ICMP_TYPES),
    "pve-fw-icmp-type-spec": _one_of(ICMP_TYPES | {""}, "icmp-type value"),
    "pve-fw-protocol-spec": _one_of(PROTOCOLS | {""}, "protocol"),
    "pve-fw-sport-spec": _ports(()),
    # pve-ha-manager: HA/Tools.pm
    "pve-ha-node": _matches(_HA_NODE, "HA node"),
    "pve-groupid": _matches(_SIMPLE_NAME, "name of a group"),
    "pve-ha-resource-id": _matches(_HA_RESOURCE, "HA resource ID"),
    "pve-ha-resource-or-vm-id": _matches(re.compile(r"[a-z]+:\S+|\d+"), "HA resource ID"),
    "pve-hotplug-features": _hotplug,
    "pve-iface": _matches(_INTERFACE, "network interface name"),
    "pve-ipv4-config": _ip_or_word(4, frozenset(("dhcp", "manual"))),
    "pve-ipv6-config": _ip_or_word(6, frozenset(("auto", "dhcp", "manual"))),
    "pve-lxc-mp-string": _mount_path,
    "pve-node": _matches(_NODE, "node name"),
    "pve-phys-bits": _phys_bits,
    # pve-access-control: AccessControl.pm and Auth/Plugin.pm
    "pve-poolid": _matches(_POOL, "pool name"),
    "pve-realm": _matches(re.compile(_REALM), "realm"),
    "pve-roleid": _matches(_SIMPLE_NAME, "name of a role"),
    "pve-sdn-bgp-rt": _is(_route_target, "BGP route target"),
    # pve-network: Fabrics.pm
    "pve-sdn-fabric-id": _matches(_FABRIC_ID, "fabric ID"),
    # pve-network: Controllers/IsisPlugin.pm
    "pve-sdn-isis-net": _matches(_ISIS_NET, "IS-IS net"),
    # pve-storage: Storage/Plugin.pm
    "pve-storage-content": _one_of(_CONTENT, "content type"),
    "pve-storage-id": _matches(_STORAGE, "storage ID"),
    "pve-storage-options": _matches(re.compile(r"\S+"), "list of mount options"),
    "pve-storage-path": _matches(re.compile(r"/[^;()]+.*", re.DOTALL), "absolute path"),
    "pve-storage-portal-dns": _is(_portal, "portal address"),
    "pve-storage-server": _is(_is_host, "server name or IP address"),
    "pve-storage-vgname": _matches(_LVM_NAME, "LVM name"),
    "pve-storage-zfs-blocksize": _zfs_block_size,
    "pve-tag": lambda text: None if _TAG.fullmatch(text) else "invalid characters in tag",
    "pve-tokenid": _matches(_TOKEN, "token ID"),
    "pve-userid": _is(
        lambda text: _USER.fullmatch(text) and 3 <= len(text) <= 64, "user with its realm"
    ),
    "pve-vlan-id-or-range": _is(_vlan_or_range, "VLAN or range of VLANs"),
    "pve-vmid": _matches(re.compile("[1-9][0-9]{2,8}"), "VM ID"),
    "pve-volume-id": _matches(_VOLUME, "volume ID"),
    "pve-volume-id-or-absolute-path": _volume_or_path,
    "pve-volume-id-or-qm-path": _volume_or_new,
    # timedatectl list-timezones (pve-common: Systemd.pm, set_timezone)
    "timezone-of-node": _one_of(ZONES | ZONE_LINKS, "time zone"),
    "urlencoded": lambda text: (
        None if _URL_ENCODED.fullmatch(text) else f"invalid urlencoded string: {text}"
    ),
}


def find_breach(name: str, text: str) -> str | None:
    """Return why a text does not have a format, in PVE's words, or None; a format that is not known
    here is the server's to check.

    NAME-list is a list of items with format NAME, NAME-opt also has an empty text (JSONSchema.pm,
    check_format).
    """
    base, _dash, suffix = name.rpartition("-")
    if name in _CHECKS or suffix not in ("list", "opt"):
        check = _CHECKS.get(name)
        return check(text) if check else None
    check = _CHECKS.get(base)
    if check is None:
        return None
    if suffix == "opt":
        return check(text) if text else None
    breaches = ((item, check(item)) for item in re.split(r"[,;\s\0]+", text) if item)
    return next((f"{breach} '{item}'" for item, breach in breaches if breach), None)
