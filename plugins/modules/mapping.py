#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from mapping.yml: do not edit.

DOCUMENTATION = r"""
module: mapping
short_description: Manage mappings of devices and directories
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a mapping. A VM that uses a mapping can run on each node that has
    an entry, and does not need root to use the device.
  - Proxmox VE compares an entry with the device when a VM starts. This module compares the path,
    the ID, the IOMMU group and the subsystem of a new entry before the first write, in check mode
    too, and refuses a device that its node does not have. For a node that is offline, or whose
    devices the login may not read, a warning is shown. This needs C(Sys.Audit) or C(Sys.Modify) on
    C(/) for PCI devices, C(Sys.Modify) on C(/) for USB devices.
  - Proxmox VE itself refuses a directory that is missing on the node that answers.
  - Directories need Proxmox VE 8.4 or newer.
  - The token needs C(Mapping.Modify) on C(/mapping/TYPE/NAME), and on C(/mapping/TYPE) for a new
    mapping.
options:
  type:
    description: 'Kind of the mapping: PCI devices, USB devices or directories.'
    type: str
    required: true
    choices: [dir, pci, usb]
  name:
    description: Name of the mapping, to which VMs refer.
    type: str
    required: true
  state:
    description: V(present) creates the mapping or updates settings that differ, V(absent) deletes
      it.
    type: str
    choices: [present, absent]
    default: present
  description:
    description: Description of the mapping. An empty text removes it. By default, it is not
      changed.
    type: str
  map:
    description: Devices or directories of the nodes. The entries of a listed node replace its
      former entries. Other nodes keep their entries. Required for a new mapping. By default, they
      are not changed.
    type: list
    elements: dict
    suboptions:
      node:
        description: Name of the node.
        type: str
        required: true
      path:
        description: Address of a PCI device such as V(0000:01:00.0), port of a USB device such as
          V(1-2), or a directory. Optional with V(usb).
        type: str
      id:
        description: Vendor and device, such as V(8086:10fb). Required for PCI and USB devices.
        type: str
      iommugroup:
        description: IOMMU group of a PCI device. Required if the device has one.
        type: int
      subsystem_id:
        description: Subsystem of a PCI device, such as V(8086:0001). Required if the device has
          one.
        type: str
      description:
        description: Description of the device.
        type: str
  exact:
    description: Whether the entries of nodes that O(map) does not list are removed.
    type: bool
    default: false
  mdev:
    description: Whether a PCI device is shared as mediated devices. By default, it is not changed.
      The task warns if a device does not match, because Proxmox VE then refuses to start a VM.
    type: bool
  live_migration_capable:
    description: Whether a running VM with this PCI device can be migrated. By default, it is not
      changed.
    type: bool
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.mapping_info}]
"""

EXAMPLES = r"""
- name: Map a graphics card of two nodes
  pve.fleet.mapping:
    type: pci
    name: gpu
    map:
      - {node: pve1, path: "0000:01:00.0", id: "10de:2204", iommugroup: 1,
         subsystem_id: "10de:1467"}
      - {node: pve2, path: "0000:02:00.0", id: "10de:2204", iommugroup: 4,
         subsystem_id: "10de:1467"}

- name: Add the card of a third node, and share all of them
  pve.fleet.mapping:
    type: pci
    name: gpu
    map:
      - {node: pve3, path: "0000:01:00.0", id: "10de:2204", iommugroup: 2,
         subsystem_id: "10de:1467"}
    mdev: true

- name: Map a USB key by its vendor and device
  pve.fleet.mapping:
    type: usb
    name: license-key
    map: [{node: pve1, id: "0529:0001"}]

- name: Delete a mapping
  pve.fleet.mapping:
    type: usb
    name: license-key
    state: absent
"""

RETURN = r"""
mapping:
  description: The result as it is afterwards, or in check mode as it would be. It is null if it is
    deleted.
  returned: success
  type: dict
  contains:
    type: {description: Its type., type: str, sample: pci}
    name: {description: Its name., type: str, sample: gpu}
    description: {description: Its description., type: str, sample: ''}
    map: {description: 'The entries, sorted by node.', type: list, elements: dict, sample:
      [{node: pve1, path: '0000:01:00.0', id: '10de:2204', iommugroup: 1}]}
    mdev: {description: Whether it is shared., type: bool, sample: false, returned: of PCI devices}
    live_migration_capable: {description: Whether a running VM can be migrated with it., type: bool,
      sample: false, returned: of PCI devices}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create mapping 'pci/gpu']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: map, status: null, path: null, upid: null, retryable: false,
    tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.mapping import (
    mapping_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.mapping import (
    MAPPING,
)

ENTRY = ModuleEntry(partial(run, MAPPING), mapping_spec(), name="mapping")
main = ENTRY.main

if __name__ == "__main__":
    main()
