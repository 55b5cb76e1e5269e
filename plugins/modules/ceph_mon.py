#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ceph_daemon.yml: do not edit.

DOCUMENTATION = r"""
module: ceph_mon
short_description: Manage monitors of Ceph
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates or deletes a monitor of Ceph on a node. Fails with the category C(NotSupported) on a
    node without Ceph.
  - The last monitor is not deleted, and neither is a monitor without which the others would lose
    the quorum.
  - The first monitor also creates a manager on its node.
  - The name of a monitor on another node is refused before the first write.
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
  mon_address:
    description: IP addresses of the monitor in the public networks of Ceph, if the node has several
      there. By default, Proxmox VE detects them. They cannot be changed.
    type: list
    elements: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.ceph_mgr}, {module: pve.fleet.ceph_mds}]
"""

EXAMPLES = r"""
- name: Read the pools, if the cluster has Ceph
  pve.fleet.ceph_pool_info:
  register: found
  ignore_errors: true

- name: Run a monitor on three nodes
  pve.fleet.ceph_mon:
    node: "{{ item }}"
  loop: [pve1, pve2, pve3]
  when: found is success

- name: Delete the monitor of a node that leaves the cluster
  pve.fleet.ceph_mon:
    node: pve3
    state: absent
  when: found is success
"""

RETURN = r"""
ceph_mon:
  description: The daemon as it is afterwards, or in check mode as it would be. It is null if the
    daemon is deleted.
  returned: success
  type: dict
  contains:
    node: {description: Its node., type: str, sample: pve1}
    name: {description: Its name., type: str, sample: pve1}
    mon_address: {description: IP addresses of the monitor., type: list, elements: str, sample:
      [192.0.2.11]}
    state: {description: 'V(running) in the quorum, V(stopped) or V(unknown).', type: str,
      sample: running}
    version: {description: Version of Ceph that it runs., type: str, sample: 19.2.3}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create Ceph monitor 'pve1' of node pve1]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Create Ceph monitor 'pve1' of node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: not safe, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ceph_daemon import (
    ceph_mon_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.ceph.daemons import (
    run_mon,
)

ENTRY = ModuleEntry(run_mon, ceph_mon_spec(), name="ceph_mon")
main = ENTRY.main

if __name__ == "__main__":
    main()
