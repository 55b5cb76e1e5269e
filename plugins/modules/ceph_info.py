#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ceph_info.yml: do not edit.

DOCUMENTATION = r"""
module: ceph_info
short_description: Gather information about Ceph
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the health of the Ceph cluster, its daemons, OSDs, pools and flags. Fails with the
    category C(NotSupported) without Ceph.
  - Six requests are made, and at least two more to find a node with Ceph.
  - Without a quorum of monitors, Ceph only answers a few requests. RV(missing) lists the parts that
    could not be read.
  - The token needs C(Sys.Audit) on C(/).
options:
  node:
    description: Node with Ceph to query. By default, the first online node with Ceph.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso:
  - module: pve.fleet.ceph_mon
  - module: pve.fleet.ceph_osd
  - module: pve.fleet.ceph_pool_info
"""

EXAMPLES = r"""
- name: Read the state of Ceph, if the cluster has it
  pve.fleet.ceph_info:
  register: found
  ignore_errors: true

- name: Fail unless Ceph is healthy
  ansible.builtin.assert:
    that: found.ceph.health == 'HEALTH_OK'
    fail_msg: "{{ found.ceph.checks | map(attribute='message') | join(', ') }}"
  when: found is success

- name: Show the OSDs that do not run
  ansible.builtin.debug:
    msg: "{{ found.ceph.osds | rejectattr('running') | map(attribute='osdid') }}"
  when: found is success
"""

RETURN = r"""
ceph:
  description: The state of Ceph.
  returned: success
  type: dict
  contains:
    node: {description: The queried node., type: str, sample: pve1}
    health: {description: 'V(HEALTH_OK), V(HEALTH_WARN), V(HEALTH_ERR) or V(unknown).', type: str,
      sample: HEALTH_WARN}
    checks: {description: 'The failed checks of its health, each with C(name), C(severity) and
      C(message).', type: list, elements: dict, sample: [{name: OSDMAP_FLAGS, severity: HEALTH_WARN,
      message: noout flag(s) set}]}
    flags: {description: 'Flags that are set, sorted.', type: list, elements: str, sample: [noout]}
    monitors: {description: The monitors as M(pve.fleet.ceph_mon) returns them., type: list,
      elements: dict}
    managers: {description: The managers as M(pve.fleet.ceph_mgr) returns them., type: list,
      elements: dict}
    metadata_servers: {description: The metadata servers as M(pve.fleet.ceph_mds) returns them.,
      type: list, elements: dict}
    osds: {description: The OSDs as M(pve.fleet.ceph_osd) returns them., type: list, elements: dict}
    pools: {description: The pools as M(pve.fleet.ceph_pool_info) returns them., type: list,
      elements: dict}
missing:
  description: Parts that could not be read, each with C(part), C(category) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: []
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ceph_info import (
    ceph_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.ceph_info import (
    run_ceph_info,
)

ENTRY = ModuleEntry(run_ceph_info, ceph_info_spec(), name="ceph_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
