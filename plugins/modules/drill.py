#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from drill.yml: do not edit.

DOCUMENTATION = r"""
module: drill
short_description: Restore backups as isolated copies, and prove that they start
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Restores archives as isolated copies, starts them, waits until they are up, and measures the
    times. With O(state=absent), it removes the copies. The role P(pve.fleet.drill#role) does both,
    and writes the record.
  - A copy has a VMID from a separate range, new MAC addresses and a new UUID, the tag
    C(fleet-drill) instead of all other tags, and no connected NIC. It does not start with its node.
    It does not count in quotas, reports, exports, inventories or comparisons with an estate.
  - A copy is proven if its guest agent answers, or without an agent, if it stays running. If a
    guest is not proven, the task fails after all other guests.
  - A guest is removed only if its tag, its name, its notes and its marker identify it as a copy.
  - The token needs C(VM.Audit) and C(VM.Backup) on the guest in the archive,
    C(Datastore.AllocateSpace) on its storage and on the target storages, C(VM.Allocate) on the VMID
    of the copy or on O(copy_pool), C(VM.Config.*) and C(VM.PowerMgmt) there, C(VM.GuestAgent.Audit)
    for the agent, and C(SDN.Use) on the bridges.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - An existing copy is not restored again, and its guest is reported as failed.
options:
  run:
    description: ID of the drill, as M(pve.fleet.drill_info) returns it.
    type: str
    required: true
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  state:
    description:
      - V(started) restores a copy of each guest in O(guests), starts it, and waits until it is up.
      - V(absent) removes the copies of O(run), and copies of interrupted drills, see
        O(abandoned_after). It first waits for copies of O(run) that are still being restored.
    type: str
    choices: [started, absent]
    default: started
  guests:
    description: The guests to restore, at most O(copies), such as an entry of
      RV(pve.fleet.drill_info#module:rounds), whose other keys are ignored. It has no effect with
      O(state=absent).
    type: list
    elements: dict
    default: []
    suboptions:
      vmid:
        description: VMID of the guest in the archive.
        type: int
        required: true
      archive:
        description: Volume of its archive.
        type: str
        required: true
  wait_timeout:
    description:
      - Seconds to wait for the guest agent of a copy whose configuration has an agent.
      - Environment variable E(PROXMOX_WAIT_TIMEOUT).
    type: int
    default: 300
  settle:
    description: Seconds during which a copy without a guest agent must stay running.
    type: int
    default: 10
  abandoned_after:
    description: Age after which O(state=absent) also removes copies of other drills. It must be
      longer than the duration of a round.
    type: str
    default: 12h
extends_documentation_fragment:
  - pve.fleet.drill_options.copies
  - pve.fleet.connection
  - pve.fleet.attributes
seealso:
  - module: pve.fleet.drill_info
  - module: pve.fleet.restore
  - module: pve.fleet.backup_info
"""

EXAMPLES = r"""
- name: Plan a drill of the guests of a tenant
  pve.fleet.drill_info:
    tenant: acme
  register: plan

- name: Restore the first round
  pve.fleet.drill:
    run: "{{ plan.run }}"
    guests: "{{ plan.rounds | first | default([]) }}"
  register: drilled

- name: Show the duration for each guest
  ansible.builtin.debug:
    msg: "{{ item.name }}: {{ item.restore_seconds }} s and {{ item.boot_seconds }} s"
  loop: "{{ drilled.guests }}"

- name: Remove the copies
  pve.fleet.drill:
    run: "{{ plan.run }}"
    state: absent
"""

RETURN = r"""
guests:
  description: The guests of O(guests). Empty for O(state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: VMID of the guest., type: int, sample: 15046}
    type: {description: V(qemu) for a VM and V(lxc) for a container., type: str, sample: qemu}
    name: {description: Name of the guest in the archive., type: str, sample: web1}
    tenant: {description: Its tenant in the archive., type: str, sample: acme}
    outcome: {description: V(proven) or V(failed)., type: str, sample: proven}
    proof: {description: V(agent) if its agent answered or V(started) if it stayed running. Null in
      check mode., type: str, sample: agent}
    msg: {description: Why it failed., type: str, sample: null}
    volume: {description: The archive., type: str,
      sample: 'nas:backup/vzdump-qemu-15046-2026_11_20-20_15_33.vma.zst'}
    archive_time: {description: Time of the archive., type: str, sample: '2026-11-20T20:15:33Z'}
    archive_age: {description: Age of the archive in seconds., type: int, sample: 43200}
    left_out: {description: 'Disks whose data is not in the archive, because their backup is off.',
      type: list, elements: str, sample: [scsi1]}
    restore_seconds: {description: Duration of the restore., type: int, sample: 95}
    boot_seconds: {description: Seconds from the start to the answer of the agent., type: int,
      sample: 21}
    copy_vmid: {description: VMID of the copy., type: int, sample: 900412}
    copy_name: {description: Name of the copy., type: str, sample: drill-15046-3f9a01-web1}
    node: {description: Node of the copy., type: str, sample: pve1}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: ['Restore VM ''drill-15046-3f9a01-web1'' (900412) on node pve1 from
    nas:backup/vzdump-qemu-15046-2026_11_20-20_15_33.vma.zst']
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: not running, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.drill import drill_spec
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.drill.run import run

ENTRY = ModuleEntry(
    run,
    drill_spec(),
    names={
        "storage": "storage",
        "storage_map": "storage",
        "node": "node",
        "copy_pool": "pool",
        "network": "network",
    },
    name="drill",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
