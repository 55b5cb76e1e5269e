#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from evacuation.yml: do not edit.

DOCUMENTATION = r"""
module: evacuation_info
short_description: List maintenances of nodes that are not finished
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the records that module M(pve.fleet.evacuation) keeps in the notes of nodes. One request
    is made for each online node.
  - The record of an offline node cannot be read.
  - The token needs C(Sys.Audit) on C(/).
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.evacuation}]
"""

EXAMPLES = r"""
- name: List nodes whose guests are away
  pve.fleet.evacuation_info:
  register: found

- name: Stop if a maintenance is not finished
  ansible.builtin.assert:
    that: found.maintenances | length == 0
"""

RETURN = r"""
maintenances:
  description: The maintenances, by node. C(phase) is one of V(pending), V(evacuating), V(evacuated)
    and V(returning).
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: Name of the node., type: str, sample: pve2}
    phase: {description: Phase of the maintenance., type: str, sample: evacuated}
    since: {description: Time of the first write., type: str, sample: '2026-11-25T22:00:00Z'}
    guests: {description: VMIDs of the guests to return., type: list, elements: int, sample: [101,
      102]}
    stopped: {description: VMIDs of the guests that were shut down., type: list, elements: int,
      sample: []}
offline:
  description: Nodes that are offline.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.evacuation import (
    evacuation_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.run import run_info

ENTRY = ModuleEntry(run_info, evacuation_info_spec(), name="evacuation_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
