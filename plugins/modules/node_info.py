#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_info.yml: do not edit.

DOCUMENTATION = r"""
module: node_info
short_description: Gather information about the nodes of a cluster
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the nodes of a cluster with their status, usage, storages, VMs, health and remaining
    capacity.
  - The module sends four requests, independent of the number of nodes, and with O(details) or
    O(node) one more for each returned node that is online.
  - An offline node, or a part for which the caller lacks permission, never fails the task. Its
    values are null, RV(missing) or RV(nodes[].error) has the reason, and a warning is shown.
options:
  node:
    description: Only this node. It is an error if it is not in the cluster.
    type: str
  details:
    description:
      - Whether to query each node for its CPU model, load, kernel and version, and for its current
        usage. Without details, the usage can be ten seconds old.
      - By default, only O(node) is queried.
    type: bool
  cpu_overcommit:
    description:
      - Overcommit factor for the cores of a node.
      - This and the next three options have the same meaning as in
        O(pve.fleet.vm#module:placement).
    type: float
    default: 4.0
  memory_overcommit:
    description: Overcommit factor for the memory of a node.
    type: float
    default: 1.0
  min_free_memory:
    description: Memory that must stay free on a node, such as V(4G). A bare number is MiB.
    type: raw
  max_vms_per_node:
    description: Maximum number of VMs on a node, as one number or as a dictionary by node.
    type: raw
  memory_warn:
    description: Memory usage in percent from which a node gets a warning.
    type: int
    default: 90
  storage_warn:
    description: Usage in percent from which a storage or root file system gets a warning.
    type: int
    default: 90
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.cluster_info}]
"""

EXAMPLES = r"""
- name: Read all nodes
  pve.fleet.node_info:
  register: estate

- name: Show unhealthy nodes and the reasons
  ansible.builtin.debug:
    msg: "{{ item.node }}: {{ item.health.reasons | join(', ') }}"
  loop: "{{ estate.nodes | rejectattr('health.status', 'eq', 'ok') }}"
  loop_control:
    label: "{{ item.node }}"

- name: Check that four more VMs with 8 GiB fit on the node, with 8 GiB kept free
  pve.fleet.node_info:
    node: pve1
    min_free_memory: 8G
    max_vms_per_node: 40
  register: pve1
  failed_when: pve1.nodes[0].capacity is none or pve1.nodes[0].capacity.memory_left < 4 * 8 * 1024
    ** 3
"""

RETURN = r"""
nodes:
  description: The nodes, sorted by name. The usage of an offline node is null.
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: Name of the node., type: str, sample: pve1}
    status: {description: 'V(online), V(offline), or V(unknown) if the caller lacks permission.',
      type: str, sample: online}
    ip: {description: Address in the cluster network., type: str, sample: 10.99.0.11}
    nodeid: {description: Number of the node in the cluster., type: int, sample: 1}
    uptime: {description: Seconds since the node was started., type: int, sample: 86400}
    version: {description: Version of Proxmox VE. Without O(details) it is known only for the node
      that answers the request., type: str, sample: 9.2.11}
    kernel: {description: 'Kernel version, with O(details).', type: str, sample: 6.14.11-4-pve}
    maintenance: {description: Whether the node is in the HA manager's maintenance mode.,
      type: bool, sample: false}
    ha_state: {description: State of the node in the HA manager. Null if HA is not in use.,
      type: str, sample: online}
    cpu:
      description:
        - C(cores) and C(used), the load as a share of 1. With O(details) also C(model) and
          C(loadavg) of 1, 5 and 15 minutes.
      type: dict
      sample: {cores: 16, used: 0.12, model: null, loadavg: null}
    memory: {description: 'C(total), C(used) and C(free) in bytes.', type: dict, sample:
      {total: 68719476736, used: 1610612736, free: 67108864000}}
    disk: {description: 'The root file system, with C(total), C(used) and C(free) in bytes.',
      type: dict, sample: {total: 270553174016, used: 30928461824, free: 239624712192}}
    storages:
      description:
        - Storages of the node, each with C(storage), C(kind), C(shared), C(content), C(available),
          and C(total), C(used) and C(free) in bytes.
      type: list
      elements: dict
      sample: [{storage: ceph, kind: rbd, shared: true, content: [images], available: true,
        total: 40, used: 30, free: 10}]
    vms: {description: 'Number of VMs that are C(running), C(stopped) and in C(other) states, the
      C(total), and the number of C(templates).', type: dict, sample: {total: 3, running: 2,
      stopped: 1, other: 0, templates: 1}}
    containers: {description: Number of containers on the node., type: int, sample: 0}
    capacity:
      description:
        - Resources that are allocated to VMs and containers, and resources that remain under the
          placement rules, with C(memory_given) and C(memory_left) in bytes, C(cores_given),
          C(cores_left), and C(vms_left), the number of further guests, which is null without
          O(max_vms_per_node).
        - Proxmox VE lists a container without C(cores) with all cores of its node.
        - C(cpu_overcommit) and C(memory_overcommit) are the factors of the rules. With 4 for cores,
          960 cores can be allocated on a node with 240 cores.
        - Every VM counts, whether it runs or not. A negative value means that more is allocated
          than the rules allow.
        - Null if the node is not online.
      type: dict
      sample: {memory_given: 6442450944, memory_left: 62277025792, cores_given: 6, cores_left: 58,
        vms_left: null, cpu_overcommit: 4.0, memory_overcommit: 1.0}
    health: {description: 'Health as C(status), V(ok), V(warning), V(critical) or V(unknown), and
      its C(reasons).', type: dict, sample: {status: ok, reasons: []}}
    error: {description: 'Why the details could not be read, else null.', type: str, sample: null}
quorate:
  description: Whether the cluster has a quorum. Null if the caller lacks permission.
  returned: success
  type: bool
  sample: true
missing:
  description: Parts that could not be read, each with C(part), C(category) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: []
checked:
  description: Time of the query in ISO 8601 format, UTC.
  returned: success
  type: str
  sample: '2026-11-20T20:15:33Z'
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.node_info import (
    node_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.node_info import run

ENTRY = ModuleEntry(run, node_info_spec(), names={"max_vms_per_node": "node"}, name="node_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
