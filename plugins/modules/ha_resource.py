#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_resource.yml: do not edit.

DOCUMENTATION = r"""
module: ha_resource
short_description: Manage resources of the HA manager
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Adds a VM or container to the HA manager, changes its HA settings, and removes it again.
  - A removed resource is also removed from its HA rules, and a warning lists them.
  - The token needs C(Sys.Console) and C(Sys.Audit) on C(/), and C(VM.Audit) on the guest.
options:
  sid:
    description: ID of the resource, V(vm:100) for a VM and V(ct:100) for a container.
    type: str
    required: true
  state:
    description: V(present) adds the guest to the HA manager, or updates settings that differ.
      V(absent) removes it from the HA manager. The guest itself is not changed.
    type: str
    choices: [present, absent]
    default: present
  request_state:
    description:
      - State that the HA manager maintains. V(started) starts the guest and restarts it on another
        node if its node fails, V(stopped) keeps it stopped and moves it if its node fails,
        V(disabled) keeps it stopped on its node, V(ignored) suspends its management.
      - By default, V(started) for a new resource. Otherwise it is not changed.
    type: str
    choices: [started, stopped, disabled, ignored]
  max_restart:
    description: Number of attempts to restart the guest on its node after a failed start. By
      default, V(1) for a new resource. Otherwise it is not changed.
    type: int
  max_relocate:
    description: Number of attempts to start the guest on another node. By default, V(1) for a new
      resource. Otherwise it is not changed.
    type: int
  failback:
    description: Whether the guest moves back to a node of higher priority when that node is online
      again. Needs Proxmox VE 9.0. By default, V(true) for a new resource. Otherwise it is not
      changed.
    type: bool
  group:
    description: HA group of the resource, with Proxmox VE 8 only. An empty text removes it. By
      default, it is not changed.
    type: str
  comment:
    description: Comment on the resource. An empty text removes it. By default, it is not changed.
    type: str
  tenant:
    description: Tenant to which the guest must belong. A guest without exactly the tag of this
      tenant is refused. By default, guests of every tenant are accepted.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.ha_resource_info
  - module: pve.fleet.ha_rule
  - module: pve.fleet.vm
"""

EXAMPLES = r"""
- name: Create a VM
  pve.fleet.vm:
    name: critical
    node: pve1
    blank: true
  register: critical

- name: Start it, and restart it on another node if its node fails
  pve.fleet.ha_resource:
    sid: "vm:{{ critical.vm.vmid }}"
    request_state: started
    max_restart: 2

- name: Suspend its management during a maintenance
  pve.fleet.ha_resource:
    sid: "vm:{{ critical.vm.vmid }}"
    request_state: ignored

- name: Remove it from the HA manager
  pve.fleet.ha_resource:
    sid: "vm:{{ critical.vm.vmid }}"
    state: absent
"""

RETURN = r"""
ha_resource:
  description: The resource as it is afterwards, or in check mode as it would be. It is null if it
    is removed. RV(pve.fleet.ha_resource_info#module:ha_resources) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: ['Create HA resource ''vm:100''']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: another tenant, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ha_resource import (
    ha_resource_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.run import (
    run_resource,
)

ENTRY = ModuleEntry(run_resource, ha_resource_spec(), name="ha_resource")
main = ENTRY.main

if __name__ == "__main__":
    main()
