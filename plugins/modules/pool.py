#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from pool.yml: do not edit.

DOCUMENTATION = r"""
module: pool
short_description: Manage resource pools and their members
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a resource pool, and manages which VMs, containers and storages are
    its members.
  - Members that are not listed are kept unless O(exact) is set. The members themselves are never
    deleted.
  - Requests that Proxmox VE would refuse halfway are detected first, also in check mode. VMs and
    storages that do not exist are refused, although Proxmox VE accepts them as members.
  - A VM is in at most one pool. A VM in another pool is only moved with O(allow_move).
  - Needs Proxmox VE 8.1 or newer.
  - The token needs C(Pool.Allocate) and C(Pool.Audit) on C(/pool/NAME). To add or remove members,
    it also needs C(VM.Allocate) on each VM and C(Datastore.Allocate) on each storage, or
    C(Permissions.Modify) on them.
options:
  name:
    description: Name of the pool. A pool within another pool is written as V(acme/web). At most
      three levels are possible, and the parent pool must exist.
    type: str
    required: true
  state:
    description:
      - V(present) creates the pool if it does not exist, and updates settings that differ.
      - V(absent) deletes the pool. A pool with members is only deleted with O(force), and a pool
        that contains other pools is never deleted.
    type: str
    choices: [present, absent]
    default: present
  comment:
    description: Comment on the pool. An empty text removes it. By default, it is not changed.
    type: str
  vms:
    description: VMIDs of VMs and containers that must be members. By default, they are not changed.
    type: list
    elements: int
  storages:
    description: Names of storages that must be members. By default, they are not changed.
    type: list
    elements: str
  exact:
    description: Whether members that O(vms) and O(storages) do not list are removed. An empty list
      then removes all members of that kind. If one of the two options is not set, its members are
      not changed.
    type: bool
    default: false
  allow_move:
    description: Whether a VM in O(vms) that is in another pool is moved to this pool. With
      V(false), such a VM is an error.
    type: bool
    default: false
  force:
    description: Whether O(state=absent) also deletes a pool with members. The members are first
      removed from the pool. They are not deleted.
    type: bool
    default: false
  allow_self:
    description: Whether the deletion of the pool, or the removal of members, may remove privileges
      of the task's own login. With V(false), this is refused before the first write, and the
      message names the privileges.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.pool_info}, {module: pve.fleet.vm}]
"""

EXAMPLES = r"""
- name: Create a pool for a tenant
  pve.fleet.pool:
    name: globex
    comment: Globex Ltd.
    storages: [ceph]

- name: Create a pool within the pool
  pve.fleet.pool:
    name: globex/web

- name: Create a VM
  pve.fleet.vm:
    name: pooled
    node: pve1
    blank: true
  register: pooled

- name: Add the VM to the pool, and remove all other VMs from it
  pve.fleet.pool:
    name: globex/web
    vms: ["{{ pooled.vm.vmid }}"]
    exact: true

- name: Move the VM to the parent pool
  pve.fleet.pool:
    name: globex
    vms: ["{{ pooled.vm.vmid }}"]
    allow_move: true

- name: Delete the inner pool, which is empty
  pve.fleet.pool:
    name: globex/web
    state: absent

- name: Delete the pool, and keep its VMs and storages
  pve.fleet.pool:
    name: globex
    state: absent
    force: true
"""

RETURN = r"""
pool:
  description:
    - The pool as it is afterwards, or in check mode as it would be.
    - It is null if the pool is deleted.
    - RV(pve.fleet.pool_info#module:pools) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Add VM 10001 to pool 'acme']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: in a pool, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.pool import (
    pool_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.pool import POOL

ENTRY = ModuleEntry(partial(run, POOL), pool_spec(), name="pool")
main = ENTRY.main

if __name__ == "__main__":
    main()
