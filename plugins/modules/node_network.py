#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_network.yml: do not edit.

DOCUMENTATION = r"""
module: node_network
short_description: Manage the network interfaces of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Manages bridges, bonds, VLANs, Open vSwitch and addresses of a node. All changes of a task are
    applied together by one reload of the network.
  - If Proxmox VE refuses a part of the change, the pending change is discarded. If the reload
    fails, the former configuration is written back and applied.
  - Changes that cannot work are refused before the first write, such as a bond without slaves, a
    VLAN without a parent, an address that a node already has, and the removal of a bridge that
    guests use.
  - The requests are sent in the order that Proxmox VE needs, for example to move a network card
    from a bridge to a bond.
  - A reload needs ifupdown2, which is installed by default. Open vSwitch needs the package
    openvswitch-switch.
  - The token needs C(Sys.Modify) and C(Sys.Audit) on the node, and C(SDN.Audit) on the bridges. To
    know the addresses of corosync, it needs C(Sys.Audit) on C(/). To remove a bridge, it needs
    C(VM.Audit) on the guests of the node.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - The diff contains the interfaces that change.
  idempotent:
    support: full
options:
  node:
    description: Name of the node.
    type: str
    required: true
  interfaces:
    description:
      - The interfaces of the node. Interfaces that are not listed are not changed unless O(exact)
        is set.
      - An option of an interface that is not set is not changed. An empty text, an empty list or
        V(0) removes it.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the interface, such as V(vmbr1), V(bond0), V(eno1) or V(vmbr0.40).
        type: str
        required: true
      state:
        description: Whether the interface exists. V(absent) removes it. A network card cannot be
          removed.
        type: str
        choices: [present, absent]
        default: present
      type:
        description:
          - Type of the interface. Required for a new interface.
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
        description: IPv4 address with prefix length, such as V(10.0.0.11/24).
        type: str
      gateway:
        description: Default gateway for IPv4. Only one interface of a node can have one.
        type: str
      cidr6:
        description: IPv6 address with prefix length, such as V(fd00::11/64).
        type: str
      gateway6:
        description: Default gateway for IPv6. Only one interface of a node can have one.
        type: str
      autostart:
        description:
          - Whether the node activates the interface when it starts, and when its network is
            reloaded.
          - By default, a new interface is activated automatically.
        type: bool
      mtu:
        description: Maximum size of a packet in bytes, from 1280 to 65520. V(0) removes it.
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
          - VLAN IDs and ranges that a VLAN-aware bridge forwards, such as V(2-4094).
          - By default, Proxmox VE allows V(2-4094).
        type: list
        elements: str
      slaves:
        description: Network cards of a bond. At least one is needed.
        type: list
        elements: str
      bond_mode:
        description: Mode of a bond. By default, V(balance-rr). The last three are for OVS bonds.
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
        description: The preferred slave of a bond in mode V(active-backup).
        type: str
      bond_xmit_hash_policy:
        description: How a bond in mode V(balance-xor) or V(802.3ad) selects the slave for a packet.
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
      - What to do with changes by other clients that have not been applied yet.
      - V(refuse) fails with the difference in RV(error). A task that changes nothing only warns if
        the pending change does not concern its interfaces.
      - V(apply) applies them together with the changes of the task.
      - V(discard) removes them first.
    type: str
    choices: [refuse, apply, discard]
    default: refuse
  allow_own_path:
    description:
      - Whether the task may change the interfaces with the address of the API or of corosync, and
        the interfaces below them. Their comments can always be changed.
      - With V(false), such a change is refused, because a mistake cuts off the node.
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
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes]
seealso: [{module: pve.fleet.node_network_info}, {module: pve.fleet.node_info}]
"""

EXAMPLES = r"""
- name: Add a VLAN-aware bridge for guests
  pve.fleet.node_network:
    node: pve1
    interfaces:
      - name: vmbr5
        type: bridge
        bridge_vlan_aware: true
        bridge_vids: [100-199]
        comments: Guests of the tenants

- name: Add an address in a storage network, on a VLAN of the bridge
  pve.fleet.node_network:
    node: pve1
    interfaces:
      - name: vmbr5.120
        type: vlan
        cidr: 10.20.0.11/24

- name: Show changes that were made but not applied
  pve.fleet.node_network_info:
    node: pve1
  register: network

- name: Remove both
  pve.fleet.node_network:
    node: pve1
    interfaces:
      - {name: vmbr5.120, state: absent}
      - {name: vmbr5, state: absent}
"""

RETURN = r"""
node_network:
  description: The network of the node, or in check mode the network as it would be.
  returned: success
  type: dict
  contains:
    node: {description: Name of the node., type: str, sample: pve1}
    interfaces: {description: 'Its interfaces, sorted by name, as O(interfaces) declares them.',
      type: list, elements: dict, sample: [{name: vmbr5, type: bridge, autostart: true,
      bridge_vlan_aware: true, bridge_vids: [100-199]}]}
    pending: {description: The difference to the active configuration. Null if nothing is pending.,
      type: str, sample: null}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create bridge vmbr5 on node pve1, Apply the network configuration of node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: ConfigurationError, reason: own path, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.node_network import (
    node_network_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.network.run import run

ENTRY = ModuleEntry(run, node_network_spec(), name="node_network")
main = ENTRY.main

if __name__ == "__main__":
    main()
