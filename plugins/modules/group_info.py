#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from group.yml: do not edit.

DOCUMENTATION = r"""
module: group_info
short_description: Gather information about groups of users
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one group or all of them, each with its users. One request is made.
  - The list contains the groups on which the token has C(User.Modify), C(Sys.Audit) or
    C(Group.Allocate). To read one group, it needs C(Sys.Audit) or C(Group.Allocate) on
    C(/access/groups).
options:
  name:
    description: Name of one group. By default, all groups are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.group}]
"""

EXAMPLES = r"""
- name: Read one group
  pve.fleet.group_info:
    name: globex
  register: globex

- name: Read all groups
  pve.fleet.group_info:
  register: all_groups

- name: List the groups without users
  ansible.builtin.debug:
    msg: "{{ all_groups.groups | rejectattr('users') | map(attribute='name') }}"
"""

RETURN = r"""
groups:
  description: The groups, sorted by name. Empty if there is no group of that name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: globex}
    comment: {description: Its comment., type: str, sample: Globex Ltd.}
    users: {description: The users in it., type: list, elements: str, sample: [alice@pve]}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.group import (
    group_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.group import GROUP

ENTRY = ModuleEntry(partial(run_info, GROUP), group_info_spec(), name="group_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
