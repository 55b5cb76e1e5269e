#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_rule.yml: do not edit.

DOCUMENTATION = r"""
module: ha_rule_info
short_description: Gather information about rules of the HA manager
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one rule of the HA manager or all of them. One request is made.
  - Needs Proxmox VE 9.0 or newer. The token needs C(Sys.Audit) on C(/).
options:
  name:
    description: Name of one rule. By default, all rules are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.ha_rule}]
"""

EXAMPLES = r"""
- name: Read all rules
  pve.fleet.ha_rule_info:
  register: known

- name: List the disabled rules
  ansible.builtin.debug:
    msg: "{{ known.ha_rules | selectattr('disable') | map(attribute='name') }}"
"""

RETURN = r"""
ha_rules:
  description: The rules, sorted by name. Empty if there is no rule of that name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: apart}
    type: {description: Its type., type: str, sample: resource-affinity}
    resources: {description: Its HA resources., type: list, elements: str, sample: ['vm:100',
      'vm:101']}
    nodes: {description: Its nodes., type: list, elements: str, returned: with type
      V(node-affinity)}
    strict: {description: Whether other nodes are excluded., type: bool, returned: with type
      V(node-affinity)}
    affinity: {description: 'Together or apart, or with type V(node-affinity), on the nodes or away
      from them.', type: str, sample: negative}
    disable: {description: Whether it is disabled., type: bool, sample: false}
    comment: {description: Its comment., type: str, sample: ''}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ha_rule import (
    ha_rule_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.rule import (
    HA_RULE,
)

ENTRY = ModuleEntry(partial(run_info, HA_RULE), ha_rule_info_spec(), name="ha_rule_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
