#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: clone
short_description: Clone a template or virtual machine
version_added: "0.1.0"
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Makes sure that a clone exists. A new one gets everything that M(pve.fleet.vm) can set in the same task.
  - A clone remembers in its notes, invisibly, which VM it was made from. One with this name (and tenant) and origin is
    left as it is, also where its options differ from the task's, and its own VMID is returned. Only its power state
    follows O(state). To change it, use M(pve.fleet.vm).
  - A clone that an earlier run left unfinished is completed, after waiting for the task of Proxmox VE that still makes
    it.
  - A VM of that name or number with another origin is a conflict. It is never replaced, and no second VM is made.
  - What cannot be is refused before anything is written. A lock that other clones of the same source hold is waited
    for, at most O(lock_timeout) seconds.
extends_documentation_fragment:
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
  - pve.fleet.vm_options
  - pve.fleet.vm_options.guest
  - pve.fleet.vm_options.identity
options:
  source:
    description:
      - The template or VM to clone, digits for its VMID, any other text for its exact name.
      - A name means the one template of that name, or else the one VM, that of O(tenant) first.
      - With O(tenant), a template of nobody can be cloned, and what belongs to the tenant. Anything else must be in
        O(shared_sources).
    type: str
    required: true
  state:
    description:
      - V(present) makes sure that the clone exists and leaves its power state alone; a new one stays off.
      - V(started) and V(stopped) also switch it on or off.
    type: str
    choices: [present, started, stopped]
    default: present
  full:
    description:
      - Whether the disks are copied (V(true)), or linked to those of the template (V(false)).
      - Left out, a clone of a template is linked where its storages can do that, any other is full.
    type: bool
  storage:
    description:
      - The storage of the disks of a full clone. Left out, they stay on the storages of the source's.
      - A disk in O(disks) with a storage of its own goes there.
    type: str
  format:
    description: Format of the disks of a full clone, on storages of files.
    type: str
    choices: [raw, qcow2, vmdk]
  snapshot:
    description: Snapshot of the source whose state is cloned. Left out, it is the current one.
    type: str
  pool:
    description: The resource pool a new clone is put into. It must exist.
    type: str
  wait_for:
    description:
      - What the task waits for once the clone runs, V(agent) until its guest agent answers, V(address) until it tells
        an address that O(address_family), O(address_nics) and O(address_subnets) allow.
      - Check mode does not wait.
    type: str
    choices: [none, agent, address]
    default: none
  wait_timeout:
    description: Seconds to wait for O(wait_for).
    type: int
    default: 300
seealso:
  - module: pve.fleet.vm
  - module: pve.fleet.snapshot
"""

EXAMPLES = r"""
- name: A linked clone of a template, sized and started
  pve.fleet.clone:
    name: web1
    source: debian-13
    tenant: acme
    cores: 4
    memory: 8G
    disks:
      - name: scsi0
        size: 40G
    nics:
      - network: lan
        ip: 10.20.0.11/24
        gateway: 10.20.0.1
    cloud_init:
      user: ops
    state: started

- name: A full clone on another storage and node
  pve.fleet.clone:
    name: db1
    source: 9000
    node: pve2
    full: true
    storage: local-lvm

- name: A copy of a VM as it was before the upgrade
  pve.fleet.clone:
    name: web1-before
    source: web1
    snapshot: before-upgrade
    full: true

- name: Ten clones of one template, made side by side
  pve.fleet.clone:
    name: "worker{{ item }}"
    source: debian-13
    lock_timeout: 300
  loop: "{{ range(10) | list }}"
  async: 1800
  poll: 0
"""

RETURN = r"""
vm:
  description:
    - The clone, with the keys of RV(pve.fleet.vm#module:vm). Its C(vmid) is its own, C(cloned_from) that of its source.
    - In check mode the clone as it is before the change; for one that would be made only name, node and VMID.
  returned: success
  type: dict
  sample: {vmid: 10000, name: web1, node: pve1, status: running, cloned_from: 9000}
plan:
  description: The steps of the plan in words, in the order in which they are carried out. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: ["Clone VM 'debian-13' (9000) on node pve1 to VM 'web1' (10000) on node pve1 (linked)"]
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: ["Clone VM 'debian-13' (9000) on node pve1 to VM 'web1' (10000) on node pve1 (linked)"]
applied:
  description: Options that the task changed and that hold now. In check mode, that would.
  returned: success
  type: list
  elements: str
  sample: [description]
pending:
  description: Options that are set but wait for a stop or reboot of the VM.
  returned: success
  type: list
  elements: str
  sample: []
needs_reboot:
  description: Whether options wait for a stop or reboot, see RV(pending).
  returned: success
  type: bool
  sample: false
conditions:
  description: C(Ready), C(VMCreated), C(ResourcesAllocated) and C(NetworkConfigured), each with status and reason.
  returned: success
  type: list
  elements: dict
  sample: [{type: Ready, status: true, reason: Running}]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: other origin
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry import Entry
from ansible_collections.pve.fleet.plugins.module_utils._spec.clone import clone_spec
from ansible_collections.pve.fleet.plugins.module_utils._vm.clone import converge_clone as run
from ansible_collections.pve.fleet.plugins.module_utils._vm.estate import class_secrets

ENTRY = Entry(run, clone_spec(), {"required_one_of": [("name", "vmid")]}, secrets=class_secrets)


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
