#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster_join_info.yml: do not edit.

DOCUMENTATION = r"""
module: cluster_join_info
short_description: Gather information for joining a cluster
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the address and the fingerprint that C(pvecm add) needs, and the links and votes of each
    node. One request is made.
  - The token needs C(Sys.Audit) on C(/).
options:
  node:
    description: Node to which the new node connects. By default, the node that answers.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.cluster_info}, {module: pve.fleet.node_info}]
"""

EXAMPLES = r"""
- name: Read the information for joining the cluster
  pve.fleet.cluster_join_info:
  register: found

- name: Show the command for the new node
  ansible.builtin.debug:
    msg: pvecm add {{ join.address }} --fingerprint {{ join.fingerprint }}
  vars:
    join: "{{ found.cluster_join }}"
"""

RETURN = r"""
cluster_join:
  description: The cluster. Null for a node without a cluster.
  returned: success
  type: dict
  contains:
    name: {description: Name of the cluster., type: str, sample: demo}
    node: {description: Node to which the new node connects., type: str, sample: pve1}
    address: {description: Its address., type: str, sample: 10.99.0.11}
    fingerprint: {description: SHA-256 fingerprint of its certificate., type: str}
    nodes: {description: 'The nodes, sorted by name. C(links) contains the address of each corosync
      link by its number.', type: list, elements: dict, sample: [{node: pve1, nodeid: 1, votes: 1,
      address: 10.99.0.11, fingerprint: 'AB:CD', links: {'0': 10.99.0.11}}]}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.cluster_join_info import (
    cluster_join_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.join_info import run

ENTRY = ModuleEntry(run, cluster_join_info_spec(), names={"node": "node"}, name="cluster_join_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
