#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from disk.yml: do not edit.

DOCUMENTATION = r"""
module: disk
short_description: Initialize and wipe disks of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Prepares an unused disk of a node, or makes a used disk empty again.
  - A disk that is mounted, belongs to an OSD, a volume group or a ZFS pool, or is held by the
    device mapper is not wiped. Data that is no longer in use is destroyed.
  - The token needs C(Sys.Modify) and C(Sys.Audit) on C(/). Proxmox VE only lets root@pam with a
    password wipe a disk, not a token.
options:
  node:
    description: Name of the node.
    type: str
    required: true
  disk:
    description: The disk, by its RV(pve.fleet.disk_info#module:disks[].path) such as
      V(/dev/disk/by-id/ata-SSD_S3Z2), or by its device such as V(/dev/sdb).
    type: str
    required: true
  state:
    description:
      - V(initialized) writes an empty GPT partition table on an unused disk. A disk with a GPT is
        not changed.
      - V(wiped) destroys the partition table, all labels and the first 200 MiB. An unused disk
        without a GPT counts as wiped.
    type: str
    required: true
    choices: [initialized, wiped]
  confirm:
    description:
      - Serial number of the disk as RV(pve.fleet.disk_info#module:disks[].serial) shows it. Nothing
        is written to a disk with another serial number.
      - Required for O(state=wiped), so a disk without a serial number cannot be wiped. For
        O(state=initialized), it is optional.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.disk_info}, {module: pve.fleet.disk_storage}]
"""

EXAMPLES = r"""
- name: Write a partition table on an unused disk
  pve.fleet.disk:
    node: pve2
    disk: /dev/disk/by-id/ata-Demo_Disk_B2
    state: initialized

- name: Make a disk empty again
  pve.fleet.disk:
    node: pve2
    disk: /dev/sdb
    state: wiped
    confirm: B2
    user: root@pam
    password: "{{ lookup('ansible.builtin.env', 'PVE_ROOT_PASSWORD') }}"
  when: lookup('ansible.builtin.env', 'PVE_ROOT_PASSWORD') | length > 0
"""

RETURN = r"""
disk:
  description: The disk as it is afterwards, or in check mode as it would be.
    RV(pve.fleet.disk_info#module:disks) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Initialize disk /dev/sdb of node pve1]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Initialize disk /dev/sdb of node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: in use, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.disk import (
    disk_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.disk.run_disk import (
    run_disk,
)

ENTRY = ModuleEntry(run_disk, disk_spec(), name="disk")
main = ENTRY.main

if __name__ == "__main__":
    main()
