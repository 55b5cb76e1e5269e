# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_network.yml: do not edit.
"""The options of modules node_network and node_network_info."""

from ..environment import limit
from ..form import Spec


def node_network_spec() -> Spec:
    return {
        "node": {"type": "str", "required": True},
        "interfaces": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "name": {"type": "str", "required": True},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                "type": {
                    "type": "str",
                    "choices": (
                        "bridge bond vlan eth alias OVSBridge OVSBond OVSPort OVSIntPort"
                    ).split(),
                },
                "cidr": {"type": "str"},
                "gateway": {"type": "str"},
                "cidr6": {"type": "str"},
                "gateway6": {"type": "str"},
                "autostart": {"type": "bool"},
                "mtu": {"type": "int"},
                "bridge_ports": {"type": "list", "elements": "str"},
                "bridge_vlan_aware": {"type": "bool"},
                "bridge_vids": {"type": "list", "elements": "str"},
                "slaves": {"type": "list", "elements": "str"},
                "bond_mode": {
                    "type": "str",
                    "choices": (
                        "balance-rr active-backup balance-xor broadcast 802.3ad "
                        "balance-tlb balance-alb balance-slb lacp-balance-slb "
                        "lacp-balance-tcp"
                    ).split(),
                },
                "bond_primary": {"type": "str"},
                "bond_xmit_hash_policy": {
                    "type": "str",
                    "choices": ["layer2", "layer2+3", "layer3+4"],
                },
                "vlan_raw_device": {"type": "str"},
                "vlan_id": {"type": "int"},
                "ovs_bridge": {"type": "str"},
                "ovs_ports": {"type": "list", "elements": "str"},
                "ovs_bonds": {"type": "list", "elements": "str"},
                "ovs_tag": {"type": "int"},
                "ovs_options": {"type": "str"},
                "comments": {"type": "str"},
            },
        },
        "exact": {"type": "bool", "default": False},
        "pending": {"type": "str", "choices": ["refuse", "apply", "discard"], "default": "refuse"},
        "allow_own_path": {"type": "bool", "default": False},
        "answer_timeout": limit(60, "PROXMOX_ANSWER_TIMEOUT"),
        "task_timeout": limit(300, "PROXMOX_TASK_TIMEOUT"),
    }


def node_network_info_spec() -> Spec:
    return {"node": {"type": "str", "required": True}}
