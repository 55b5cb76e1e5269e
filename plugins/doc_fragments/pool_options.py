# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules pool and pool_info.

Written by `make options` from pool.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the pool. A pool within another is written V(acme/web). There are three
      levels at most, and the pool above must exist.
    type: str
    required: true
  state:
    description:
      - V(present) creates the pool if it does not exist, and changes what differs.
      - V(absent) deletes it. A pool that has members is only deleted with O(force), and a pool
        that contains other pools is never deleted.
    type: str
    choices: [present, absent]
    default: present
  comment:
    description: Comment on the pool. An empty text removes it. By default, it is not changed.
    type: str
  vms:
    description: VMIDs of VMs and containers that must be members. By default, they are not changed.
    type: list
    elements: int
  storages:
    description: Names of storages that must be members. By default, they are not changed.
    type: list
    elements: str
  exact:
    description: Whether members that O(vms) and O(storages) do not list are taken out. An empty
      list then takes out all members of that kind. If one of the two options is not set, its
      members are not changed.
    type: bool
    default: false
  allow_move:
    description: Whether a VM in O(vms) that is in another pool is moved to this one. Without
      it, such a VM is an error.
    type: bool
    default: false
  force:
    description: Whether O(state=absent) also deletes a pool that has members. They are taken
      out of the pool first and are not deleted.
    type: bool
    default: false
  allow_self:
    description: Whether the deletion of the pool, or the removal of members, may take privileges
      away from the login of the task itself. Without it, this is refused before the first write,
      and the message names the privileges.
    type: bool
    default: false
"""

    INFO = r"""
options:
  name:
    description: Name of one pool, such as V(acme/web). By default, all pools are returned.
    type: str
"""
