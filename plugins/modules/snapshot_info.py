#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from snapshot.yml: do not edit.

DOCUMENTATION = r"""
module: snapshot_info
short_description: Gather information about snapshots of virtual machines
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one or several VMs with the tree of their snapshots and the parent of the current state.
  - The module sends one request for the list of VMs and two more for each selected VM.
  - A VM that cannot be read, such as one on an offline node, has C(error) instead, and a warning
    reports it. If it is the only selected VM, the task fails.
options:
  details:
    description:
      - Whether to read the sizes of disks and saved memory. This takes one request for each
        snapshot and one for each storage with saved memory.
      - Proxmox VE does not report the space that a snapshot itself uses.
    type: bool
    default: false
extends_documentation_fragment:
  - pve.fleet.snapshot_options.choice
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
seealso: [{module: pve.fleet.snapshot}]
"""

EXAMPLES = r"""
- name: List the snapshots of a VM
  pve.fleet.snapshot_info:
    name: web1
    tenant: acme
  register: web1

- name: List the snapshots of all VMs of a tenant, with sizes
  pve.fleet.snapshot_info:
    tenant: acme
    details: true
  register: acme

- name: Show the snapshots that are older than a month
  ansible.builtin.debug:
    msg: "{{ item.snapshots | selectattr('snaptime', 'lt', now().timestamp() - 2592000) |
      map(attribute='name') }}"
  loop: "{{ acme.vms | rejectattr('error') }}"
  loop_control:
    label: "{{ item.name }}"
"""

RETURN = r"""
site:
  description: Name of the site of the task, otherwise the host of the endpoint.
  returned: success
  type: str
  sample: vienna
vms:
  description: The selected VMs.
  returned: success
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
    current: {description: 'Parent snapshot of the current state, null for none.', type: str,
      sample: before-upgrade}
    error: {description: 'Why the VM could not be read, with C(category) and C(msg), else null.',
      type: dict, sample: null}
    snapshots:
      description: Snapshots of the VM, oldest first. Null if they could not be read.
      type: list
      elements: dict
      contains:
        name: {description: Name of the snapshot., type: str, sample: before-upgrade}
        description: {description: Description of the snapshot., type: str, sample: ''}
        parent: {description: Parent snapshot., type: str, sample: null}
        children: {description: Snapshots that have it as parent., type: list, elements: str,
          sample: []}
        depth: {description: Number of its ancestors., type: int, sample: 0}
        current: {description: Whether it is the parent of the current state., type: bool,
          sample: true}
        snaptime: {description: Time of creation in seconds since 1970., type: int,
          sample: 1795208133}
        time: {description: 'Time of creation in ISO 8601 format, UTC.', type: str,
          sample: '2026-11-20T20:15:33Z'}
        vmstate: {description: Whether it contains the memory of the VM., type: bool, sample: false}
        state: {description: 'V(prepare) or V(delete) while Proxmox VE is creating or deleting it,
          else null.', type: str, sample: null}
        disks: {description: 'Disks at the time of the snapshot, with C(name), C(volume), C(storage)
          and C(size) in bytes.', returned: O(details=true), type: list, elements: dict, sample:
          [{name: scsi0, volume: 'ceph:vm-15046-disk-0', storage: ceph, size: 21474836480}]}
        vmstate_size: {description: 'Size of the saved memory in bytes, null for none.',
          returned: O(details=true), type: int, sample: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.snapshot import (
    snapshot_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.run_info import run

ENTRY = ModuleEntry(
    run,
    snapshot_info_spec(),
    {
        "mutually_exclusive": [("name", "vms"), ("vmid", "vms")],
        "required_one_of": [("name", "vmid", "vms", "tenant", "tags")],
    },
    returns_site=True,
    names={"tenant": "tenant", "tags": "tag"},
    name="snapshot_info",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
