# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module rebalance.

Written by `make options` from rebalance.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  max_moves:
    description: The most guests that a run moves. With V(0), nothing moves, and the score is
      reported.
    type: int
    default: 5
  max_size:
    description:
      - The most data that the moves of a run copy, such as V(100G); a number without a unit is
        in GiB. It counts the memory of running VMs and the disks that only the node of a guest
        has.
    type: str
    default: 100G
  threshold:
    description:
      - Score at which the nodes are even enough, in percentage points. No guest moves while the
        score is not above it.
      - The score is the standard deviation of the shares of the nodes' memory that is given to
        guests. It is V(0) if all shares are equal.
    type: int
    default: 5
  tenants:
    description: Tenants whose guests may move. Without them, any guest may move.
    type: list
    elements: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  local_disks:
    description: Whether guests with disks that only their node has may move. These disks are
      copied.
    type: bool
    default: false
  restart_containers:
    description: Whether running containers may move. They are stopped, moved and started again.
    type: bool
    default: false
  move_stopped:
    description: Whether guests that do not run may move as well. Templates never move.
    type: bool
    default: false
  placement:
    description:
      - Rules about the nodes that the guests move to, see O(pve.fleet.vm#module:placement).
      - C(anti_affinity) and C(affinity) apply to the guests of a tenant that match the same entry.
    type: dict
  tenant_placement:
    description:
      - Rules by tenant, in the form of O(placement), whose entries override those of O(placement)
        for the guests of the tenant. A playbook takes them from C(defaults.placement) in the
        C(tenants) of an estate.
    type: dict
  parallel:
    description:
      - The number of guests that move at the same time.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 4
  transfer_rate:
    description: MiB per second that a move copies. The estimate of the time needs it.
    type: int
    default: 100
  windows:
    description:
      - Windows of time in which guests move, as O(pve.fleet.evacuation#module:windows). Outside
        of them, and if the moves take longer than the window lasts, nothing moves.
    type: list
    elements: str
  tenant_windows:
    description: Windows that tenants have agreed to, by tenant. Outside of them, the tenant's
      guests do not move.
    type: dict
  task_timeout:
    description:
      - Seconds that the move of a guest may take.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 3600
"""
