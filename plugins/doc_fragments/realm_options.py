# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules realm_info and realm_sync.

Written by `make options` from realm.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of a realm of type C(ldap) or C(ad).
    type: str
    required: true
  scope:
    description: What is taken over. By default, as the realm has it; where it has nothing either,
      that is an error.
    type: str
    choices: [users, groups, both]
  remove_vanished:
    description:
      - What is removed of users and groups that the directory does not have any more. An empty
        list removes nothing. By default, as the realm has it.
      - V(entry) removes the user or group, with tokens and rights. V(acl) takes the rights away.
        V(properties) also removes, from users and groups that stay, what the directory does not
        have.
    type: list
    elements: str
    choices: [acl, entry, properties]
  enable_new:
    description: Whether new users may log in. By default, as the realm has it, and else they
      may.
    type: bool
  task_timeout:
    description:
      - Seconds to wait for the task. One that takes longer keeps running on the node.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 300
  allow_self:
    description: Whether the run may remove the user that the task logs in as, or its rights.
      Without it, a dry run comes first if this user is in the realm, and such a run is refused.
    type: bool
    default: false
"""

    INFO = r"""
options:
  name:
    description: Name of one realm. By default, all realms are returned.
    type: str
"""
