#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from hardware_info.yml: do not edit.

DOCUMENTATION = r"""
module: hardware_info
short_description: Gather information about PCI and USB devices of nodes
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the PCI or USB devices of one node or of all nodes. One request is made for each node.
  - Each device has an entry for O(pve.fleet.mapping#module:map) of M(pve.fleet.mapping).
  - A node that cannot be read does not fail the task. RV(missing) has the reason, and a warning is
    shown. The task fails if no node can be read.
  - PCI devices need C(Sys.Audit) or C(Sys.Modify) on C(/), USB devices need C(Sys.Modify) on C(/).
options:
  type:
    description: Kind of the devices.
    type: str
    required: true
    choices: [pci, usb]
  node:
    description: Name of the node. By default, all nodes are read.
    type: str
  pci_class_blacklist:
    description: Classes of PCI devices to exclude, such as V(05) for memory controllers, V(06) for
      bridges and V(0b) for processors. By default, these three are excluded. An empty list returns
      all devices. Refused with O(type=usb).
    type: list
    elements: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso:
  - module: pve.fleet.mapping
  - module: pve.fleet.mapping_info
  - module: pve.fleet.node_info
"""

EXAMPLES = r"""
- name: Read the PCI devices of all nodes
  pve.fleet.hardware_info:
    type: pci
  register: hardware

- name: Map all graphics cards of one model
  pve.fleet.mapping:
    type: pci
    name: gpu
    map: "{{ hardware.devices | map(attribute='map') | selectattr('id', 'eq', '10de:2204') }}"

- name: Read the USB devices of a node
  pve.fleet.hardware_info:
    type: usb
    node: pve1
  register: ports
"""

RETURN = r"""
devices:
  description: The devices, sorted by node.
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: Its node., type: str, sample: pve1}
    class: {description: Its class., type: str, sample: '0x030000', returned: of PCI devices}
    vendor_name: {description: 'Name of its vendor, null if unknown.', type: str, sample: NVIDIA
      Corporation}
    device_name: {description: 'Its name, null if unknown.', type: str, sample: GA102}
    mdev: {description: Whether it can be shared as mediated devices., type: bool, sample: false,
      returned: of PCI devices}
    serial: {description: 'Its serial number, null if unknown.', type: str, returned: of USB
      devices}
    speed: {description: Its speed in Mbit/s., type: str, sample: '480', returned: of USB devices}
    map:
      description:
        - Its entry for a mapping. C(path) is the address of a PCI device or the port of a USB
          device. A root hub has no port.
        - C(iommugroup) and C(subsystem_id) are included for a PCI device that has them.
      type: dict
      sample: {node: pve1, path: '0000:01:00.0', id: '10de:2204', iommugroup: 1,
        subsystem_id: '10de:1467'}
missing:
  description: Nodes that could not be read, each with C(node), C(category) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: []
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.hardware_info import (
    hardware_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.hardware_info import (
    run,
)

ENTRY = ModuleEntry(run, hardware_info_spec(), name="hardware_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
