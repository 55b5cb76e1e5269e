#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from evacuation.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: evacuation
short_description: Move the guests of a node away and back
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Moves the guests of a node to other nodes before a maintenance, and returns them afterwards.
  - Before anything moves, it checks quorum, HA manager, Ceph, running tasks, locks and the room
    on the other nodes, and names each guest that cannot leave with the reason. Check mode shows
    the whole plan with an estimate of the time.
  - The guests to return are recorded in the notes of the node, which survive reboots and can be
    read by any controller. After an interruption, the same task continues.
  - While the maintenance of another node is not finished, nothing is moved.
extends_documentation_fragment:
  - pve.fleet.evacuation_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.evacuation_info
  - module: pve.fleet.node_info
  - module: pve.fleet.vm
"""

EXAMPLES = r"""
- name: Show which guest would move where, and how long that takes
  pve.fleet.evacuation:
    node: pve2
    restart_containers: true
  check_mode: true
  register: planned

- name: Print the plan
  ansible.builtin.debug:
    var: planned.report

- name: Evacuate the node, and shut down the guests that cannot leave
  pve.fleet.evacuation:
    node: pve2
    unmovable: shutdown
    restart_containers: true
    parallel: 2
    placement:
      memory_overcommit: 1.0

- name: Return the guests when the node is back
  pve.fleet.evacuation:
    node: pve2
    state: returned
    wait_timeout: 1200
"""

RETURN = r"""
evacuation:
  description: The node and its guests.
  returned: success
  type: dict
  contains:
    node: {description: Name of the node., type: str, sample: pve2}
    phase: {description: 'V(pending) before the first write, V(evacuating), V(evacuated),
        V(returning), and V(none) if no maintenance is recorded.', type: str, sample: evacuated}
    guests: {description: 'The guests, each with C(kind), C(vmid), C(name), C(status), C(action),
        C(target), C(reason) and C(seconds). The action is V(migrate), V(restart), V(ha),
        V(shutdown), V(stay) or V(start).', type: list, elements: dict, sample: [{vmid: 101,
          name: web1, action: migrate, target: pve3, reason: 'least_used: ...', seconds: 46}]}
    resting: {description: Number of guests that do not run and stay., type: int, sample: 2}
    seconds: {description: Estimated seconds of all moves., type: int, sample: 340}
report:
  description: One line for the node and one for each guest, for people.
  returned: success
  type: list
  elements: str
  sample: ['node pve2: evacuated, 12 guests in about 6 min']
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Record the guests of node pve2 in its notes]
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Record the guests of node pve2 in its notes]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: NodeUnhealthy
    reason: cannot lose the node
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._maintenance.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.evacuation import (
    evacuation_spec,
)

ENTRY = Entry(run, evacuation_spec(), name="evacuation")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
