#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_update_info.yml: do not edit.

DOCUMENTATION = r"""
module: node_update_info
short_description: Gather information about pending updates of nodes
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the packages with pending updates on one node or on all nodes. One request is made for
    each node.
  - A node compares its packages with the package lists that it last downloaded, by default once a
    day. This module does not download the lists.
  - Proxmox VE does not return whether an update is a security update.
  - A node that cannot be read does not fail the task. RV(missing) has the reason, and a warning is
    shown. The task fails if no node can be read.
  - The token needs C(Sys.Modify) on the nodes.
options:
  node:
    description: Name of the node. By default, all nodes are read.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso:
  - module: pve.fleet.node_info
  - module: pve.fleet.apt_repository
  - module: pve.fleet.evacuation
"""

EXAMPLES = r"""
- name: Read the pending updates of all nodes
  pve.fleet.node_update_info:
  register: pending

- name: Show the nodes with a kernel update
  ansible.builtin.debug:
    msg: "{{ pending.nodes | selectattr('installs_kernel') | map(attribute='node') | join(' ') }}"

- name: Show the updates of Proxmox on one node
  ansible.builtin.debug:
    msg: "{{ item.package }} {{ item.old_version or 'none' }} -> {{ item.version }}"
  loop: "{{ (pending.nodes | selectattr('node', 'eq', 'pve1') | first).updates
    | selectattr('origin', 'eq', 'Proxmox') }}"
  loop_control:
    label: "{{ item.package }}"
"""

RETURN = r"""
nodes:
  description: The nodes, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: Its name., type: str, sample: pve1}
    installs_kernel: {description: 'Whether an update installs a kernel, which is used after a
      reboot. Whether a node needs a reboot for another reason is only known after the update. The
      role C(maintenance) determines this on the node.', type: bool, sample: true}
    updates:
      description:
        - The updates, sorted by package. C(old_version) is null for a package that an update
          installs in addition.
        - C(kernel) is true if the package installs a kernel.
      type: list
      elements: dict
      sample: [{package: proxmox-kernel-6.17, title: Latest Proxmox Kernel Image,
        old_version: 6.17.2-1, version: 6.17.4-1, origin: Proxmox, section: admin, kernel: true}]
missing:
  description: Nodes that could not be read, each with C(node), C(category) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: []
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.node_update_info import (
    node_update_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.update_info import run

ENTRY = ModuleEntry(run, node_update_info_spec(), name="node_update_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
