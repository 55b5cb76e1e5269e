#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_rule.yml: do not edit.

DOCUMENTATION = r"""
module: ha_rule
short_description: Manage rules of the HA manager
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a rule about the nodes of HA resources.
  - Rules that contradict each other are refused before the first write, in check mode too. The
    message names both rules and the guests.
  - Resources that are not listed are kept unless O(exact) is set.
  - Needs Proxmox VE 9.0 or newer. Older versions have HA groups, which M(pve.fleet.ha_resource) can
    set.
  - The token needs C(Sys.Console) and C(Sys.Audit) on C(/), and C(VM.Audit) on the guests if
    O(tenant) is set.
options:
  name:
    description: Name of the rule.
    type: str
    required: true
  state:
    description: V(present) creates the rule or updates settings that differ. V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  type:
    description:
      - V(node-affinity) selects the nodes on which the resources run. V(resource-affinity) keeps
        resources together or apart.
      - Required for a new rule. It cannot be changed.
    type: str
    choices: [node-affinity, resource-affinity]
  resources:
    description: HA resources of the rule, such as V(vm:100). By default, they are not changed.
    type: list
    elements: str
  exact:
    description: Whether resources that O(resources) does not list are removed from the rule.
    type: bool
    default: false
  nodes:
    description: Nodes of a rule of type V(node-affinity), which O(affinity) selects or excludes,
      each with a priority if needed, such as V(pve1:2). The list replaces the nodes of the rule. By
      default, it is not changed.
    type: list
    elements: str
  strict:
    description: Whether the resources of a rule of type V(node-affinity) never run on the nodes
      that the rule excludes. Otherwise, they run on these nodes if no other node is online. By
      default, it is not changed.
    type: bool
  affinity:
    description:
      - Whether the resources of a rule of type V(resource-affinity) run on the same node
        (V(positive)) or on different nodes (V(negative)). Required for a new rule of this type.
      - Whether the resources of a rule of type V(node-affinity) run on O(nodes) (V(positive), the
        default of a new rule) or on the other nodes (V(negative)). V(negative) needs Proxmox VE
        9.2.6, and nodes without a priority.
      - By default, it is not changed.
    type: str
    choices: [positive, negative]
  disable:
    description: Whether the rule is disabled. By default, it is not changed.
    type: bool
  comment:
    description: Comment on the rule. An empty text removes it. By default, it is not changed.
    type: str
  tenant:
    description: Tenant to which all guests of the rule must belong, before and after the change. A
      guest without exactly the tag of this tenant is refused. By default, guests of every tenant
      are accepted.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.ha_rule_info}, {module: pve.fleet.ha_resource}]
"""

EXAMPLES = r"""
- name: Create two VMs
  pve.fleet.vm:
    name: "{{ item }}"
    node: pve1
    blank: true
  loop: [ha-one, ha-two]
  register: pair

- name: Add them to the HA manager
  pve.fleet.ha_resource:
    sid: "vm:{{ item.vm.vmid }}"
    request_state: stopped
  loop: "{{ pair.results }}"

- name: Keep both on different nodes
  pve.fleet.ha_rule:
    name: apart
    type: resource-affinity
    affinity: negative
    resources: "{{ pair.results | map(attribute='vm.vmid') | map('regex_replace', '^', 'vm:') }}"

- name: Restrict one of them to two nodes, with a preference for pve2
  pve.fleet.ha_rule:
    name: preferred
    type: node-affinity
    nodes: [pve2, pve3]
    resources: ["vm:{{ pair.results[0].vm.vmid }}"]
    comment: nodes of the fast storage

- name: Disable a rule during a maintenance
  pve.fleet.ha_rule:
    name: apart
    disable: true

- name: Delete it
  pve.fleet.ha_rule:
    name: apart
    state: absent
"""

RETURN = r"""
ha_rule:
  description: The rule as it is afterwards, or in check mode as it would be. It is null if the rule
    is deleted. RV(pve.fleet.ha_rule_info#module:ha_rules) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create HA rule 'apart']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: contradiction, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ha_rule import (
    ha_rule_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.run import (
    run_rule,
)

ENTRY = ModuleEntry(run_rule, ha_rule_spec(), name="ha_rule")
main = ENTRY.main

if __name__ == "__main__":
    main()
