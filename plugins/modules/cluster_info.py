#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: cluster_info
short_description: Tell about a cluster, its health and who uses how much of it
version_added: "0.1.0"
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Returns name, quorum, version, nodes, storages, the resources of each tenant, HA, the last tasks that failed, and a
    verdict on the health of the cluster with its reasons.
  - It makes six requests however large the cluster is, and with O(networks) one more for each node that is online.
  - A node that is down, and a part that the caller may not see, leave gaps in the result, a reason in
    RV(cluster.missing), and a warning; they never fail the task.
extends_documentation_fragment:
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
options:
  networks:
    description: Whether the network interfaces of the nodes are read too.
    type: bool
    default: false
  failed_tasks:
    description: How many of the last tasks that failed are told, at most.
    type: int
    default: 10
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  storage_warn:
    description: From what share in use on, in percent, a storage is worth a warning.
    type: int
    default: 90
seealso:
  - module: pve.fleet.node_info
"""

EXAMPLES = r"""
- name: How the cluster fares
  pve.fleet.cluster_info:
  register: estate

- name: Stop where it is not well
  ansible.builtin.assert:
    that: estate.cluster.health.status in ['ok', 'warning']
    fail_msg: "{{ estate.cluster.health.reasons | join('; ') }}"

- name: What each tenant has
  ansible.builtin.debug:
    msg: "{{ item.key }}: {{ item.value.vms.total }} VMs, {{ item.value.memory | human_readable }}"
  loop: "{{ estate.cluster.tenants | dict2items }}"
  loop_control:
    label: "{{ item.key }}"
"""

RETURN = r"""
cluster:
  description: The cluster.
  returned: success
  type: dict
  contains:
    name: {description: "Its name, null for a single node.", type: str, sample: demo}
    version: {description: The version of Proxmox VE of the node that answers., type: str, sample: 9.2.11}
    quorate: {description: "Whether it has a quorum, null where that is not known.", type: bool, sample: true}
    nodes:
      description:
        - Its nodes in short, with C(node), C(status), C(ip), C(nodeid), C(cores), C(memory), C(memory_used), C(uptime),
          C(ha_state) and C(maintenance). M(pve.fleet.node_info) tells more.
      type: list
      elements: dict
      sample: [{node: pve1, status: online, ip: 10.99.0.11, nodeid: 1, maintenance: false}]
    storages:
      description:
        - Each storage once, with C(storage), C(kind), C(shared), C(content), C(nodes), C(unavailable_on), and C(total),
          C(used) and C(free) in bytes. The figures of a local storage are sums over its nodes.
      type: list
      elements: dict
      sample: [{storage: ceph, kind: rbd, shared: true, nodes: [pve1, pve2], unavailable_on: []}]
    networks:
      description: The interfaces of each node that is online, null without O(networks).
      type: dict
      sample: {pve1: [{iface: vmbr0, type: bridge, active: 1}]}
    totals:
      description: Counts of C(vms), and C(cores), C(memory) and C(disk) of all VMs that the caller may see.
      type: dict
      sample: {vms: {total: 3, running: 2, stopped: 1, other: 0, templates: 1}, cores: 6, memory: 6442450944, disk: 0}
    containers: {description: How many containers there are., type: int, sample: 0}
    pools: {description: The resource pools that the caller may see., type: list, elements: str, sample: [acme]}
    tenants:
      description:
        - The same figures for each tenant, by its id. C(memory) and C(disk) are bytes; C(disk) counts boot disks only,
          because the listing of Proxmox VE knows no others.
      type: dict
      sample: {acme: {vms: {total: 2, running: 2, stopped: 0, other: 0, templates: 0}, cores: 4, memory: 4294967296}}
    untenanted:
      description: The same figures for VMs without a tenant's tag, and their C(vmids).
      type: dict
      sample: {cores: 0, memory: 0, disk: 0, vmids: []}
    ambiguous:
      description: The same figures for VMs with the tags of several tenants, and their C(vmids).
      type: dict
      sample: {cores: 0, memory: 0, disk: 0, vmids: []}
    ha:
      description:
        - C(quorate), C(master), C(fencing), the C(nodes) with their state, and the C(services) with C(sid), C(node),
          C(state), C(request_state) and C(status). It is null where it could not be read.
      type: dict
      sample: {quorate: true, master: pve1, fencing: armed, nodes: {pve1: online}, services: []}
    failed_tasks:
      description: The last tasks that failed, the newest first.
      type: list
      elements: dict
      sample: [{node: pve1, type: qmstart, id: "100", ended: "2026-11-20T20:15:33Z", status: VM 100 already running}]
    health:
      description:
        - The verdict V(ok), V(warning), V(critical) or V(unknown) as C(status), and all C(reasons) for it. Without a
          quorum it is critical.
      type: dict
      sample: {status: ok, reasons: []}
    missing:
      description: The parts that could not be read, each with C(part), C(category) and C(reason).
      type: list
      elements: dict
      sample: []
    checked: {description: "When this was looked at, as ISO 8601 in UTC.", type: str, sample: "2026-11-20T20:15:33Z"}
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry import Entry
from ansible_collections.pve.fleet.plugins.module_utils._estate.cluster_info import gather as run
from ansible_collections.pve.fleet.plugins.module_utils._spec.estate import cluster_info_spec

ENTRY = Entry(run, cluster_info_spec())


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
