#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: vms
short_description: Make many virtual machines what they should be, in one task
version_added: "0.1.0"
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Takes a list of VMs with the options of M(pve.fleet.vm), and the same options once for all of them. Each VM is
    treated as M(pve.fleet.vm) treats it.
  - The cluster is read once, and one plan is made for all VMs. Nodes, VMIDs and quotas are decided for the whole
    list, so that limits, affinity and anti-affinity hold among the new VMs too.
  - The plan is carried out side by side, with no more tasks of Proxmox VE at once than O(parallel) and the options
    beside it allow. Where Proxmox VE has no answer or a lock is not free in time, fewer go on at once for a while.
  - A list with a mistake in it is refused as a whole, before anything is changed. Later a VM that fails does not stop
    the others. The task fails at the end, and a second run completes what is missing.
  - Where several runs make a VM of the same name and tenant at the same time, one of the VMs stays, and all of the runs
    go on with that one.
extends_documentation_fragment:
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
  - pve.fleet.fleet_item
  - pve.fleet.vm_options
  - pve.fleet.vm_options.guest
  - pve.fleet.vm_options.life
options:
  vms:
    description:
      - The VMs. Each needs a name or a VMID.
      - What a VM says wins over its class, and its class wins over what is said for all. Dictionaries are merged,
        tags add up, and other lists such as O(disks) and O(nics) are replaced.
    type: list
    elements: dict
    required: true
  prune:
    description:
      - Whether VMs are removed, with their disks, that are not in the list and bear exactly the tag of O(tenant), are
        in O(pool), or both where both are given. One of them must be given for all VMs.
      - Templates and VMs with protection are never removed. The latter are an error.
      - A new VM whose name differs from that of a VM that would be removed in nothing but upper and lower case is an
        error.
      - Nothing is removed when the list is empty, or when a VM of the list fails. Each VM is looked at once more
        right before.
    type: bool
    default: false
  parallel:
    description: Most tasks of Proxmox VE that go on at once, 0 for no limit.
    type: int
    default: 32
  parallel_per_node:
    description: Most tasks at once on one node, 0 for no limit. A clone is a task of the node that its source is on.
    type: int
    default: 4
  parallel_per_storage:
    description: Most VMs whose disks are made on one storage at once, 0 for no limit.
    type: int
    default: 0
  parallel_per_template:
    description: Most clones at once of one template or VM, 0 for no limit.
    type: int
    default: 4
seealso:
  - module: pve.fleet.vm
  - module: pve.fleet.vm_info
"""

EXAMPLES = r"""
- name: Web servers of tenant acme, on different nodes as far as possible, and a database
  pve.fleet.vms:
    tenant: acme
    source: debian-13
    state: started
    cores: 2
    memory: 4G
    placement:
      anti_affinity: [web]
      affinity_policy: preferred
    vms:
      - {name: web1, tags: [web]}
      - {name: web2, tags: [web]}
      - {name: web3, tags: [web]}
      - {name: db1, tags: [db], cores: 8, memory: 32G}

- name: Exactly these VMs; others of the tenant are removed
  pve.fleet.vms:
    tenant: acme
    prune: true
    vms:
      - {name: web1, source: debian-13, cores: 2, memory: 4G}
      - {name: web2, source: debian-13, cores: 2, memory: 4G}
  register: fleet

- name: Which VMs were removed
  ansible.builtin.debug:
    msg: "{{ fleet.vms | selectattr('pruned') | map(attribute='name') }}"
"""

RETURN = r"""
vms:
  description: The VMs in the order of the list, behind them those that O(prune) removed. Also returned when VMs failed.
  returned: always, unless the list was refused
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: web1}
    vmid: {description: Its number. In check mode the one it would get., type: int, sample: 10000}
    node: {description: The node it is on., type: str, sample: pve1}
    tenant: {description: Its tenant as wished., type: str, sample: acme}
    action:
      description: V(created), V(changed), V(removed), V(unchanged), V(failed), or V(kept) for one not pruned.
      type: str
      sample: created
    changed: {description: Whether anything was or would be changed., type: bool, sample: true}
    failed: {description: Whether it failed., type: bool, sample: false}
    pruned: {description: Whether it was not in the list., type: bool, sample: false}
    msg: {description: Why it failed., type: str, returned: when it failed}
    error: {description: "The same, see RV(pve.fleet.vm#module:error).", type: dict, returned: when it failed}
    vm: {description: "The VM, see RV(pve.fleet.vm#module:vm).", type: dict}
    plan: {description: "Its steps in words.", type: list, elements: str}
    done: {description: The steps that were carried out., type: list, elements: str}
    pending: {description: Options that wait for a stop., type: list, elements: str}
    placement: {description: "Where it goes and why, see RV(pve.fleet.vm#module:placement).", type: dict}
    conditions: {description: "See RV(pve.fleet.vm#module:conditions).", type: list, elements: dict}
summary:
  description: How many VMs came to what.
  returned: always, unless the list was refused
  type: dict
  sample: {created: 20, changed: 1, removed: 0, unchanged: 3, failed: 0, kept: 0}
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: foreign tenant
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry import Entry
from ansible_collections.pve.fleet.plugins.module_utils._fleet.converge import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.fleet import fleet_spec
from ansible_collections.pve.fleet.plugins.module_utils._vm.estate import class_secrets

ENTRY = Entry(run, fleet_spec(), secrets=class_secrets)


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
