#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_state.yml: do not edit.

DOCUMENTATION = r"""
module: ha_state
short_description: Arm and disarm the HA manager
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Disarms the HA manager of a cluster, for example before work on the cluster network, and arms it
    again. The task ends when all nodes have reached the new state.
  - The resource mode of a disarmed HA manager is not changed, because Proxmox VE ignores another
    mode until it is armed again. Such a task is refused.
  - Needs Proxmox VE 9.2 or newer. The token needs C(Sys.Console) and C(Sys.Audit) on C(/).
  - M(pve.fleet.cluster_info) returns the state as RV(pve.fleet.cluster_info#module:cluster.ha).
options:
  armed_state:
    description: V(disarmed) releases the watchdogs of all nodes, so no node is fenced and no guest
      is restarted on another node. V(armed) ends this.
    type: str
    required: true
    choices: [armed, disarmed]
  resource_mode:
    description:
      - Handling of HA resources while the HA manager is disarmed. With V(freeze), they keep their
        states, and requests to start, stop or move them wait. With V(ignore), they are started,
        stopped and moved like other guests.
      - Required with V(disarmed), and refused with V(armed).
    type: str
    choices: [freeze, ignore]
  wait_timeout:
    description:
      - Seconds to wait until the HA manager is armed or disarmed, including moves of guests by the
        HA manager.
      - Environment variable E(PROXMOX_WAIT_TIMEOUT).
    type: int
    default: 300
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.ha_state_info
  - module: pve.fleet.cluster_info
  - module: pve.fleet.ha_resource
"""

EXAMPLES = r"""
- name: Prevent fencing while the switches of the cluster network restart
  pve.fleet.ha_state:
    armed_state: disarmed
    resource_mode: freeze

- name: Arm the HA manager again
  pve.fleet.ha_state:
    armed_state: armed
"""

RETURN = r"""
ha_state:
  description: The state afterwards, or in check mode as it would be.
  returned: success
  type: dict
  contains:
    armed_state: {description: 'V(armed), V(standby), V(disarming) or V(disarmed). An armed HA
      manager without resources is in state V(standby).', type: str, sample: disarmed}
    resource_mode: {description: The resource mode. Null if the HA manager is armed., type: str,
      sample: freeze}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Disarm the HA manager with resource mode freeze]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Disarm the HA manager with resource mode freeze]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: resource mode, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ha_state import (
    ha_state_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.arming import (
    run,
)

ENTRY = ModuleEntry(
    run,
    ha_state_spec(),
    {"required_if": [("armed_state", "disarmed", ["resource_mode"])]},
    name="ha_state",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
