# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules mapping and mapping_info.

Written by `make options` from mapping.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  type:
    description: 'Kind of the mapping: PCI devices, USB devices or directories.'
    type: str
    required: true
    choices: [dir, pci, usb]
  name:
    description: Name of the mapping, which VMs refer to.
    type: str
    required: true
  state:
    description: V(present) creates the mapping or changes what differs, V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  description:
    description: Description of the mapping. An empty text removes it. By default, it is not
      changed.
    type: str
  map:
    description: Devices or directories of the nodes. The entries of a listed node replace those
      of this node, other nodes keep theirs. Required for a new mapping. By default, they are
      not changed.
    type: list
    elements: dict
    suboptions:
      node:
        description: Name of the node.
        type: str
        required: true
      path:
        description: Address of a PCI device such as V(0000:01:00.0), port of a USB device such
          as V(1-2), or a directory. Optional with V(usb).
        type: str
      id:
        description: Vendor and device, such as V(8086:10fb). Required for PCI and USB devices.
        type: str
      iommugroup:
        description: IOMMU group of a PCI device.
        type: int
      subsystem_id:
        description: Subsystem of a PCI device, such as V(8086:0001).
        type: str
      description:
        description: Description of the device.
        type: str
  exact:
    description: Whether nodes that O(map) does not list lose their entries.
    type: bool
    default: false
  mdev:
    description: Whether a PCI device is shared as mediated devices. By default, it is not changed.
    type: bool
  live_migration_capable:
    description: Whether a VM with this PCI device can be migrated while it runs. By default,
      it is not changed.
    type: bool
"""

    INFO = r"""
options:
  type:
    description: Kind of the mappings. By default, all kinds are returned.
    type: str
    choices: [dir, pci, usb]
  name:
    description: Name of one mapping. By default, all are returned.
    type: str
"""
