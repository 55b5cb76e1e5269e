#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_group.yml: do not edit.

DOCUMENTATION = r"""
module: ha_group_info
short_description: Gather information about HA groups of Proxmox VE 8
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one group of the HA manager or all of them. One request is made.
  - Proxmox VE 9 has rules instead, and the task fails there. The token needs C(Sys.Audit) on C(/).
options:
  name:
    description: Name of one group. By default, all groups are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.ha_group}, {module: pve.fleet.ha_rule_info}]
"""

EXAMPLES = r"""
- name: Read all groups
  pve.fleet.ha_group_info:
  register: known
  ignore_errors: true

- name: Show their nodes
  ansible.builtin.debug:
    msg: "{{ known.ha_groups | map(attribute='nodes') }}"
  when: known is success
"""

RETURN = r"""
ha_groups:
  description: The groups, sorted by name. Empty if there is no group of that name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: fast}
    nodes: {description: 'Its nodes, with their priorities.', type: list, elements: str, sample:
      ['pve1:2', pve2]}
    restricted: {description: Whether other nodes are excluded., type: bool, sample: true}
    nofailback: {description: Whether resources stay on their nodes., type: bool, sample: false}
    comment: {description: Its comment., type: str, sample: ''}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ha_group import (
    ha_group_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.group import (
    HA_GROUP,
)

ENTRY = ModuleEntry(partial(run_info, HA_GROUP), ha_group_info_spec(), name="ha_group_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
