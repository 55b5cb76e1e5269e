# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from sdn.yml: do not edit.
"""The options of module sdn."""

from ..environment import limit
from ..form import Spec


def sdn_spec() -> Spec:
    return {
        "zones": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str", "required": True},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "type": {"type": "str", "choices": ["simple", "vlan", "qinq", "vxlan", "evpn"]},
                "bridge": {"type": "str"},
                "nodes": {"type": "list", "elements": "str"},
                "tag": {"type": "int"},
                "vlan_protocol": {"type": "str", "choices": ["802.1q", "802.1ad"]},
                "peers": {"type": "list", "elements": "str"},
                "fabric": {"type": "str"},
                "vxlan_port": {"type": "int"},
                "vrf_vxlan": {"type": "int"},
                "controller": {"type": "str"},
                "exitnodes": {"type": "list", "elements": "str"},
                "exitnodes_primary": {"type": "str"},
                "exitnodes_local_routing": {"type": "bool"},
                "advertise_subnets": {"type": "bool"},
                "disable_arp_nd_suppression": {"type": "bool"},
                "rt_import": {"type": "str"},
                "mac": {"type": "str"},
                "bridge_disable_mac_learning": {"type": "bool"},
                "mtu": {"type": "int"},
                "ipam": {"type": "str"},
                "dhcp": {"type": "str", "choices": ["", "dnsmasq"]},
                "dns": {"type": "str"},
                "reversedns": {"type": "str"},
                "dnszone": {"type": "str"},
            },
        },
        "vnets": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str", "required": True},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "zone": {"type": "str"},
                "tag": {"type": "int"},
                "alias": {"type": "str"},
                "vlanaware": {"type": "bool"},
                "isolate_ports": {"type": "bool"},
            },
        },
        "subnets": {
            "type": "list",
            "elements": "dict",
            "options": {
                "cidr": {"type": "str", "required": True},
                "vnet": {"type": "str", "required": True},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "gateway": {"type": "str"},
                "snat": {"type": "bool"},
                "dnszoneprefix": {"type": "str"},
                "dhcp_ranges": {
                    "type": "list",
                    "elements": "dict",
                    "options": {
                        "start_address": {"type": "str", "required": True},
                        "end_address": {"type": "str", "required": True},
                    },
                },
                "dhcp_dns_server": {"type": "str"},
            },
        },
        "fabrics": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str", "required": True},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "protocol": {"type": "str", "choices": ["openfabric", "ospf"]},
                "ip_prefix": {"type": "str"},
                "ip6_prefix": {"type": "str"},
                "hello_interval": {"type": "int"},
                "csnp_interval": {"type": "int"},
                "area": {"type": "str"},
            },
        },
        "fabric_nodes": {
            "type": "list",
            "elements": "dict",
            "options": {
                "fabric": {"type": "str", "required": True},
                "node": {"type": "str", "required": True},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "ip": {"type": "str"},
                "ip6": {"type": "str"},
                "interfaces": {
                    "type": "list",
                    "elements": "dict",
                    "options": {
                        "name": {"type": "str", "required": True},
                        "ip": {"type": "str"},
                        "ip6": {"type": "str"},
                        "hello_multiplier": {"type": "int"},
                    },
                },
            },
        },
        "controllers": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str", "required": True},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "type": {"type": "str", "choices": ["evpn", "bgp", "isis"]},
                "asn": {"type": "int"},
                "peers": {"type": "list", "elements": "str"},
                "fabric": {"type": "str"},
                "node": {"type": "str"},
                "ebgp": {"type": "bool"},
                "ebgp_multihop": {"type": "int"},
                "loopback": {"type": "str"},
                "bgp_multipath_as_path_relax": {"type": "bool"},
                "isis_domain": {"type": "str"},
                "isis_ifaces": {"type": "list", "elements": "str"},
                "isis_net": {"type": "str"},
            },
        },
        "ipams": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str", "required": True},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "type": {"type": "str", "choices": ["pve", "netbox", "phpipam"]},
                "url": {"type": "str"},
                "token": {"type": "str", "no_log": True},
                "section": {"type": "int"},
                "fingerprint": {"type": "str"},
            },
        },
        "dns": {
            "type": "list",
            "elements": "dict",
            "options": {
                "name": {"type": "str", "required": True},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "type": {"type": "str", "choices": ["powerdns"]},
                "url": {"type": "str"},
                "key": {"type": "str", "no_log": True},
                "ttl": {"type": "int"},
                "reversemaskv6": {"type": "int"},
                "fingerprint": {"type": "str"},
            },
        },
        "exact": {
            "type": "list",
            "elements": "str",
            "choices": ("zones vnets subnets fabrics fabric_nodes controllers ipams dns").split(),
        },
        "task_timeout": limit(300, "PROXMOX_TASK_TIMEOUT"),
    }
