#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from disk.yml: do not edit.

DOCUMENTATION = r"""
module: disk_info
short_description: Gather information about disks of nodes
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the disks of one node or of all nodes, which are read in parallel. A node that cannot be
    read does not fail the task. RV(missing) and a warning name it.
  - The token needs C(Sys.Audit) on the nodes.
options:
  node:
    description: Name of the node. By default, the disks of all nodes are returned.
    type: str
  smart:
    description: Whether nodes also read the SMART values of their disks. This can wake a disk, and
      can take seconds for each disk.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.disk}, {module: pve.fleet.disk_storage_info}]
"""

EXAMPLES = r"""
- name: Read all disks
  pve.fleet.disk_info:
  register: found

- name: Show the unused disks
  ansible.builtin.debug:
    msg: "{{ found.disks | selectattr('used', 'none') | map(attribute='path') }}"

- name: Read the disks of a node with their health
  pve.fleet.disk_info:
    node: pve1
    smart: true
  register: checked
  failed_when: checked.disks | rejectattr('health', 'in', ['PASSED', 'OK', 'UNKNOWN']) | length > 0
"""

RETURN = r"""
disks:
  description: The disks, sorted by node and device.
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: Its node., type: str, sample: pve1}
    path: {description: 'Its path by ID, which stays the same, or its device if it has no such
      path.', type: str, sample: /dev/disk/by-id/ata-SSD_S3Z2}
    device: {description: 'Its device, which can change with a boot.', type: str, sample: /dev/sdb}
    size: {description: Bytes., type: int, sample: 960197124096}
    type: {description: 'V(hdd), V(ssd), V(nvme), V(usb) or V(unknown).', type: str, sample: ssd}
    model: {description: Its model., type: str, sample: SSD}
    serial: {description: 'Its serial number, null if it has none.', type: str, sample: S3Z2}
    gpt: {description: Whether it has a GPT partition table., type: bool, sample: true}
    used: {description: 'Its use, such as V(LVM), V(ZFS), V(partitions), V(Device Mapper) or a file
      system. It is null if nothing uses the disk.', type: str, sample: partitions}
    mounted: {description: Whether the disk itself is mounted., type: bool, sample: false}
    osds: {description: Numbers of the OSDs on it., type: list, elements: int, sample: []}
    partitions: {description: 'Its partitions, each with C(device), C(size), C(used) and
      C(mounted).', type: list, elements: dict, sample: [{device: /dev/sdb1, size: 960196075520,
      used: ZFS, mounted: false}]}
    health: {description: 'Its SMART health, such as V(PASSED) or V(UNKNOWN). Null without
      RV(ignore:smart).', type: str, sample: PASSED}
    wearout: {description: 'Remaining life of an SSD in percent, null if it is not known.',
      type: float, sample: 97}
missing:
  description: Nodes that could not be read, each with C(node), C(category) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: []
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.disk import (
    disk_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.disk.run_disk import (
    run_disk_info,
)

ENTRY = ModuleEntry(run_disk_info, disk_info_spec(), name="disk_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
