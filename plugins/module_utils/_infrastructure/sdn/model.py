# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of SDN: zones, VNets, subnets, fabrics, controllers, IPAMs, name servers (data)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

ZONES, VNETS, SUBNETS = "zones", "vnets", "subnets"
CONTROLLERS, IPAMS, DNS = "controllers", "ipams", "dns"
FABRICS, FABRIC_NODES = "fabrics", "fabric_nodes"
SECTIONS = (ZONES, VNETS, SUBNETS, FABRICS, FABRIC_NODES, CONTROLLERS, IPAMS, DNS)
PENDING_SECTIONS = (ZONES, VNETS, SUBNETS, FABRICS, FABRIC_NODES, CONTROLLERS)
"""Sections that need an apply to take effect; IPAMs and name servers take effect at once."""
FABRIC_SECTIONS = (FABRICS, FABRIC_NODES)
"""Sections since Proxmox VE 9.0. A reading of an older version does not contain them."""
TEXT, FLAG, LIST, NUMBER, RANGES = "text", "flag", "list", "number", "ranges"
NETWORK, ADDRESS, INTERFACES, HEX = "network", "address", "interfaces", "hex"

SdnEntry: TypeAlias = "Mapping[str, str]"
"""The properties of an object by their names in Proxmox VE, in canonical form."""
Section: TypeAlias = "Mapping[str, SdnEntry]"
Sections: TypeAlias = "Mapping[str, Section]"

NOUNS = {
    ZONES: "zone",
    VNETS: "VNet",
    SUBNETS: "subnet",
    FABRICS: "fabric",
    FABRIC_NODES: "fabric node",
    CONTROLLERS: "controller",
    IPAMS: "IPAM",
    DNS: "name server",
}
KEYS = {
    ZONES: "zone",
    VNETS: "vnet",
    SUBNETS: "subnet",
    FABRICS: "id",
    FABRIC_NODES: "node_id",
    CONTROLLERS: "controller",
    IPAMS: "ipam",
    DNS: "dns",
}
"""The name of an object in requests and answers."""
SECRETS = ("token", "key")

# Option: the name of the property in Proxmox VE, and its form.
FIELDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    ZONES: {
        "type": ("type", TEXT),
        "bridge": ("bridge", TEXT),
        "nodes": ("nodes", LIST),
        "tag": ("tag", NUMBER),
        "vlan_protocol": ("vlan-protocol", TEXT),
        "peers": ("peers", LIST),
        "fabric": ("fabric", TEXT),
        "vxlan_port": ("vxlan-port", NUMBER),
        "vrf_vxlan": ("vrf-vxlan", NUMBER),
        "controller": ("controller", TEXT),
        "exitnodes": ("exitnodes", LIST),
        "exitnodes_primary": ("exitnodes-primary", TEXT),
        "exitnodes_local_routing": ("exitnodes-local-routing", FLAG),
        "advertise_subnets": ("advertise-subnets", FLAG),
        "disable_arp_nd_suppression": ("disable-arp-nd-suppression", FLAG),
        "rt_import": ("rt-import", LIST),
        "mac": ("mac", HEX),
        "bridge_disable_mac_learning": ("bridge-disable-mac-learning", FLAG),
        "mtu": ("mtu", NUMBER),
        "ipam": ("ipam", TEXT),
        "dhcp": ("dhcp", TEXT),
        "dns": ("dns", TEXT),
        "reversedns": ("reversedns", TEXT),
        "dnszone": ("dnszone", TEXT),
    },
    VNETS: {
        "zone": ("zone", TEXT),
        "tag": ("tag", NUMBER),
        "alias": ("alias", TEXT),
        "vlanaware": ("vlanaware", FLAG),
        "isolate_ports": ("isolate-ports", FLAG),
    },
    SUBNETS: {
        "vnet": ("vnet", TEXT),
        "gateway": ("gateway", ADDRESS),
        "snat": ("snat", FLAG),
        "dnszoneprefix": ("dnszoneprefix", TEXT),
        "dhcp_ranges": ("dhcp-range", RANGES),
        "dhcp_dns_server": ("dhcp-dns-server", ADDRESS),
    },
    FABRICS: {
        "protocol": ("protocol", TEXT),
        "ip_prefix": ("ip_prefix", NETWORK),
        "ip6_prefix": ("ip6_prefix", NETWORK),
        "hello_interval": ("hello_interval", NUMBER),
        "csnp_interval": ("csnp_interval", NUMBER),
        "area": ("area", TEXT),
    },
    FABRIC_NODES: {
        "fabric": ("fabric_id", TEXT),
        "node": ("node_id", TEXT),
        "ip": ("ip", ADDRESS),
        "ip6": ("ip6", ADDRESS),
        "interfaces": ("interfaces", INTERFACES),
    },
    CONTROLLERS: {
        "type": ("type", TEXT),
        "asn": ("asn", NUMBER),
        "peers": ("peers", LIST),
        "fabric": ("fabric", TEXT),
        "node": ("node", TEXT),
        "ebgp": ("ebgp", FLAG),
        "ebgp_multihop": ("ebgp-multihop", NUMBER),
        "loopback": ("loopback", TEXT),
        "bgp_multipath_as_path_relax": ("bgp-multipath-as-path-relax", FLAG),
        "isis_domain": ("isis-domain", TEXT),
        "isis_ifaces": ("isis-ifaces", LIST),
        "isis_net": ("isis-net", TEXT),
    },
    IPAMS: {
        "type": ("type", TEXT),
        "url": ("url", TEXT),
        "token": ("token", TEXT),
        "section": ("section", NUMBER),
        "fingerprint": ("fingerprint", HEX),
    },
    DNS: {
        "type": ("type", TEXT),
        "url": ("url", TEXT),
        "key": ("key", TEXT),
        "ttl": ("ttl", NUMBER),
        "reversemaskv6": ("reversemaskv6", NUMBER),
        "fingerprint": ("fingerprint", HEX),
    },
}

