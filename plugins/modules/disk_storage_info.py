#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from disk_storage.yml: do not edit.

DOCUMENTATION = r"""
module: disk_storage_info
short_description: Gather information about ZFS pools, volume groups, thin pools and directories on
  disks
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the ZFS pools, volume groups, thin pools and directories of one node or of all nodes. A
    node that cannot be read does not fail the task. RV(missing) and a warning name it.
  - The token needs C(Sys.Audit) on C(/).
options:
  node:
    description: Name of the node. By default, all nodes are read.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.disk_storage}, {module: pve.fleet.disk_info}]
"""

EXAMPLES = r"""
- name: Read all of them
  pve.fleet.disk_storage_info:
  register: found

- name: Show ZFS pools that are not healthy
  ansible.builtin.debug:
    msg: "{{ found.disk_storages | rejectattr('health', 'in', [none, 'ONLINE']) }}"
"""

RETURN = r"""
disk_storages:
  description: The pools, volume groups and directories, sorted by node and type.
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: Its node., type: str, sample: pve1}
    type: {description: 'V(zfs), V(lvm), V(lvmthin) or V(directory).', type: str, sample: zfs}
    name: {description: Its name., type: str, sample: tank}
    disks: {description: 'The paths of its disks, sorted. Null for a directory, because Proxmox VE
      does not return its disk.', type: list, elements: str, sample: [/dev/disk/by-id/ata-SSD_S3Z2]}
    raidlevel: {description: 'RAID level of a ZFS pool, null for a level that Proxmox VE does not
      create.', type: str, sample: mirror}
    health: {description: 'Health of a ZFS pool, such as V(ONLINE) or V(DEGRADED).', type: str,
      sample: ONLINE}
    size: {description: 'Bytes, null for a directory.', type: int, sample: 960197124096}
    free: {description: Free bytes of a ZFS pool or volume group., type: int, sample: 960197000000}
    volume_group: {description: Volume group of a thin pool., type: str, sample: null}
    filesystem: {description: File system of a directory., type: str, sample: null}
    path: {description: Path of a directory., type: str, sample: null}
missing:
  description: Nodes that could not be read, each with C(node), C(category) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: []
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.disk_storage import (
    disk_storage_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.disk.run_storage import (
    run_disk_storage_info,
)

ENTRY = ModuleEntry(run_disk_storage_info, disk_storage_info_spec(), name="disk_storage_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
