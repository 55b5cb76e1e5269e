#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from user.yml: do not edit.

DOCUMENTATION = r"""
module: user_info
short_description: Gather information about users
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one user or all of them, each with its groups and the names of its tokens. One request
    is made.
  - The list contains the users in groups on which the token has C(User.Modify) or C(Sys.Audit), or
    all users if it has one of them on C(/access/groups).
options:
  name:
    description: Name of one user with its realm. By default, all users are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.user}, {module: pve.fleet.token_info}]
"""

EXAMPLES = r"""
- name: Read one user
  pve.fleet.user_info:
    name: ops@pve
  register: ops

- name: Read all users
  pve.fleet.user_info:
  register: all_users

- name: List the users that cannot log in
  ansible.builtin.debug:
    msg: "{{ all_users.users | rejectattr('enabled') | map(attribute='name') }}"
"""

RETURN = r"""
users:
  description: The users, sorted by name. Empty if there is no user of that name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: The user with its realm., type: str, sample: alice@pve}
    realm: {description: The realm., type: str, sample: pve}
    enabled: {description: Whether the user can log in., type: bool, sample: true}
    expire: {description: 'When the user can no longer log in, null for never.', type: str,
      sample: '2027-01-31T00:00:00Z'}
    firstname: {description: First name., type: str, sample: Alice}
    lastname: {description: Last name., type: str, sample: Ott}
    email: {description: E-mail address., type: str, sample: alice@example.com}
    comment: {description: Comment., type: str, sample: ''}
    groups: {description: The groups of the user., type: list, elements: str, sample: [globex]}
    tokens: {description: The names of the user's tokens., type: list, elements: str, sample:
      [deploy]}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.user import (
    user_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.user import USER

ENTRY = ModuleEntry(partial(run_info, USER), user_info_spec(), name="user_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
