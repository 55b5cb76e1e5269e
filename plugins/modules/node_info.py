#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_info
short_description: Tell about the nodes of a cluster
version_added: "0.1.0"
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Returns the nodes of a cluster with their state, figures, storages, VMs, health, and the room that is left.
  - It makes four requests however many nodes there are, and with O(details) or O(node) one more for each node that is
    told of and online.
  - A node that is down, and a part that the caller may not see, leave gaps in the result, a reason in RV(missing) or
    RV(nodes[].error), and a warning; they never fail the task.
extends_documentation_fragment:
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
options:
  node:
    description: Only this node. One that the cluster does not have is an error.
    type: str
  details:
    description:
      - Whether each node is asked itself, for its CPU model, load, kernel and version, and for figures that are not up
        to ten seconds old as those of the listing are.
      - Left out, O(node) is asked, and without it none is.
    type: bool
  cpu_overcommit:
    description:
      - How often each core of a node may be given to VMs.
      - This and the next three are meant as in O(pve.fleet.vm#module:placement).
    type: float
    default: 4.0
  memory_overcommit:
    description: How often the memory of a node may be given to VMs.
    type: float
    default: 1.0
  min_free_memory:
    description: Memory of a node that nobody may use, such as V(4G). A bare number is MiB.
    type: raw
  max_vms_per_node:
    description: How many VMs a node may have.
    type: int
  memory_warn:
    description: From what share of memory in use on, in percent, a node is worth a warning.
    type: int
    default: 90
  storage_warn:
    description: From what share in use on, in percent, a storage or root file system is worth a warning.
    type: int
    default: 90
seealso:
  - module: pve.fleet.cluster_info
"""

EXAMPLES = r"""
- name: All nodes
  pve.fleet.node_info:
  register: estate

- name: Nodes that are not well, and why
  ansible.builtin.debug:
    msg: "{{ item.node }}: {{ item.health.reasons | join(', ') }}"
  loop: "{{ estate.nodes | rejectattr('health.status', 'eq', 'ok') }}"
  loop_control:
    label: "{{ item.node }}"

- name: Is there room for four more VMs of 8 GiB on the node, if it keeps 8 GiB for itself?
  pve.fleet.node_info:
    node: pve1
    min_free_memory: 8G
    max_vms_per_node: 40
  register: pve1
  failed_when: pve1.nodes[0].capacity is none or pve1.nodes[0].capacity.memory_left < 4 * 8 * 1024 ** 3
"""

RETURN = r"""
nodes:
  description: The nodes, sorted by name. Figures of a node that is down are null.
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: Its name., type: str, sample: pve1}
    status:
      description: V(online), V(offline), or V(unknown) where the caller may not see it.
      type: str
      sample: online
    ip: {description: Its address in the cluster network., type: str, sample: 10.99.0.11}
    nodeid: {description: Its number in the cluster., type: int, sample: 1}
    uptime: {description: Seconds since it was started., type: int, sample: 86400}
    version:
      description: The version of Proxmox VE. Of nodes that are not asked, see O(details), only that of the one that
        answers the listing is known.
      type: str
      sample: 9.2.11
    kernel: {description: "Its kernel, with O(details).", type: str, sample: 6.14.11-4-pve}
    maintenance: {description: Whether it is in the HA manager's maintenance mode., type: bool, sample: false}
    ha_state:
      description: What the HA manager thinks of it. Null as long as nothing is under HA.
      type: str
      sample: online
    cpu:
      description:
        - C(cores) and C(used), the load as a share of 1. With O(details) also C(model) and C(loadavg) of 1, 5 and 15
          minutes.
      type: dict
      sample: {cores: 16, used: 0.12, model: null, loadavg: null}
    memory:
      description: C(total), C(used) and C(free) in bytes.
      type: dict
      sample: {total: 68719476736, used: 1610612736, free: 67108864000}
    disk:
      description: The root file system, with C(total), C(used) and C(free) in bytes.
      type: dict
      sample: {total: 270553174016, used: 30928461824, free: 239624712192}
    storages:
      description:
        - Its storages, each with C(storage), C(kind), C(shared), C(content), C(available), and C(total), C(used) and
          C(free) in bytes.
      type: list
      elements: dict
      sample:
        - {storage: ceph, kind: rbd, shared: true, content: [images], available: true, total: 40, used: 30, free: 10}
    vms:
      description: How many VMs are C(running), C(stopped) and in C(other) states, the C(total), and the C(templates).
      type: dict
      sample: {total: 3, running: 2, stopped: 1, other: 0, templates: 1}
    containers: {description: How many containers it has., type: int, sample: 0}
    capacity:
      description:
        - What VMs were given and what is left under the placement rules, with C(memory_given) and C(memory_left) in
          bytes, C(cores_given), C(cores_left), and C(vms_left), which is null without O(max_vms_per_node).
        - Every VM counts, also one that does not run. A figure below 0 says that more is on the node than the rules
          allow.
        - It is null for a node that is not online.
      type: dict
      sample: {memory_given: 6442450944, memory_left: 62277025792, cores_given: 6, cores_left: 58, vms_left: null}
    health:
      description: The verdict V(ok), V(warning), V(critical) or V(unknown) as C(status), and all C(reasons) for it.
      type: dict
      sample: {status: ok, reasons: []}
    error: {description: "Why it could not tell its details, else null.", type: str, sample: null}
quorate:
  description: Whether the cluster has a quorum. Null where the caller may not see that.
  returned: success
  type: bool
  sample: true
missing:
  description: The parts that could not be read, each with C(part), C(category) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: []
checked:
  description: When this was looked at, as ISO 8601 in UTC.
  returned: success
  type: str
  sample: "2026-11-20T20:15:33Z"
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry import Entry
from ansible_collections.pve.fleet.plugins.module_utils._estate.node_info import gather as run
from ansible_collections.pve.fleet.plugins.module_utils._spec.estate import node_info_spec

ENTRY = Entry(run, node_info_spec())


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
