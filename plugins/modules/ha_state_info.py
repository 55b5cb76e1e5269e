#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_state.yml: do not edit.

DOCUMENTATION = r"""
module: ha_state_info
short_description: Gather information about the HA manager
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the state of the HA manager, of its local part on each node, and of the HA resources.
    Two requests are made.
  - Ages are computed with the clock of the machine that runs the task.
  - The token needs C(Sys.Audit) on C(/).
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso:
  - module: pve.fleet.ha_state
  - module: pve.fleet.ha_resource_info
  - module: pve.fleet.cluster_info
"""

EXAMPLES = r"""
- name: Read the state of the HA manager
  pve.fleet.ha_state_info:
  register: ha

- name: Stop if a node is fenced or an HA resource needs help
  ansible.builtin.assert:
    that: ha.ha_state.quorate and not ha.ha_state.fenced and not ha.ha_state.errors

- name: Show the nodes in maintenance
  ansible.builtin.debug:
    msg: "{{ ha.ha_state.nodes | selectattr('mode', 'eq', 'maintenance') | map(attribute='node') }}"
"""

RETURN = r"""
ha_state:
  description: The HA manager.
  returned: success
  type: dict
  contains:
    armed_state: {description: 'V(armed), V(standby), V(disarming) or V(disarmed). Null before
      Proxmox VE 9.2.', type: str, sample: armed}
    resource_mode: {description: The resource mode. Null if the HA manager is armed., type: str}
    quorate: {description: Whether the cluster has a quorum., type: bool, sample: true}
    master: {description: The node that is the HA master. Null before the first HA resource.,
      type: str, sample: pve1}
    master_age: {description: Seconds since the master wrote its state. Null if unknown., type: int,
      sample: 4}
    nodes:
      description:
        - The nodes, sorted by name; empty before the first HA resource. C(state) is V(online),
          V(maintenance), V(unknown), V(fence) or V(gone).
        - C(mode) and C(lrm_state) are the values of the local resource manager (LRM), C(age) is the
          number of seconds since it wrote them, and C(status) is the text in the web interface.
          They are null if unknown.
      type: list
      elements: dict
      sample: [{node: pve1, state: online, mode: active, lrm_state: active, age: 3, status: 'pve1
        (active, watchdog active, Fri Nov 20 20:15:33 2026)'}]
    services: {description: 'HA resources, each with C(sid), C(node), C(state), C(request_state) and
      C(status).', type: list, elements: dict, sample: [{sid: 'vm:15046', node: pve1,
      state: started, request_state: started, status: 'vm:15046 (pve1, started)'}]}
    fenced: {description: Nodes that are being fenced., type: list, elements: str, sample: []}
    errors: {description: HA resources in state V(error)., type: list, elements: str, sample: []}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ha_state import (
    ha_state_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.ha_info import run

ENTRY = ModuleEntry(run, ha_state_info_spec(), name="ha_state_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
