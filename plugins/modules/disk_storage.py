#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from disk_storage.yml: do not edit.

DOCUMENTATION = r"""
module: disk_storage
short_description: Manage ZFS pools, volume groups, thin pools and directories on disks of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates or removes a ZFS pool, a volume group, a thin pool or a directory on disks of a node.
  - A disk in use, a disk that is too small, and a number of disks that does not fit the RAID level
    are refused before the first write.
  - Proxmox VE cannot change an existing pool, group or directory. It is compared, and a difference
    is refused.
  - It is not removed while guests on the node, volumes of guests or backup jobs use a storage on
    it, while a volume group has logical volumes, or while its disk has another use, such as the
    boot partitions of the node.
  - The token needs C(Sys.Modify) and C(Sys.Audit) on C(/), and C(Datastore.Allocate) on C(/storage)
    for O(add_storage) and for O(state=absent), which must see all storages.
options:
  node:
    description: Name of the node.
    type: str
    required: true
  type:
    description: V(zfs) is a ZFS pool, V(lvm) a volume group, V(lvmthin) a thin pool in a volume
      group of the same name, V(directory) a file system that is mounted below C(/mnt/pve).
    type: str
    required: true
    choices: [zfs, lvm, lvmthin, directory]
  name:
    description: Name of the pool, volume group or directory. A new storage has the same name.
    type: str
    required: true
  state:
    description: V(present) creates it on unused disks, V(absent) removes it with all its data.
    type: str
    choices: [present, absent]
    default: present
  disks:
    description: The disks, by their RV(pve.fleet.disk_info#module:disks[].path) or by their
      devices. Required for a new storage. All types except V(zfs) have exactly one disk. By
      default, the disks of an existing storage are not compared.
    type: list
    elements: str
  raidlevel:
    description: RAID level of a ZFS pool. Required for a new pool. By default, it is not compared.
    type: str
    choices: [single, mirror, raid10, raidz, raidz2, raidz3, draid, draid2, draid3]
  draid:
    description: Layout of a new ZFS pool with dRAID. By default, ZFS chooses it.
    type: dict
    suboptions:
      data:
        description: Number of data disks in each group.
        type: int
      spares:
        description: Number of spares.
        type: int
  ashift:
    description: Sector size of a new ZFS pool as a power of two, from 9 to 16. By default, V(12).
    type: int
  compression:
    description: Compression of a new ZFS pool. By default, V(on).
    type: str
    choices: ['on', 'off', gzip, lz4, lzjb, zle, zstd]
  filesystem:
    description: File system of a directory. By default, V(ext4) for a new directory, and not
      compared for an existing one.
    type: str
    choices: [ext4, xfs]
  volume_group:
    description: Volume group of an existing thin pool. By default, O(name).
    type: str
  add_storage:
    description: Whether it also becomes a storage with the same name on this node. If the storage
      exists, this node is added to its nodes, and its other options are kept. A storage that refers
      to another place is refused.
    type: bool
    default: false
  cleanup_config:
    description: Whether O(state=absent) also removes this node from the storages on it, and removes
      storages that no other node has. Otherwise, it is not removed while a storage is on it.
    type: bool
    default: false
  cleanup_disks:
    description: Whether O(state=absent) also wipes the disks, so they can be reused.
    type: bool
    default: false
  confirm:
    description: The value of O(name). Required for O(state=absent).
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.disk_storage_info
  - module: pve.fleet.disk
  - module: pve.fleet.storage
"""

EXAMPLES = r"""
- name: Create a mirrored ZFS pool that is also a storage
  pve.fleet.disk_storage:
    node: pve2
    type: zfs
    name: tank
    raidlevel: mirror
    disks:
      - /dev/disk/by-id/ata-Demo_Disk_B2
      - /dev/disk/by-id/ata-Demo_Disk_C2
    add_storage: true

- name: Create a directory for backups
  pve.fleet.disk_storage:
    node: pve2
    type: directory
    name: archive
    disks: [/dev/disk/by-id/ata-Demo_Disk_D2]
    filesystem: xfs

- name: Remove the pool and its storage, and wipe the disks
  pve.fleet.disk_storage:
    node: pve2
    type: zfs
    name: tank
    state: absent
    confirm: tank
    cleanup_config: true
    cleanup_disks: true
"""

RETURN = r"""
disk_storage:
  description: The result as it is afterwards, or in check mode as it would be. It is null if it is
    removed. RV(pve.fleet.disk_storage_info#module:disk_storages) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create ZFS pool tank of node pve1]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Create ZFS pool tank of node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: in use, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.disk_storage import (
    disk_storage_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.disk.run_storage import (
    run_disk_storage,
)

ENTRY = ModuleEntry(run_disk_storage, disk_storage_spec(), name="disk_storage")
main = ENTRY.main

if __name__ == "__main__":
    main()
