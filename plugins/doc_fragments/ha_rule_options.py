# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules ha_rule and ha_rule_info.

Written by `make options` from ha_rule.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the rule.
    type: str
    required: true
  state:
    description: V(present) creates the rule or changes what differs, V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  type:
    description:
      - V(node-affinity) selects the nodes on which the resources run, V(resource-affinity) keeps
        them together or apart.
      - Required for a new rule. It cannot be changed.
    type: str
    choices: [node-affinity, resource-affinity]
  resources:
    description: HA resources of the rule, such as V(vm:100). By default, they are not changed.
    type: list
    elements: str
  exact:
    description: Whether resources that O(resources) does not list are taken out of the rule.
    type: bool
    default: false
  nodes:
    description: Nodes of a rule of type V(node-affinity), each with a priority if needed, such
      as V(pve1:2). The list replaces the nodes of the rule. By default, it is not changed.
    type: list
    elements: str
  strict:
    description: Whether the resources of a rule of type V(node-affinity) run on O(nodes) only.
      Otherwise they run on other nodes as well if none of O(nodes) is online. By default, it is
      not changed.
    type: bool
  affinity:
    description: Whether the resources of a rule of type V(resource-affinity) run on the same node
      (V(positive)) or on different nodes (V(negative)). By default, it is not changed.
    type: str
    choices: [positive, negative]
  disable:
    description: Whether the rule has no effect. By default, it is not changed.
    type: bool
  comment:
    description: Comment on the rule. An empty text removes it. By default, it is not changed.
    type: str
  tenant:
    description: Tenant to which all guests of the rule must belong. A guest without exactly the
      tag of this tenant is refused. By default, guests of every tenant are accepted.
    type: str
"""

    INFO = r"""
options:
  name:
    description: Name of one rule. By default, all rules are returned.
    type: str
"""
