#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from drill.yml: do not edit.

DOCUMENTATION = r"""
module: drill_info
short_description: Plan a drill of restores
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Selects guests and their newest archives, and plans the rounds, nodes and storages for their
    restore as copies. Nothing is written.
  - A round has at most O(copies) copies, and no more than fit on the nodes and storages.
    RV(refused) contains guests that do not fit even alone, guests without a usable archive, and
    guests whose copy would use a device, a file or a program of its node.
  - In addition to the requests of M(pve.fleet.backup_info), some requests are made for each guest.
options:
  record:
    description: The text of the record of earlier drills, C(drill.json) of the role
      P(pve.fleet.drill#role). An empty text means that there is no record yet.
    type: str
    default: ''
  unproven_for:
    description: Only guests without a proven restore in this period, such as V(30d). By default,
      all guests are selected.
    type: str
  sample:
    description: Number of guests at most. Guests without a proven restore for the longest time come
      first. By default, there is no limit.
    type: int
  storages:
    description: Storages to search for archives. By default, all storages with content V(backup).
    type: list
    elements: str
extends_documentation_fragment:
  - pve.fleet.drill_options.copies
  - pve.fleet.backup_options.choice
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
seealso: [{module: pve.fleet.drill}, {module: pve.fleet.backup_info}]
"""

EXAMPLES = r"""
- name: Plan a drill of all guests
  pve.fleet.drill_info:
    copies: 5
  register: plan

- name: Show the node of each archive
  ansible.builtin.debug:
    msg: "{{ plan.report }}"

- name: Select ten guests without a proven restore in the last 30 days
  pve.fleet.drill_info:
    unproven_for: 30d
    sample: 10
    record: "{{ lookup('ansible.builtin.file', 'drill.json', errors='ignore') or '' }}"
"""

RETURN = r"""
run:
  description: ID of the drill.
  returned: success
  type: str
  sample: 3f9a01c2d4e5
began:
  description: Time of the plan in seconds since the epoch.
  returned: success
  type: int
  sample: 1795199733
rounds:
  description: The copies by round. Each round is a list for O(pve.fleet.drill#module:guests).
  returned: success
  type: list
  elements: list
  sample: [[{vmid: 15046, name: web1, copy_vmid: 900412, node: pve1, storages: [ceph]}]]
refused:
  description: Guests without a copy. Their C(outcome) is V(failed) without a usable archive, and
    V(skipped) if the copy does not fit or would not be isolated, or if the guest was created after
    the newest archive.
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: VMID of the guest., type: int, sample: 15047}
    type: {description: V(qemu) for a VM and V(lxc) for a container., type: str, sample: qemu}
    name: {description: Name of the guest., type: str, sample: db1}
    tenant: {description: Its tenant., type: str, sample: acme}
    outcome: {description: V(failed) or V(skipped)., type: str, sample: failed}
    msg: {description: The reason., type: str, sample: 'No archive of guest 15047 was restored:
      there is none.'}
    archive: {description: Its newest archive., type: str, sample: null}
copies:
  description: The existing copies of all drills.
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: VMID of the copy., type: int, sample: 900400}
    name: {description: Its name., type: str, sample: drill-15001-11aa22-old1}
    node: {description: Its node., type: str, sample: pve1}
    run: {description: ID of its drill., type: str, sample: 11aa22334455}
    began: {description: Time of its creation., type: str, sample: '2026-11-20T20:15:33Z'}
report:
  description: The plan in words.
  returned: success
  type: list
  elements: str
  sample: ['Plan: 1 guest to restore in 1 round']
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.drill import (
    drill_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.drill.run_info import (
    run,
)

ENTRY = ModuleEntry(
    run,
    drill_info_spec(),
    {"mutually_exclusive": [("name", "vms"), ("vmid", "vms")]},
    names={
        "storage": "storage",
        "storage_map": "storage",
        "node": "node",
        "copy_pool": "pool",
        "network": "network",
        "tenant": "tenant",
        "tags": "tag",
        "pool": "pool",
    },
    name="drill_info",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
