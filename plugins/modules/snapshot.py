#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from snapshot.yml: do not edit.

DOCUMENTATION = r"""
module: snapshot
short_description: Manage snapshots of virtual machines
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates and deletes snapshots of one or several VMs, applies a retention policy, and rolls VMs
    back to a snapshot.
  - Several VMs are processed in parallel. A VM that fails does not stop the others; the task fails
    at the end, and RV(vms) has the outcome of each VM.
  - The module waits for every task of Proxmox VE, also for one that an earlier run started on the
    same VM.
  - Impossible requests, such as a snapshot on a storage without snapshot support, are rejected
    before the first write.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - O(state=rolled_back), and O(state=present) without O(snapshot), change something in every
        run.
options:
  state:
    description:
      - V(present) creates the snapshot unless it exists. Only the description of an existing
        snapshot is changed.
      - V(absent) deletes the snapshot. Its children become children of its parent.
      - V(rolled_back) rolls the VM back to the snapshot. Later changes are lost, including options
        and tags. The notes of the VM and its current tenant's tag are kept.
    type: str
    choices: [present, absent, rolled_back]
    default: present
  snapshot:
    description:
      - Name of the snapshot, 2 to 40 letters, digits, V(_) and V(-), starting with a letter.
      - With O(state=present), it defaults to O(prefix) and the time in UTC, such as
        V(auto-20260131-235959).
      - If it is not set, O(state=absent) deletes only snapshots that match O(pattern).
    type: str
  prefix:
    description: Prefix of an automatic name.
    type: str
    default: auto-
  description:
    description: Description of the snapshot.
    type: str
  vmstate:
    description: Whether to save the memory of a running VM. It has no effect on a VM that does not
      run, and a warning reports that.
    type: bool
    default: false
  keep:
    description:
      - Number of the newest snapshots matching O(pattern) to keep. Older matching snapshots are
        deleted.
      - Together with O(keep_for), a snapshot is deleted only if neither option keeps it.
    type: int
  keep_for:
    description:
      - How long to keep snapshots that match O(pattern), as a number with the unit V(s), V(m),
        V(h), V(d) or V(w), such as V(12h) or V(7d).
      - Together with O(keep), a snapshot is deleted only if neither option keeps it.
    type: str
  pattern:
    description:
      - Shell pattern for the snapshot names to which O(keep) and O(keep_for) apply, such as
        V(nightly-*). It is case-sensitive. Other snapshots, and snapshots that Proxmox VE has not
        finished, are never deleted.
      - With automatic names, it defaults to the snapshots with the same O(prefix).
      - With O(state=absent) and without O(keep) and O(keep_for), all matching snapshots are
        deleted.
    type: str
  restart:
    description:
      - Whether to start a VM after a rollback if it ran before. Proxmox VE itself leaves it
        stopped.
      - After a rollback to a snapshot with memory, the VM always runs.
    type: bool
    default: true
  force:
    description:
      - Whether a rollback may delete newer snapshots. They are deleted before the rollback,
        starting with the newest.
      - This is only needed on storages that can only roll back to the newest snapshot, which are
        ZFS, LVM, and files with snapshots as volume chains. On all other storages, newer snapshots
        are kept.
    type: bool
    default: false
  parallel:
    description:
      - Maximum number of VMs that are processed at the same time.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 4
  task_timeout:
    description:
      - Seconds to wait for each task of Proxmox VE.
      - A task that takes longer keeps running on the node. RV(error) then contains its C(upid), and
        the next run waits for it.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 300
extends_documentation_fragment:
  - pve.fleet.snapshot_options.choice
  - pve.fleet.connection
  - pve.fleet.attributes
seealso: [{module: pve.fleet.snapshot_info}, {module: pve.fleet.vm}]
"""

EXAMPLES = r"""
- name: Create a snapshot with memory before an upgrade
  pve.fleet.snapshot:
    name: web1
    tenant: acme
    snapshot: before-upgrade
    description: Debian 12, all tests green
    vmstate: true

- name: Roll back, and start the VM again if it was running
  pve.fleet.snapshot:
    name: web1
    tenant: acme
    snapshot: before-upgrade
    state: rolled_back

- name: Create a snapshot of each web server of a tenant and keep the newest seven
  pve.fleet.snapshot:
    tenant: acme
    tags: [web]
    prefix: nightly-
    keep: 7

- name: Delete matching snapshots of two VMs that are older than two weeks
  pve.fleet.snapshot:
    vms: [web1, "10001"]
    state: absent
    pattern: nightly-*
    keep_for: 2w

- name: Delete one snapshot
  pve.fleet.snapshot:
    vmid: 15046
    snapshot: before-upgrade
    state: absent
"""

RETURN = r"""
site:
  description: Name of the site of the task, otherwise the host of the endpoint.
  returned: success
  type: str
  sample: vienna
snapshot:
  description: Name of the snapshot, which can be an automatic name. Null if only a pattern was set.
  returned: success
  type: str
  sample: auto-20260131-235959
vms:
  description:
    - The selected VMs. In check mode, with their current snapshots.
    - If the task fails for some of the VMs, it contains all of them, including changed VMs.
  returned: always, unless the options are rejected
  type: list
  elements: dict
  contains:
    kind: {description: 'Kind of the guest, V(vm) or V(container).', type: str, sample: vm}
    vmid: {description: VMID of the VM., type: int, sample: 15046}
    name: {description: Name of the VM., type: str, sample: web1}
    node: {description: Node on which the VM is., type: str, sample: pve1}
    tenant: {description: Tenant of the VM. Null without a tenant's tag or with several., type: str,
      sample: acme}
    tags: {description: Tags of the VM., type: list, elements: str, sample: [tenant_acme, web]}
    status: {description: V(running) or V(stopped)., type: str, sample: running}
    lock: {description: Lock of the VM., type: str, sample: null}
    changed: {description: Whether the VM was or would be changed., type: bool, sample: true}
    failed: {description: Whether the VM failed. C(msg) and C(error) then have the reason.,
      type: bool, sample: false}
    restarted: {description: Whether the VM was started after a rollback., type: bool,
      sample: false}
    plan: {description: Steps of the plan in the order of execution., type: list, elements: str,
      sample: [Take snapshot 'before-upgrade' of VM 'web1' (15046) on node pve1]}
    done: {description: Steps that were executed., type: list, elements: str, sample: []}
    snapshots: {description: 'Snapshots of the VM, see
      RV(pve.fleet.snapshot_info#module:vms[].snapshots).', type: list, elements: dict, sample: []}
    current: {description: Parent snapshot of the current state., type: str, sample: before-upgrade}
    conditions: {description: 'C(Ready), with status and reason.', type: list, elements: dict,
      sample: [{type: Ready, status: true, reason: InSync}]}
report:
  description: 'Lines for people: one for each guest that changes or fails, and the counts.'
  returned: always, unless the options are rejected
  type: list
  elements: str
  sample: [~ acme/web1  take snapshot 'before-upgrade', 'Done: 1 changed, 2 unchanged']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: newer snapshots, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.snapshot import (
    snapshot_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.run import run

ENTRY = ModuleEntry(
    run,
    snapshot_spec(),
    {
        "mutually_exclusive": [("name", "vms"), ("vmid", "vms")],
        "required_one_of": [("name", "vmid", "vms", "tenant", "tags")],
        "required_if": [("state", "rolled_back", ["snapshot"])],
    },
    returns_site=True,
    names={"tenant": "tenant", "tags": "tag"},
    name="snapshot",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
