#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ceph_flag.yml: do not edit.

DOCUMENTATION = r"""
module: ceph_flag
short_description: Set and clear flags of Ceph
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Sets and clears flags of the whole Ceph cluster, such as V(noout) before a node is rebooted. All
    flags are sent in one request. Fails with the category C(NotSupported) without Ceph.
  - Module M(pve.fleet.evacuation) sets V(noout) by itself and clears it when the node is back.
  - The token needs C(Sys.Modify) and C(Sys.Audit) on C(/).
options:
  flags:
    description: Flags of Ceph.
    type: list
    elements: str
    required: true
    choices:
      - nobackfill
      - nodeep-scrub
      - nodown
      - noin
      - noout
      - norebalance
      - norecover
      - noscrub
      - notieragent
      - noup
      - pause
  state:
    description: V(present) sets the flags, V(absent) clears them.
    type: str
    choices: [present, absent]
    default: present
  exact:
    description: Whether flags that O(flags) does not list are cleared. An empty list then clears
      all. It cannot be combined with O(state=absent).
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.ceph_pool}, {module: pve.fleet.evacuation}]
"""

EXAMPLES = r"""
- name: Read the pools, if the cluster has Ceph
  pve.fleet.ceph_pool_info:
  register: found
  ignore_errors: true

- name: Keep Ceph from moving data while a switch is replaced
  pve.fleet.ceph_flag:
    flags: [noout, norebalance]
  when: found is success

- name: Clear both flags
  pve.fleet.ceph_flag:
    flags: [noout, norebalance]
    state: absent
  when: found is success

- name: Clear all flags but one
  pve.fleet.ceph_flag:
    flags: [nodeep-scrub]
    exact: true
  when: found is success
"""

RETURN = r"""
ceph_flag:
  description: The flags afterwards, or in check mode as they would be.
  returned: success
  type: dict
  contains:
    flags: {description: 'Flags that are set, sorted.', type: list, elements: str, sample: [noout,
      norebalance]}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: ['Set noout, norebalance of Ceph']
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: ['Set noout, norebalance of Ceph']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: NotSupported, reason: no Ceph, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ceph_flag import (
    ceph_flag_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.ceph.flags import (
    run_flag,
)

ENTRY = ModuleEntry(run_flag, ceph_flag_spec(), name="ceph_flag")
main = ENTRY.main

if __name__ == "__main__":
    main()
