#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from rebalance.yml: do not edit.

DOCUMENTATION = r"""
module: rebalance
short_description: Move guests to use the nodes evenly
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Moves guests from nodes with a large share of allocated memory to nodes with a small share, the
    most effective move first. Check mode shows each move, its reason, and the score before and
    after.
  - The target of each guest is selected as described in O(pve.fleet.vm#module:placement), with
    affinity and capacity, and within the rules of the HA manager. Guests with a rule that keeps
    them with other guests stay.
  - If the HA manager itself balances its resources (C(crs.ha_auto_rebalance) with C(ha=static) or
    C(ha=dynamic), since Proxmox VE 9.2), its resources also stay.
  - While the maintenance of a node is not finished, or the cluster has no quorum, nothing moves.
  - No record is needed after an interruption. The next run waits for running moves, and plans the
    rest with its own limits.
options:
  max_moves:
    description: Maximum number of guests that a run moves. With V(0), nothing moves, and only the
      score is reported.
    type: int
    default: 5
  max_size:
    description:
      - Maximum amount of data that the moves of a run copy, such as V(100G). A number without a
        unit is in GiB. The memory of running VMs and disks on local storages count.
    type: str
    default: 100G
  threshold:
    description:
      - Score up to which the nodes count as balanced, in percentage points. Guests only move if the
        score is above it.
      - The score is the standard deviation of the nodes' shares of memory that is allocated to
        guests. It is V(0) if all shares are equal.
    type: int
    default: 5
  tenants:
    description: Tenants whose guests may move. By default, any guest may move.
    type: list
    elements: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  local_disks:
    description: Whether guests with disks on local storages may move. These disks are copied.
    type: bool
    default: false
  restart_containers:
    description: Whether running containers may move. They are stopped, moved and started again.
    type: bool
    default: false
  move_stopped:
    description: Whether guests that do not run may also move. Templates never move.
    type: bool
    default: false
  placement:
    description:
      - Rules for the target nodes of the guests, see O(pve.fleet.vm#module:placement).
      - C(anti_affinity) and C(affinity) apply to the guests of a tenant that match the same entry.
    type: dict
  tenant_placement:
    description:
      - Rules by tenant, in the form of O(placement). For the guests of the tenant, they override
        the entries of O(placement). A playbook can read them from C(defaults.placement) in the
        C(tenants) of an estate.
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
  windows:
    description:
      - Time windows in which guests move, in the form of O(pve.fleet.evacuation#module:windows).
        Nothing moves outside of them, or if the moves would take longer than the window lasts.
    type: list
    elements: str
  tenant_windows:
    description: Time windows that tenants have agreed to, by tenant. Outside of its windows, a
      tenant's guests do not move.
    type: dict
  task_timeout:
    description:
      - Seconds that the move of a guest may take.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 3600
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.evacuation
  - module: pve.fleet.vm
  - module: pve.fleet.cluster_options
"""

EXAMPLES = r"""
- name: Show which guests would move, and the score before and after
  pve.fleet.rebalance:
    max_moves: 10
  check_mode: true
  register: planned

- name: Print the plan
  ansible.builtin.debug:
    var: planned.report

- name: Move at most three guests of a tenant, at night
  pve.fleet.rebalance:
    tenants: [acme]
    max_moves: 3
    max_size: 64G
    windows: ["22:00-05:00"]
    tenant_placement:
      acme:
        anti_affinity: [db]
  check_mode: true
"""

RETURN = r"""
rebalance:
  description: The score and the moves.
  returned: success
  type: dict
  contains:
    score_before: {description: Score before the moves., type: float, sample: 14.2}
    score_after: {description: 'Score after the moves, in check mode the predicted score.',
      type: float, sample: 3.1}
    nodes: {description: 'The nodes that take part, each with C(node), C(share_before) and
      C(share_after) in percent.', type: list, elements: dict, sample: [{node: pve1,
      share_before: 62.5, share_after: 48.0}]}
    moves: {description: 'The guests that move, each with C(kind), C(vmid), C(name), C(status),
      C(action), C(target), C(reason) and C(seconds).', type: list, elements: dict, sample:
      [{vmid: 101, name: web1, action: migrate, target: pve3, reason: 'least_used: ...',
      seconds: 46}]}
    stays: {description: 'The guests that cannot move, in the same form.', type: list,
      elements: dict, sample: []}
    size: {description: Bytes that the moves copy., type: int, sample: 8589934592}
    seconds: {description: Estimated duration of all moves in seconds., type: int, sample: 120}
report:
  description: 'Lines to print: one for each change, which begins with C(+) for a creation, C(~) for
    a change, C(-) for a removal or C(!) for a failure, and a last line with the counts. It begins
    with C(Plan) in check mode, otherwise with C(Done).'
  returned: success
  type: list
  elements: str
  sample: ['~ acme/web1  moves to node pve3, about 46 s', '  score 14.2 before, 3.1 after 1 move of
    8 GiB', 'Done: 1 changed']
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Migrate VM 'web1' (101) to node pve3]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: NodeUnhealthy, reason: cluster not in order, status: null, path: null,
    upid: null, retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.rebalance import (
    rebalance_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.rebalance.run import (
    run,
)

ENTRY = ModuleEntry(
    run,
    rebalance_spec(),
    names={
        "tenants": "tenant",
        "placement.nodes": "node",
        "placement.exclude": "node",
        "placement.max_vms_per_node": "node",
        "tenant_placement": "estate_tenant",
        "tenant_placement.*.nodes": "node",
        "tenant_placement.*.exclude": "node",
        "tenant_placement.*.max_vms_per_node": "node",
        "tenant_windows": "tenant",
    },
    name="rebalance",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
