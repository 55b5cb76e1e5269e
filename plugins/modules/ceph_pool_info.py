#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ceph_pool.yml: do not edit.

DOCUMENTATION = r"""
module: ceph_pool_info
short_description: Gather information about pools of Ceph
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one pool of Ceph or all of them. Fails with the category C(NotSupported) without Ceph.
  - The token needs C(Sys.Audit) on C(/).
options:
  name:
    description: Name of one pool. By default, all pools are returned.
    type: str
  node:
    description: Node with Ceph to query. By default, the first online node with Ceph.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.ceph_pool}]
"""

EXAMPLES = r"""
- name: Read all pools, if the cluster has Ceph
  pve.fleet.ceph_pool_info:
  register: known
  ignore_errors: true

- name: Show the pools without a second copy
  ansible.builtin.debug:
    msg: "{{ known.ceph_pools | selectattr('size', 'lt', 2) | map(attribute='name') }}"
  when: known is success
"""

RETURN = r"""
ceph_pools:
  description: The pools, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: fast}
    size: {description: Number of copies., type: int, sample: 3}
    min_size: {description: Number of copies below which Ceph stops writing., type: int, sample: 2}
    pg_num: {description: Number of placement groups., type: int, sample: 128}
    pg_num_min: {description: 'Minimum number of placement groups, 0 if it is not set.', type: int,
      sample: 0}
    pg_autoscale_mode: {description: 'V(on), V(off) or V(warn).', type: str, sample: warn}
    target_size: {description: 'Expected size in bytes, 0 if it is not set.', type: int, sample: 0}
    target_size_ratio: {description: 'Expected share, 0 if it is not set.', type: float, sample: 0}
    crush_rule: {description: Its CRUSH rule., type: str, sample: replicated_rule}
    application: {description: 'Its use, several separated by commas.', type: str, sample: rbd}
    type: {description: 'V(replicated), V(erasure) or V(unknown).', type: str, sample: replicated}
    used: {description: Bytes in use., type: int, sample: 1073741824}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ceph_pool import (
    ceph_pool_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.ceph.run import (
    run_pool_info,
)

ENTRY = ModuleEntry(run_pool_info, ceph_pool_info_spec(), name="ceph_pool_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
