#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster_info.yml: do not edit.

DOCUMENTATION = r"""
module: cluster_info
short_description: Gather information about a cluster, its health and its usage by tenant
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns name, quorum, version, nodes, storages, the resources of each tenant, HA, the last
    failed tasks, and the health of the cluster with the reasons.
  - The module sends six requests, independent of the size of the cluster, and with O(networks) one
    more for each online node.
  - An offline node, or a part for which the caller lacks permission, never fails the task. Its
    values are null, RV(cluster.missing) has the reason, and a warning is shown.
options:
  networks:
    description: Whether to read the network interfaces of the nodes.
    type: bool
    default: false
  failed_tasks:
    description: Maximum number of failed tasks to return.
    type: int
    default: 10
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  storage_warn:
    description: Usage in percent from which a storage gets a warning.
    type: int
    default: 90
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.node_info}]
"""

EXAMPLES = r"""
- name: Read the state of the cluster
  pve.fleet.cluster_info:
  register: estate

- name: Stop if the cluster is not healthy
  ansible.builtin.assert:
    that: estate.cluster.health.status in ['ok', 'warning']
    fail_msg: "{{ estate.cluster.health.reasons | join('; ') }}"

- name: Show the resources of each tenant
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
    name: {description: Name of the cluster. Null for a single node., type: str, sample: demo}
    version: {description: Version of Proxmox VE on the node that answers., type: str,
      sample: 9.2.11}
    quorate: {description: Whether it has a quorum. Null if unknown., type: bool, sample: true}
    nodes:
      description:
        - Nodes of the cluster, with C(node), C(status), C(ip), C(nodeid), C(cores), C(memory),
          C(memory_used), C(uptime), C(ha_state) and C(maintenance). M(pve.fleet.node_info) returns
          more.
      type: list
      elements: dict
      sample: [{node: pve1, status: online, ip: 10.99.0.11, nodeid: 1, maintenance: false}]
    storages:
      description:
        - Each storage once, with C(storage), C(kind), C(shared), C(content), C(nodes),
          C(unavailable_on), and C(total), C(used) and C(free) in bytes. Sizes of a local storage
          are sums over its nodes.
      type: list
      elements: dict
      sample: [{storage: ceph, kind: rbd, shared: true, nodes: [pve1, pve2], unavailable_on: []}]
    networks: {description: Interfaces of each node that is online. Null without O(networks).,
      type: dict, sample: {pve1: [{iface: vmbr0, type: bridge, active: 1}]}}
    totals: {description: 'Number of C(vms) and of C(containers), and C(cores), C(memory) and
      C(disk) of all guests that are visible to the caller.', type: dict, sample: {vms: {total: 3,
      running: 2, stopped: 1, other: 0, templates: 1}, containers: {total: 1, running: 1,
      stopped: 0, other: 0, templates: 0}, cores: 6, memory: 6442450944, disk: 0}}
    containers: {description: Number of containers., type: int, sample: 1}
    pools: {description: Resource pools that are visible to the caller., type: list, elements: str,
      sample: [acme]}
    tenants:
      description:
        - The same values for each tenant, by its ID. C(memory) and C(disk) are in bytes. C(disk)
          only includes the system disk of each guest, because the listing of Proxmox VE does not
          contain other disks.
      type: dict
      sample:
        acme:
          vms:
            total: 2
            running: 2
            stopped: 0
            other: 0
            templates: 0
          containers:
            total: 1
            running: 1
            stopped: 0
            other: 0
            templates: 0
          cores: 4
          memory: 4294967296
    untenanted: {description: 'The same values for guests without a tenant''s tag, and their
      C(vmids).', type: dict, sample: {cores: 0, memory: 0, disk: 0, vmids: []}}
    ambiguous: {description: 'The same values for guests with the tags of several tenants, and their
      C(vmids).', type: dict, sample: {cores: 0, memory: 0, disk: 0, vmids: []}}
    ha:
      description:
        - C(quorate), C(master), C(fencing), C(resource_mode), the C(nodes) with their state, and
          the C(services) with C(sid), C(node), C(state), C(request_state) and C(status). Null if it
          could not be read.
        - C(fencing) is the state of M(pve.fleet.ha_state). A disarmed HA manager is a reason in
          C(health).
      type: dict
      sample: {quorate: true, master: pve1, fencing: armed, resource_mode: null, nodes:
        {pve1: online}, services: []}
    failed_tasks: {description: 'The last failed tasks, newest first.', type: list, elements: dict,
      sample: [{node: pve1, type: qmstart, id: '100', ended: '2026-11-20T20:15:33Z', status: VM 100
      already running}]}
    health:
      description:
        - Health as C(status), V(ok), V(warning), V(critical) or V(unknown), and its C(reasons).
          Without a quorum it is V(critical).
      type: dict
      sample: {status: ok, reasons: []}
    missing: {description: 'Parts that could not be read, each with C(part), C(category) and
      C(reason).', type: list, elements: dict, sample: []}
    checked: {description: 'Time of the query in ISO 8601 format, UTC.', type: str,
      sample: '2026-11-20T20:15:33Z'}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.cluster_info import (
    cluster_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.cluster_info import (
    run,
)

ENTRY = ModuleEntry(run, cluster_info_spec(), name="cluster_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
