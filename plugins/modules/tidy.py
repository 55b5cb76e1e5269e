#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from tidy.yml: do not edit.

DOCUMENTATION = r"""
module: tidy
short_description: Remove the remains of interrupted runs
version_added: 0.1.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Lists what is unfinished about the VMs and containers of a tenant, and what ends it, such as VMs
    that an interrupted run did not finish making, locks without a task, saved memory that is not
    used, and templates of which some disks were not converted.
  - Removes copies that a drill of the tenant's guests has left, 12 hours after it has made them.
  - Removes a stopped guest with the creation marker of this collection, if no task works on it and
    it was not changed for some seconds. Everything else is listed only.
  - Check mode lists the same, and what would be removed. To complete an unfinished VM instead, run
    the task that created it again.
  - This takes one request for each guest that has the tenant's tag or that of no tenant.
options:
  tenant:
    description: Tenant whose VMs and containers are listed and tidied up.
    type: str
    required: true
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  task_timeout:
    description:
      - Seconds to wait for each task of PVE. The task itself continues after that.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 300
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.vm}, {module: pve.fleet.vms}]
"""

EXAMPLES = r"""
- name: Show what is unfinished
  pve.fleet.tidy:
    tenant: acme
  check_mode: true
  register: tidied

- name: Show what ends it
  ansible.builtin.debug:
    msg: "{{ item.name }} ({{ item.vmid }}): {{ item.detail }}. {{ item.next_step }}"
  loop: "{{ tidied.unfinished }}"

- name: Remove VMs that were not finished
  pve.fleet.tidy:
    tenant: acme
"""

RETURN = r"""
unfinished:
  description: What was found unfinished, by VMID.
  returned: success
  type: list
  elements: dict
  contains:
    guest: {description: 'Kind of the guest, V(vm) or V(container).', type: str, sample: vm}
    vmid: {description: Its number., type: int, sample: 38648}
    name: {description: Its name., type: str, sample: web1}
    node: {description: The node that it is on., type: str, sample: pve1}
    kind:
      description:
        - What was interrupted. One of V(creation), V(cloud_init), V(conversion), V(drill),
          V(hibernation), V(lock), V(migration), V(rollback), V(snapshot) and V(vmstate).
      type: str
      sample: creation
    detail: {description: What was found., type: str, sample: 'it has the creation marker, and no
      task works on it'}
    remedy:
      description:
        - V(remove) for what this module removes, V(wait) where a task still works on it, and
          V(by_hand) for what it leaves alone.
      type: str
      sample: remove
    next_step: {description: What ends it otherwise., type: str, sample: Run the task again}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Remove VM 'web1' (38648) on node pve1 and its disks]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: no longer abandoned, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.tidy import tidy_spec
from ansible_collections.pve.fleet.plugins.module_utils._tidy.run import run

ENTRY = Entry(run, tidy_spec(), name="tidy")
main = ENTRY.main

if __name__ == "__main__":
    main()
