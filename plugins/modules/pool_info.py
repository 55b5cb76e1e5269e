#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from pool.yml: do not edit.

DOCUMENTATION = r"""
module: pool_info
short_description: Gather information about resource pools
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one resource pool or all of them, each with its members.
  - One pool takes one request. All pools take one request for the list, and one more for each pool.
  - Needs Proxmox VE 8.1 or newer. The list contains the pools on which the token has C(Pool.Audit).
    Proxmox VE shows a single pool and its members to every user who names it.
options:
  name:
    description: Name of one pool, such as V(acme/web). By default, all pools are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.pool}]
"""

EXAMPLES = r"""
- name: Read one pool
  pve.fleet.pool_info:
    name: acme
  register: acme

- name: Read all pools
  pve.fleet.pool_info:
  register: all_pools

- name: List the pools without members
  ansible.builtin.debug:
    msg: "{{ all_pools.pools | rejectattr('vms') | rejectattr('storages') | map(attribute='name')
      }}"
"""

RETURN = r"""
pools:
  description: The pools, sorted by name. Empty if there is no pool of that name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: acme/web}
    parent: {description: 'The parent pool, null for none.', type: str, sample: acme}
    comment: {description: Its comment., type: str, sample: ''}
    vms: {description: The VMIDs of the VMs and containers in it., type: list, elements: int,
      sample: [10000, 10001]}
    storages: {description: The storages in it., type: list, elements: str, sample: [ceph]}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.pool import (
    pool_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.pool import POOL

ENTRY = ModuleEntry(partial(run_info, POOL), pool_info_spec(), name="pool_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
