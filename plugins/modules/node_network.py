#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_network.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_network
short_description: Manage the network interfaces of a node
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Manages bridges, bonds, VLANs, Open vSwitch and addresses of a node. All interfaces of a
    task are one change, which is applied by one reload of the network.
  - If Proxmox VE refuses a part of the change, the pending change is discarded. If the reload
    fails, the former configuration is written back and applied.
  - A network that cannot work is refused before the first write, such as a bond without slaves,
    a VLAN without a parent, an address that a node has already, and the removal of a bridge
    that guests use.
  - The requests are ordered as Proxmox VE needs them, for example to move a network card from
    a bridge to a bond.
  - A reload needs ifupdown2, which is installed by default. Open vSwitch needs the package
    openvswitch-switch.
  - The token needs C(Sys.Modify) and C(Sys.Audit) on the node, and C(SDN.Audit) on the bridges.
    With C(Sys.Audit) on C(/), the addresses of corosync are known. To remove a bridge, it needs
    C(VM.Audit) on the guests of the node.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - The difference has the interfaces that change.
  idempotent:
    support: full
extends_documentation_fragment:
  - pve.fleet.node_network_options
  - pve.fleet.connection
  - pve.fleet.attributes
seealso:
  - module: pve.fleet.node_network_info
  - module: pve.fleet.node_info
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

- name: Show the changes that a person made and did not apply
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
  description: The network of the node. In check mode, as it would be.
  returned: success
  type: dict
  contains:
    node: {description: Name of the node., type: str, sample: pve1}
    interfaces: {description: 'Its interfaces, sorted by name, as O(interfaces) declares
        them.', type: list, elements: dict, sample: [{name: vmbr5, type: bridge, autostart: true,
          bridge_vlan_aware: true, bridge_vids: [100-199]}]}
    pending: {description: The difference to the configuration in force. Null if nothing
        is pending., type: str, sample: null}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample:
    - Create bridge vmbr5 on node pve1
    - Apply the network configuration of node pve1
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: ConfigurationError
    reason: own path
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._node.network.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.node_network import (
    node_network_spec,
)

ENTRY = Entry(run, node_network_spec(), name="node_network")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
