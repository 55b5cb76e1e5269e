#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ceph_daemon.yml: do not edit.

DOCUMENTATION = r"""
module: ceph_mgr
short_description: Manage managers of Ceph
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates or deletes a manager of Ceph on a node. Fails with the category C(NotSupported) on a
    node without Ceph.
  - The last running manager is not deleted unless O(force) is set.
  - The name of a manager on another node is refused before the first write.
  - The token needs C(Sys.Modify) and C(Sys.Audit) on C(/).
options:
  node:
    description: Node of the daemon. Ceph must be installed on it.
    type: str
    required: true
  name:
    description: Name of the daemon. By default, the name of the node.
    type: str
  state:
    description: V(present) creates the daemon if it is missing, V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Whether V(absent) also deletes a daemon that Ceph needs.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.ceph_mon}, {module: pve.fleet.ceph_mds}]
"""

EXAMPLES = r"""
- name: Read the pools, if the cluster has Ceph
  pve.fleet.ceph_pool_info:
  register: found
  ignore_errors: true

- name: Run a second manager
  pve.fleet.ceph_mgr:
    node: pve2
  when: found is success

- name: Delete it
  pve.fleet.ceph_mgr:
    node: pve2
    state: absent
    force: true
  when: found is success
"""

RETURN = r"""
ceph_mgr:
  description: The daemon as it is afterwards, or in check mode as it would be. It is null if the
    daemon is deleted.
  returned: success
  type: dict
  contains:
    node: {description: Its node., type: str, sample: pve1}
    name: {description: Its name., type: str, sample: pve1}
    state: {description: 'V(active), V(standby), V(stopped) or V(unknown).', type: str,
      sample: standby}
    version: {description: Version of Ceph that it runs., type: str, sample: 19.2.3}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create Ceph manager 'pve1' of node pve1]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Create Ceph manager 'pve1' of node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: not safe, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ceph_daemon import (
    ceph_mgr_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.ceph.daemons import (
    run_mgr,
)

ENTRY = ModuleEntry(run_mgr, ceph_mgr_spec(), name="ceph_mgr")
main = ENTRY.main

if __name__ == "__main__":
    main()
