#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from evacuation.yml: do not edit.

DOCUMENTATION = r"""
module: evacuation
short_description: Move the guests of a node away and back
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Moves the guests of a node to other nodes before a maintenance, and returns them afterwards.
  - Before anything moves, it checks quorum, HA manager, Ceph, running tasks, locks and the free
    capacity of the other nodes, and names each guest that cannot leave with the reason. Check mode
    shows the whole plan with an estimate of the duration.
  - The guests to return are recorded in the notes of the node, which survive reboots and can be
    read by any controller. After an interruption, the same task continues.
  - While the maintenance of another node is not finished, nothing is moved.
options:
  node:
    description: Node whose guests leave, or return.
    type: str
    required: true
  state:
    description:
      - V(evacuated) checks that the cluster can lose the node, records its guests in the notes of
        the node, and moves them to other nodes.
      - V(recorded) does the same, but moves nothing. It allows steps between the record and the
        moves, such as the maintenance mode of the HA manager.
      - V(complete) waits until the node is back and complete, and writes nothing. The node is
        complete if it is online in a quorate cluster, with the same storages and services and no
        older version than before.
      - V(returned) also waits for this, then returns the recorded guests in start order, and
        removes the record.
      - V(next) records that the maintenance of the node follows, and moves nothing. It continues a
        round on a node of another cluster, which O(next_node) cannot do.
    type: str
    choices: [evacuated, recorded, complete, returned, next]
    default: evacuated
  unmovable:
    description:
      - What happens to a guest that cannot leave, such as a VM that uses a device of its node.
      - With V(fail), nothing is moved, and the error names each such guest and the reason. V(leave)
        leaves them on the node. V(shutdown) shuts them down, and O(state=returned) starts them
        again.
    type: str
    choices: [fail, leave, shutdown]
    default: fail
  restart_containers:
    description: Whether running containers may leave. They are stopped, moved and started again.
    type: bool
    default: false
  move_stopped:
    description: Whether guests that do not run also leave. Templates stay.
    type: bool
    default: false
  ha_maintenance:
    description:
      - Whether the HA manager moves the guests that it manages, because the node is or will be in
        maintenance mode. This module then waits for these guests.
      - With V(false), guests of the HA manager are moved to nodes on which the HA manager leaves
        them. A guest that it would return immediately cannot leave.
    type: bool
    default: false
  placement:
    description:
      - Rules for the target nodes of the guests, see O(pve.fleet.vm#module:placement).
      - C(anti_affinity) and C(affinity) apply to the guests of a tenant that match the same entry.
    type: dict
  parallel:
    description:
      - Number of guests that move at the same time.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 4
  transfer_rate:
    description: Transfer rate of a move in MiB/s, for the estimate of the duration.
    type: int
    default: 100
  extra_votes:
    description: Votes of a QDevice. Each node counts as one vote.
    type: int
    default: 0
  windows:
    description:
      - Time windows in which guests leave, such as V(22:00-05:00), optionally with the days on
        which they begin, such as V(sat,sun 22:00-05:00). Times are in the local time of the system
        that runs the module.
      - A node is not evacuated outside of the windows, or if the moves would take longer than the
        window lasts. Guests return at any time.
    type: list
    elements: str
  tenant_windows:
    description: Time windows that tenants have agreed to, by tenant. Outside of its windows, a
      tenant's guests cannot leave.
    type: dict
  ceph_noout:
    description: Whether the Ceph flag C(noout) is set from the evacuation until the node is back.
    type: bool
    default: true
  expected_version:
    description:
      - Version of Proxmox VE that the node must have with O(state=returned), such as V(9.2.12).
      - By default, the version must not be older than before.
    type: str
  rebooted:
    description: Whether the node is complete only if it has rebooted since it was evacuated.
    type: bool
    default: false
  next_node:
    description: Node of the same cluster whose maintenance follows. With O(state=returned), this is
      recorded in its notes.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  wait_timeout:
    description:
      - Seconds to wait until the node is back and complete.
      - Environment variable E(PROXMOX_WAIT_TIMEOUT).
    type: int
    default: 900
  task_timeout:
    description:
      - Seconds that the move of a guest may take.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 3600
  shutdown_timeout:
    description:
      - Seconds that a guest may take to shut down.
      - Environment variable E(PROXMOX_SHUTDOWN_TIMEOUT).
    type: int
    default: 180
extends_documentation_fragment:
  - pve.fleet.plan_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.evacuation_info
  - module: pve.fleet.node_info
  - module: pve.fleet.vm
"""

EXAMPLES = r"""
- name: Show which guest would move where, and the estimated duration
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
      V(returning), V(none) if no maintenance is recorded, and V(maintained) if the plan of
      O(apply_plan) has maintained the node.', type: str, sample: evacuated}
    guests: {description: 'The guests, each with C(kind), C(vmid), C(name), C(status), C(action),
      C(target), C(reason) and C(seconds). The action is V(migrate), V(restart), V(ha), V(shutdown),
      V(stay) or V(start).', type: list, elements: dict, sample: [{vmid: 101, name: web1,
      action: migrate, target: pve3, reason: 'least_used: ...', seconds: 46}]}
    resting: {description: Number of guests that do not run and therefore stay., type: int,
      sample: 2}
    seconds: {description: Estimated duration of all moves in seconds., type: int, sample: 340}
report:
  description: 'Lines to print: one for each change, which begins with C(+) for a creation, C(~) for
    a change, C(-) for a removal or C(!) for a failure, and a last line with the counts. It begins
    with C(Plan) in check mode, otherwise with C(Done).'
  returned: success
  type: list
  elements: str
  sample: ['~ acme/web1  moves to node pve3, about 46 s', '  node pve2: pending, about 46 s', 'Plan:
    1 to change']
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Record the guests of node pve2 in its notes]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: NodeUnhealthy, reason: cannot lose the node, status: null, path: null,
    upid: null, retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.evacuation import (
    evacuation_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.run import run

ENTRY = ModuleEntry(
    run,
    evacuation_spec(),
    plans=True,
    plan_subject="node",
    names={
        "placement.nodes": "node",
        "placement.exclude": "node",
        "placement.max_vms_per_node": "node",
        "tenant_windows": "tenant",
        "next_node": "node",
    },
    name="evacuation",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
