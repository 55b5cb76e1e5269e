#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_network.yml: do not edit.

DOCUMENTATION = r"""
module: node_network_info
short_description: Gather information about the network interfaces of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the interfaces of a node in the form of the options of M(pve.fleet.node_network), and
    the pending change. One request is made.
  - While a change is pending, Proxmox VE returns the interfaces as they will be.
  - Bridges are only returned if the token has C(SDN.Audit) or C(SDN.Use) on them.
options:
  node:
    description: Name of the node.
    type: str
    required: true
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.node_network}]
"""

EXAMPLES = r"""
- name: Read the network of a node
  pve.fleet.node_network_info:
    node: pve1
  register: network

- name: List its bridges
  ansible.builtin.debug:
    msg: "{{ network.interfaces | selectattr('type', 'eq', 'bridge') | map(attribute='name') }}"

- name: Show a pending change
  ansible.builtin.debug:
    msg: "{{ network.pending }}"
  when: network.pending is not none
"""

RETURN = r"""
node:
  description: Name of the node.
  returned: success
  type: str
  sample: pve1
interfaces:
  description: The interfaces, sorted by name, as O(pve.fleet.node_network#module:interfaces)
    declares them.
  returned: success
  type: list
  elements: dict
  sample: [{name: vmbr1, type: bridge, autostart: true}]
states:
  description: States of the interfaces by name, with C(active), C(exists) (whether a network card
    is present), and the methods C(method) and C(method6) of their addresses.
  returned: success
  type: dict
  sample: {vmbr1: {active: true, exists: false, method: manual, method6: manual}}
pending:
  description: The difference between the active and the pending configuration. Null if nothing is
    pending.
  returned: success
  type: str
  sample: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.node_network import (
    node_network_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.network.run import (
    run_info,
)

ENTRY = ModuleEntry(run_info, node_network_info_spec(), name="node_network_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
