#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from mapping.yml: do not edit.

DOCUMENTATION = r"""
module: mapping_info
short_description: Gather information about mappings of devices and directories
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the mappings of a type or of all types, with one request for each type.
  - A mapping is returned if the token has C(Mapping.Audit), C(Mapping.Use) or C(Mapping.Modify) on
    it.
options:
  type:
    description: Kind of the mappings. By default, all kinds are returned.
    type: str
    choices: [dir, pci, usb]
  name:
    description: Name of one mapping. By default, all are returned.
    type: str
  check_node:
    description: Node whose entries Proxmox VE compares with its devices and directories. The result
      is in RV(mappings[].checks). By default, nothing is compared.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.mapping}]
"""

EXAMPLES = r"""
- name: Read the mappings of all types
  pve.fleet.mapping_info:
  register: known

- name: List the PCI devices of pve1
  ansible.builtin.debug:
    msg: "{{ known.mappings | selectattr('type', 'eq', 'pci') | map(attribute='map') | flatten
      | selectattr('node', 'eq', 'pve1') }}"

- name: Compare the PCI mappings with the devices of pve1
  pve.fleet.mapping_info:
    type: pci
    check_node: pve1
  register: compared
"""

RETURN = r"""
mappings:
  description: The mappings, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    type: {description: Its type., type: str, sample: pci}
    name: {description: Its name., type: str, sample: gpu}
    description: {description: Its description., type: str, sample: ''}
    map: {description: 'The entries, sorted by node.', type: list, elements: dict, sample:
      [{node: pve1, path: '0000:01:00.0', id: '10de:2204', iommugroup: 1}]}
    mdev: {description: Whether it is shared., type: bool, sample: false, returned: of PCI devices}
    live_migration_capable: {description: Whether a running VM can be migrated with it., type: bool,
      sample: false, returned: of PCI devices}
    checks: {description: Errors and warnings of Proxmox VE about the entries of O(check_node).
      Empty if the devices exist as mapped., type: list, elements: dict, returned: with
      O(check_node), sample: [{severity: error, message: 'Invalid configuration: pci device
      ''0000:05:00.0'' not found'}]}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.mapping import (
    mapping_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.mapping import (
    run_mapping_info,
)

ENTRY = ModuleEntry(run_mapping_info, mapping_info_spec(), name="mapping_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
