# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules drill and drill_info.

Written by `make options` from drill.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    COPIES = r"""
options:
  copies:
    description: Number of copies that exist at once, at most.
    type: int
    default: 3
  storage:
    description: Storage for all disks of copies that O(storage_map) does not name. By default,
      a disk is restored to the storage that it was on.
    type: str
  storage_map:
    description: The storage of disks of copies by the storage that they were on.
    type: dict
  node:
    description: The node of all copies. By default, each copy is placed like a new guest.
    type: str
  copy_pool:
    description: Resource pool of the copies. By default, they are in none.
    type: str
  network:
    description:
      - An isolated bridge or VNet for all NICs of the copies, which then are connected. Nothing
        checks that it leads nowhere.
      - By default, all NICs are disconnected.
    type: str
  vmid_range:
    description: First and last VMID of copies.
    type: list
    elements: int
    default: [900000, 909999]
  task_timeout:
    description:
      - Seconds to wait for a restore or a removal.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 10800
"""

    PLAN = r"""
options:
  record:
    description: The text of the record of earlier drills, C(drill.json) of the role
      P(pve.fleet.drill#role). An empty text means that there was none.
    type: str
    default: ''
  unproven_for:
    description: Only guests without a proven restore in this time, such as V(30d).
      By default, all guests are chosen.
    type: str
  sample:
    description: Number of guests at most. Guests without a proven restore for the longest
      time come first. By default, there is no limit.
    type: int
  storages:
    description: Storages on which archives are searched. By default, all storages with
      content V(backup).
    type: list
    elements: str
"""

    DOCUMENTATION = r"""
options:
  run:
    description: ID of the drill, as M(pve.fleet.drill_info) returns it.
    type: str
    required: true
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  state:
    description:
      - V(started) restores a copy of each guest in O(guests), starts it,
        and waits until it is up.
      - V(absent) removes the copies of O(run), and copies of drills that
        were interrupted, see O(abandoned_after).
    type: str
    choices: [started, absent]
    default: started
  guests:
    description: The guests to restore, at most O(copies), such as one of
      RV(pve.fleet.drill_info#module:rounds), whose other keys may stay. It
      has no effect on O(state=absent).
    type: list
    elements: dict
    default: []
    suboptions:
      vmid:
        description: VMID of the guest in the archive.
        type: int
        required: true
      archive:
        description: Volume of its archive.
        type: str
        required: true
  wait_timeout:
    description:
      - Seconds to wait for the guest agent of a copy that has one in its
        configuration.
      - Environment variable E(PROXMOX_WAIT_TIMEOUT).
    type: int
    default: 300
  settle:
    description: Seconds during which a copy without a guest agent must stay
      running.
    type: int
    default: 10
  abandoned_after:
    description: Age after which O(state=absent) also removes copies of other
      drills. It must be longer than a round takes.
    type: str
    default: 12h
"""
