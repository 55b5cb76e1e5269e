#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: snapshot_info
short_description: Tell about snapshots of virtual machines
version_added: "0.1.0"
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Returns one VM or several with the tree of their snapshots, and where each VM stands in it.
  - One request lists the VMs, and two more are made for each VM that is meant.
  - A VM that cannot be read, such as one on a node that is down, has C(error) instead, and a warning says so. Where it
    is the only one that is meant, the task fails.
extends_documentation_fragment:
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
  - pve.fleet.vm_choice
options:
  details:
    description:
      - Whether the sizes that Proxmox VE knows are read too, which takes one request for each snapshot and one for each
        storage with saved memory.
      - How much room a snapshot itself takes, Proxmox VE does not tell.
    type: bool
    default: false
seealso:
  - module: pve.fleet.snapshot
"""

EXAMPLES = r"""
- name: The snapshots of a VM
  pve.fleet.snapshot_info:
    name: web1
    tenant: acme
  register: web1

- name: The snapshots of all VMs of a tenant, with sizes
  pve.fleet.snapshot_info:
    tenant: acme
    details: true
  register: acme

- name: Those that are older than a month
  ansible.builtin.debug:
    msg: "{{ item.snapshots | selectattr('snaptime', 'lt', now().timestamp() - 2592000) | map(attribute='name') }}"
  loop: "{{ acme.vms | rejectattr('error') }}"
  loop_control:
    label: "{{ item.name }}"
"""

RETURN = r"""
vms:
  description: The VMs that are meant.
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: Its number., type: int, sample: 10000}
    name: {description: Its name., type: str, sample: web1}
    node: {description: The node it is on., type: str, sample: pve1}
    tenant: {description: "The tenant whose tag it bears, null with none or several.", type: str, sample: acme}
    tags: {description: Its tags., type: list, elements: str, sample: [tenant_acme, web]}
    status: {description: V(running) or V(stopped)., type: str, sample: running}
    lock: {description: What has it locked., type: str, sample: null}
    current: {description: "The snapshot it stands on now, null for none.", type: str, sample: before-upgrade}
    error: {description: "Why it could not be read, with C(category) and C(msg), else null.", type: dict, sample: null}
    snapshots:
      description: Its snapshots, oldest first. Null where they could not be read.
      type: list
      elements: dict
      contains:
        name: {description: Its name., type: str, sample: before-upgrade}
        description: {description: Its description., type: str, sample: ""}
        parent: {description: The snapshot it stands on., type: str, sample: null}
        children: {description: The snapshots that stand on it., type: list, elements: str, sample: []}
        depth: {description: How many snapshots it stands on., type: int, sample: 0}
        current: {description: Whether the VM's present state stands on it., type: bool, sample: true}
        snaptime: {description: "When it was taken, in seconds since 1970.", type: int, sample: 1795208133}
        time: {description: "When it was taken, as ISO 8601 in UTC.", type: str, sample: "2026-11-20T20:15:33Z"}
        vmstate: {description: Whether it holds the VM's memory., type: bool, sample: false}
        state:
          description: "V(prepare) or V(delete) while Proxmox VE has not finished making or deleting it, else null."
          type: str
          sample: null
        disks:
          description: Each disk as it was, with C(name), C(volume), C(storage) and C(size) in bytes.
          returned: O(details=true)
          type: list
          elements: dict
          sample: [{name: scsi0, volume: "ceph:vm-10000-disk-0", storage: ceph, size: 21474836480}]
        vmstate_size:
          description: The bytes of the volume with its memory, null for none.
          returned: O(details=true)
          type: int
          sample: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry import Entry
from ansible_collections.pve.fleet.plugins.module_utils._snapshot.info import gather as run
from ansible_collections.pve.fleet.plugins.module_utils._spec.snapshot import snapshot_info_spec

ENTRY = Entry(
    run,
    snapshot_info_spec(),
    {
        "mutually_exclusive": [("name", "vms"), ("vmid", "vms")],
        "required_one_of": [("name", "vmid", "vms", "tenant", "tags")],
    },
)


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
