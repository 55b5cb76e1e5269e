#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from replication.yml: do not edit.

DOCUMENTATION = r"""
module: replication
short_description: Manage replication jobs
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a job that replicates the disks of a guest to another node. The
    disks must be on ZFS.
  - A guest can have one job for each target. A second job for the same target is refused before the
    first write.
  - The token needs C(VM.Replicate) and C(VM.Audit) on the guest.
options:
  id:
    description: 'ID of the job: the VMID of the guest and a number, such as V(100-0).'
    type: str
    required: true
  state:
    description: V(present) creates the job or updates settings that differ. V(absent) deletes it,
      together with the replicated disks on the target.
    type: str
    choices: [present, absent]
    default: present
  target:
    description: Node to which the disks are replicated. Required for a new job. It cannot be
      changed.
    type: str
  schedule:
    description: Calendar event, such as V(*/30) for every 30 minutes. An empty text restores the
      default of Proxmox VE, which is V(*/15). By default, it is not changed.
    type: str
  rate:
    description: Bandwidth limit in MB/s. An empty text removes it. By default, it is not changed.
    type: str
  disable:
    description: Whether the job is disabled. By default, it is not changed.
    type: bool
  comment:
    description: Comment on the job. An empty text removes it. By default, it is not changed.
    type: str
  tenant:
    description: Tenant to which the guest must belong. A guest without exactly the tag of this
      tenant is refused. By default, guests of every tenant are accepted.
    type: str
  force:
    description: Whether O(state=absent) deletes the job immediately and leaves the replicated disks
      on the target. Otherwise, the node of the guest deletes both within minutes.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.replication_info}]
"""

EXAMPLES = r"""
- name: Ensure that a guest has no job
  pve.fleet.replication:
    id: 10000-0
    state: absent
"""

RETURN = r"""
replication:
  description: The result as it is afterwards, or in check mode as it would be. It is null if it is
    deleted. RV(pve.fleet.replication_info#module:replications) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create replication job '100-0']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: target in use, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.replication import (
    replication_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.replication import (
    run_replication,
)

ENTRY = ModuleEntry(run_replication, replication_spec(), name="replication")
main = ENTRY.main

if __name__ == "__main__":
    main()
