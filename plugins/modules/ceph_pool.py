#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ceph_pool.yml: do not edit.

DOCUMENTATION = r"""
module: ceph_pool
short_description: Manage pools of Ceph
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a pool of the Ceph cluster that Proxmox VE runs. Fails with the
    category C(NotSupported) without Ceph.
  - A pool is deleted only if no storage is on it. With O(remove_storages), no guest or job may use
    these storages.
  - An unknown CRUSH rule and a second application are refused before the first write.
  - The token needs C(Sys.Modify) and C(Sys.Audit) on C(/), and C(Datastore.Allocate) on C(/storage)
    for O(add_storages) and O(remove_storages).
options:
  name:
    description: Name of the pool.
    type: str
    required: true
  node:
    description: Node with Ceph that runs the task. By default, the first online node with Ceph.
    type: str
  state:
    description: V(present) creates the pool or updates settings that differ, V(absent) deletes the
      pool with all its data.
    type: str
    choices: [present, absent]
    default: present
  size:
    description: Number of copies of each object, from 1 to 7. By default, V(3) for a new pool.
      Otherwise it is not changed.
    type: int
  min_size:
    description: Number of copies below which Ceph stops writing, from 1 to O(size). By default,
      V(2) for a new pool. Ceph chooses a new value if O(size) changes.
    type: int
  pg_num:
    description: Number of placement groups. By default, V(128) for a new pool. Otherwise it is not
      changed. Omit it with O(pg_autoscale_mode=on), because Ceph then changes it.
    type: int
  pg_num_min:
    description: Minimum number of placement groups that Ceph chooses. By default, it is not
      changed.
    type: int
  pg_autoscale_mode:
    description: Whether Ceph changes the number of placement groups (V(on)), warns (V(warn)), or
      does neither (V(off)). By default, V(warn) for a new pool. Otherwise it is not changed.
    type: str
    choices: ['on', 'off', warn]
  target_size:
    description: Expected size of the data, such as V(2T), from which Ceph computes placement
      groups. V(0) removes it. By default, it is not changed.
    type: str
  target_size_ratio:
    description: Expected share of the pool among the pools with a ratio. V(0) removes it. By
      default, it is not changed.
    type: float
  crush_rule:
    description: Name of a CRUSH rule that exists. By default, Ceph chooses the rule of a new pool.
      Otherwise it is not changed.
    type: str
  application:
    description: Use of the pool. By default, V(rbd) for a new pool. It can only be set if the pool
      has none, and cannot be changed.
    type: str
    choices: [rbd, cephfs, rgw]
  erasure_coding:
    description:
      - Creates an erasure-coded pool. Proxmox VE creates two pools for it, C(NAME-data) with the
        erasure code and C(NAME-metadata) with O(size), O(min_size) and O(crush_rule). Each is
        changed and deleted by its own name.
      - By default, a new pool is replicated.
    type: dict
    suboptions:
      k:
        description: Number of data chunks, at least 2.
        type: int
        required: true
      m:
        description: Number of coding chunks, at least 1.
        type: int
        required: true
      failure_domain:
        description: CRUSH failure domain. By default, V(host).
        type: str
      device_class:
        description: Device class of the OSDs. By default, all OSDs.
        type: str
      profile:
        description: Ceph profile to use instead. By default, Proxmox VE creates one.
        type: str
  add_storages:
    description: Whether a new pool also becomes a storage with the same name. By default, V(true)
      with O(erasure_coding), otherwise V(false).
    type: bool
  remove_storages:
    description: Whether O(state=absent) also removes the storages on the pool. Otherwise, a pool
      with storages is not deleted.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.ceph_pool_info}, {module: pve.fleet.storage}]
"""

EXAMPLES = r"""
- name: Read the pools, if the cluster has Ceph
  pve.fleet.ceph_pool_info:
  register: found
  ignore_errors: true

- name: Create a pool with a storage of the same name
  pve.fleet.ceph_pool:
    name: fast
    pg_autoscale_mode: 'on'
    target_size: 2T
    add_storages: true
  when: found is success

- name: Delete the pool and its storage
  pve.fleet.ceph_pool:
    name: fast
    state: absent
    remove_storages: true
  when: found is success
"""

RETURN = r"""
ceph_pool:
  description: The pool as it is afterwards, or in check mode as it would be. It is null if the pool
    is deleted. RV(pve.fleet.ceph_pool_info#module:ceph_pools) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create Ceph pool 'fast']
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Create Ceph pool 'fast']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: in use, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ceph_pool import (
    ceph_pool_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.ceph.run import (
    run_pool,
)

ENTRY = ModuleEntry(run_pool, ceph_pool_spec(), name="ceph_pool")
main = ENTRY.main

if __name__ == "__main__":
    main()
