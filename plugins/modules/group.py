#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from group.yml: do not edit.

DOCUMENTATION = r"""
module: group
short_description: Manage groups of users
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a group of users.
  - All users of a group have its roles. The groups of a user are set with M(pve.fleet.user), the
    roles of a group with M(pve.fleet.acl).
  - The token needs C(Group.Allocate) on C(/access/groups). To find the roles of a group before its
    deletion, it also needs C(Sys.Audit) on C(/access).
options:
  name:
    description: Name of the group.
    type: str
    required: true
  state:
    description:
      - V(present) creates the group if it does not exist, and updates settings that differ.
      - V(absent) deletes the group. A group with users or roles is only deleted with O(force).
    type: str
    choices: [present, absent]
    default: present
  comment:
    description: Comment on the group. An empty text removes it. By default, it is not changed.
    type: str
  force:
    description: Whether O(state=absent) also deletes a group in use. Its users are not deleted, but
      lose the rights of the group.
    type: bool
    default: false
  allow_self:
    description: Whether the deletion may remove privileges of the task's own login. With V(false),
      this is refused before the first write, and the message names the privileges.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.group_info
  - module: pve.fleet.user
  - module: pve.fleet.acl
"""

EXAMPLES = r"""
- name: Create a group for a tenant
  pve.fleet.group:
    name: globex
    comment: Globex Ltd.

- name: Delete it, if it is not in use
  pve.fleet.group:
    name: globex
    state: absent
"""

RETURN = r"""
group:
  description:
    - The group as it is afterwards, or in check mode as it would be.
    - It is null if the group is deleted.
    - RV(pve.fleet.group_info#module:groups) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create group 'globex']
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: in use, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.group import (
    group_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.group import GROUP

ENTRY = ModuleEntry(partial(run, GROUP), group_spec(), name="group")
main = ENTRY.main

if __name__ == "__main__":
    main()
