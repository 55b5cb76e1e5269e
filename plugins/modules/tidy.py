#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from tidy.yml: do not edit.

DOCUMENTATION = r"""
module: tidy
short_description: Remove the remains of interrupted runs
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Lists unfinished work on the VMs and containers of a tenant, and how to complete it, such as VMs
    that an interrupted run did not finish creating, locks without a task, unused saved memory, and
    templates with disks that were not converted.
  - Removes copies that a drill of the tenant's guests left behind, 12 hours after their creation.
  - Removes an empty VM that a failed restore of the tenant's user left behind. Only an
    administrator sees it, because PVE puts a VM into its pool at the end of the restore.
  - Removes a stopped guest with the creation marker of this collection, if no task works on it and
    it has not changed for some seconds. Everything else is only listed.
  - Check mode lists the same items, and the guests that would be removed. To complete an unfinished
    VM instead, run the task that created it again.
  - This takes one request for each guest with the tenant's tag or without a tenant's tag.
options:
  tenant:
    description: Tenant whose unfinished VMs and containers are listed and cleaned up.
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
- name: List unfinished guests
  pve.fleet.tidy:
    tenant: acme
  check_mode: true
  register: tidied

- name: Show the next step for each
  ansible.builtin.debug:
    msg: "{{ item.name }} ({{ item.vmid }}): {{ item.detail }}. {{ item.next_step }}"
  loop: "{{ tidied.unfinished }}"

- name: Remove unfinished VMs
  pve.fleet.tidy:
    tenant: acme
"""

RETURN = r"""
unfinished:
  description: The unfinished items, by VMID.
  returned: success
  type: list
  elements: dict
  contains:
    guest: {description: 'Kind of the guest, V(vm) or V(container).', type: str, sample: vm}
    vmid: {description: Its VMID., type: int, sample: 38648}
    name: {description: Its name., type: str, sample: web1}
    node: {description: Its node., type: str, sample: pve1}
    kind:
      description:
        - The interrupted operation. One of V(creation), V(cloud_init), V(conversion), V(drill),
          V(hibernation), V(lock), V(migration), V(restore), V(rollback), V(snapshot) and
          V(vmstate).
      type: str
      sample: creation
    detail: {description: Description of the item., type: str, sample: 'it has the creation marker,
      and no task works on it'}
    remedy:
      description:
        - V(remove) if this module removes the guest, V(wait) if a task still works on it, and
          V(by_hand) if the module does not change it.
      type: str
      sample: remove
    next_step: {description: How to complete it otherwise., type: str, sample: Run the task again}
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

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.tidy import (
    tidy_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.estate.tidy.run import run

ENTRY = ModuleEntry(run, tidy_spec(), name="tidy")
main = ENTRY.main

if __name__ == "__main__":
    main()
