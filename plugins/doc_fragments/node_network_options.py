# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules node_network and node_network_info.

Written by `make options` from node_network.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  node:
    description: Name of the node.
    type: str
    required: true
  interfaces:
    description:
      - The interfaces of the node. Interfaces that are not listed are not changed, unless
        O(exact) is set.
      - An option of an interface that is not set is not changed. An empty text, an empty
        list or V(0) removes it.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the interface, such as V(vmbr1), V(bond0), V(eno1) or V(vmbr0.40).
        type: str
        required: true
      state:
        description: Whether the interface must exist. V(absent) removes it. A network card
          cannot be removed.
        type: str
        choices: [present, absent]
        default: present
      type:
        description:
          - Type of the interface. Required for an interface that is created.
          - The type of an existing interface cannot be changed.
        type: str
        choices:
          - bridge
          - bond
          - vlan
          - eth
          - alias
          - OVSBridge
          - OVSBond
          - OVSPort
          - OVSIntPort
      cidr:
        description: IPv4 address with the length of the prefix, such as V(10.0.0.11/24).
        type: str
      gateway:
        description: Default gateway for IPv4. Only one interface of a node can have one.
        type: str
      cidr6:
        description: IPv6 address with the length of the prefix, such as V(fd00::11/64).
        type: str
      gateway6:
        description: Default gateway for IPv6. Only one interface of a node can have one.
        type: str
      autostart:
        description:
          - Whether the node activates the interface when it starts, and when its network
            is reloaded.
          - By default, a new interface is activated.
        type: bool
      mtu:
        description: Maximum size of a packet in bytes, from 1280 to 65520. V(0) removes
          it.
        type: int
      bridge_ports:
        description: Interfaces that are ports of a bridge.
        type: list
        elements: str
      bridge_vlan_aware:
        description: Whether guests can use VLANs of a bridge.
        type: bool
      bridge_vids:
        description:
          - VLAN IDs and ranges that a VLAN-aware bridge passes on, such as V(2-4094).
          - By default, Proxmox VE allows V(2-4094).
        type: list
        elements: str
      slaves:
        description: Network cards of a bond. At least one is needed.
        type: list
        elements: str
      bond_mode:
        description: Mode of a bond. By default, V(balance-rr). The last three are for OVS
          bonds.
        type: str
        choices:
          - balance-rr
          - active-backup
          - balance-xor
          - broadcast
          - 802.3ad
          - balance-tlb
          - balance-alb
          - balance-slb
          - lacp-balance-slb
          - lacp-balance-tcp
      bond_primary:
        description: The slave that a bond of mode V(active-backup) prefers.
        type: str
      bond_xmit_hash_policy:
        description: How a bond of mode V(balance-xor) or V(802.3ad) chooses the slave for
          a packet.
        type: str
        choices: [layer2, layer2+3, layer3+4]
      vlan_raw_device:
        description: Parent of a VLAN. Not needed for a name such as V(vmbr0.40).
        type: str
      vlan_id:
        description: ID of a VLAN. Not needed for a name such as V(vmbr0.40) or V(vlan40).
        type: int
      ovs_bridge:
        description: The OVS bridge of an OVS bond or port. Required for V(OVSBond) and
          V(OVSIntPort).
        type: str
      ovs_ports:
        description: Interfaces that are ports of an OVS bridge.
        type: list
        elements: str
      ovs_bonds:
        description: Network cards of an OVS bond.
        type: list
        elements: str
      ovs_tag:
        description: VLAN ID of an OVS bond or port. V(0) removes it.
        type: int
      ovs_options:
        description: Options for Open vSwitch, as in C(ovs-vsctl).
        type: str
      comments:
        description: Comment on the interface.
        type: str
  exact:
    description:
      - Whether bridges, bonds, VLANs and other interfaces that are not listed are removed.
      - Network cards are never removed, and not changed if they are not listed.
    type: bool
    default: false
  pending:
    description:
      - What to do with changes that another client made and that are not in force yet.
      - V(refuse) fails with the difference in RV(error). A task that changes nothing only
        warns, if the pending change does not touch its interfaces.
      - V(apply) puts them in force together with the changes of the task.
      - V(discard) removes them first.
    type: str
    choices: [refuse, apply, discard]
    default: refuse
  allow_own_path:
    description:
      - Whether the task may change the interfaces that carry the address of the API or
        of corosync, and the interfaces that these stand on. Their comments can always be
        changed.
      - Without it, such a change is refused, because an error cuts the node off.
    type: bool
    default: false
  answer_timeout:
    description:
      - Seconds to wait until the node answers again after the change.
      - Environment variable E(PROXMOX_ANSWER_TIMEOUT).
    type: int
    default: 60
  task_timeout:
    description:
      - Seconds to wait for the reload of the network.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 300
"""

    INFO = r"""
options:
  node:
    description: Name of the node.
    type: str
    required: true
"""
