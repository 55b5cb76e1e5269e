# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from drill.yml: do not edit.
"""The options of modules drill and drill_info."""


class ModuleDocFragment:
    COPIES = r"""
options:
  copies:
    description: Maximum number of copies that exist at the same time.
    type: int
    default: 3
  storage:
    description: Storage for all disks of copies that O(storage_map) does not name. By default, a
      disk is restored to its former storage.
    type: str
  storage_map:
    description: The storage of the copies' disks, by their former storage.
    type: dict
  node:
    description: The node of all copies. By default, each copy is placed like a new guest.
    type: str
  copy_pool:
    description: Resource pool of the copies. By default, they are not in a pool.
    type: str
  network:
    description:
      - An isolated bridge or VNet for all NICs of the copies, which are then connected. The module
        does not check the isolation.
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