_NAMING = "nodes mtu dns reversedns dnszone ipam"
_EVPN = (
    "exitnodes exitnodes-local-routing exitnodes-primary advertise-subnets mac rt-import vxlan-port"
    " disable-arp-nd-suppression bridge-disable-mac-learning"
)
# The required and the optional properties of each type (pve-network: the options of
# SDN/{Zones,Controllers,Ipams,Dns}/*Plugin.pm).
TYPES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    ZONES: {
        "simple": ("", f"{_NAMING} dhcp"),
        "vlan": ("bridge", f"{_NAMING} bridge-disable-mac-learning"),
        "qinq": ("bridge tag", f"{_NAMING} bridge-disable-mac-learning vlan-protocol"),
        "vxlan": ("", f"{_NAMING} peers vxlan-port fabric"),
        "evpn": ("controller vrf-vxlan", f"{_NAMING} {_EVPN}"),
    },
    CONTROLLERS: {
        "evpn": ("asn", "peers fabric"),
        "bgp": ("node asn peers", "bgp-multipath-as-path-relax ebgp ebgp-multihop loopback"),
        "isis": ("isis-domain isis-net isis-ifaces node", "loopback"),
    },
    IPAMS: {
        "pve": ("", ""),
        "netbox": ("url token", "fingerprint"),
        "phpipam": ("url token section", "fingerprint"),
    },
    DNS: {"powerdns": ("url key", "ttl reversemaskv6 fingerprint")},
}


@dataclass(frozen=True)
class DesiredSdn:
    """The sections that a task declares. An object that is None is removed.

    A property with an empty text is removed. In `exact` sections, unlisted objects are removed.
    """

    sections: Mapping[str, Mapping[str, SdnEntry | None]]
    exact: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SdnReading:
    """The running objects, and the configured changes that have not been applied."""

    running: Sections
    pending: tuple[str, ...] = ()


@dataclass(frozen=True)
class SdnContext:
    """The names that objects refer to, as far as they were read.

    `bridges` and `interfaces` contain the bridges and all interfaces of each node that was read.
    `used` contains the guests that use each VNet, and `leased` the addresses that the IPAM assigned
    from each subnet.
    """

    nodes: frozenset[str] = frozenset()
    bridges: Mapping[str, frozenset[str]] = field(default_factory=dict)
    interfaces: Mapping[str, frozenset[str]] = field(default_factory=dict)
    used: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leased: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
