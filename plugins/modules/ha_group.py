#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_group.yml: do not edit.

DOCUMENTATION = r"""
module: ha_group
short_description: Manage HA groups of Proxmox VE 8
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a group of nodes for resources of the HA manager.
    M(pve.fleet.ha_resource) assigns a guest to it.
  - Proxmox VE 9 has rules instead, and the task fails there. An upgrade converts the groups into
    rules of type V(node-affinity), see M(pve.fleet.ha_rule).
  - The token needs C(Sys.Console) and C(Sys.Audit) on C(/).
options:
  name:
    description: Name of the group.
    type: str
    required: true
  state:
    description: V(present) creates the group or updates settings that differ. V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  nodes:
    description: Nodes of the group, each with a priority if needed, such as V(pve1:2). Required for
      a new group. The list replaces the nodes of the group. By default, it is not changed.
    type: list
    elements: str
  restricted:
    description: Whether the resources of the group run only on O(nodes). Otherwise, they also run
      on other nodes if none of O(nodes) is online. By default, it is not changed.
    type: bool
  nofailback:
    description: Whether a resource stays on its node when a node of higher priority is online
      again. By default, it is not changed.
    type: bool
  comment:
    description: Comment on the group. An empty text removes it. By default, it is not changed.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.ha_group_info
  - module: pve.fleet.ha_resource
  - module: pve.fleet.ha_rule
"""

EXAMPLES = r"""
- name: Read the version of Proxmox VE
  pve.fleet.cluster_info:
  register: found

- name: Create a group of two nodes, with Proxmox VE 8 only
  pve.fleet.ha_group:
    name: fast
    nodes: ["pve1:2", pve2]
    restricted: true
  when: found.cluster.version is version('9.0', '<')

- name: Delete the group
  pve.fleet.ha_group:
    name: fast
    state: absent
  when: found.cluster.version is version('9.0', '<')
"""

RETURN = r"""
ha_group:
  description: The group as it is afterwards, or in check mode as it would be. It is null if the
    group is deleted. RV(pve.fleet.ha_group_info#module:ha_groups) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create HA group 'fast']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: NotSupported, reason: HA groups, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ha_group import (
    ha_group_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.group import (
    HA_GROUP,
)

ENTRY = ModuleEntry(partial(run, HA_GROUP), ha_group_spec(), name="ha_group")
main = ENTRY.main

if __name__ == "__main__":
    main()
