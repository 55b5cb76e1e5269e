#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from rebalance.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: rebalance
short_description: Move guests to use the nodes evenly
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Moves guests from nodes whose memory is given away to a large share to nodes with a small
    share, the most useful move first. Check mode shows each move, its reason, and the score before
    and after.
  - The target of each guest is chosen as O(pve.fleet.vm#module:placement) describes it, with
    affinity and room, and within the rules of the HA manager. Guests with a rule that keeps them
    with others stay.
  - If the HA manager itself balances its resources (C(crs.ha_auto_rebalance), since Proxmox VE
    9.2), they stay as well.
  - While the maintenance of a node is not finished, or the cluster has no quorum, nothing moves.
  - A run that was interrupted needs no record. The next run waits for moves that are running,
    and plans the rest with a budget of its own.
extends_documentation_fragment:
  - pve.fleet.rebalance_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.evacuation
  - module: pve.fleet.vm
  - module: pve.fleet.cluster_options
"""

EXAMPLES = r"""
- name: Show what would move, and the score before and after
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
    score_after: {description: 'Score after the moves, in check mode as foreseen.', type: float,
      sample: 3.1}
    nodes: {description: 'The nodes that take part, each with C(node), C(share_before)
        and C(share_after) in percent.', type: list, elements: dict, sample: [{node: pve1,
          share_before: 62.5, share_after: 48.0}]}
    moves: {description: 'The guests that move, each with C(kind), C(vmid), C(name), C(status),
        C(action), C(target), C(reason) and C(seconds).', type: list, elements: dict,
      sample: [{vmid: 101, name: web1, action: migrate, target: pve3, reason: 'least_used:
            ...', seconds: 46}]}
    stays: {description: 'The guests that cannot move, in the same form.', type: list,
      elements: dict, sample: []}
    size: {description: Bytes that the moves copy., type: int, sample: 8589934592}
    seconds: {description: Estimated seconds of all moves., type: int, sample: 120}
report:
  description: One line for the score and one for each guest, for people.
  returned: success
  type: list
  elements: str
  sample: ['score 14.2 before, 3.1 after 3 moves of 8 GiB']
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Migrate VM 'web1' (101) to node pve3]
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Migrate VM 'web1' (101) to node pve3]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: NodeUnhealthy
    reason: cluster not in order
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._rebalance.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.rebalance import (
    rebalance_spec,
)

ENTRY = Entry(run, rebalance_spec(), name="rebalance")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
