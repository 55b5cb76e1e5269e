#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from token.yml: do not edit.

DOCUMENTATION = r"""
module: token_info
short_description: Gather information about API tokens
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the API tokens of one user or of all users, without their secrets. One request is made.
  - The list contains the tokens of users in groups on which the caller has C(User.Modify) or
    C(Sys.Audit), or the tokens of all users if it has one of them on C(/access/groups).
options:
  owner:
    description: User with its realm. By default, the tokens of all users are returned.
    type: str
  name:
    description: Name of a token, without the user. By default, all tokens are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.token}, {module: pve.fleet.user_info}]
"""

EXAMPLES = r"""
- name: Read the tokens of one user
  pve.fleet.token_info:
    owner: ops@pve
  register: of_ops

- name: Read all tokens
  pve.fleet.token_info:
  register: all_tokens

- name: List the tokens without an expiry date
  ansible.builtin.debug:
    msg: "{{ all_tokens.tokens | rejectattr('expire') | map(attribute='token_id') }}"
"""

RETURN = r"""
tokens:
  description: The tokens, sorted by user and name.
  returned: success
  type: list
  elements: dict
  contains:
    owner: {description: The user to which it belongs., type: str, sample: alice@pve}
    name: {description: Its name., type: str, sample: deploy}
    token_id: {description: The full name for a login., type: str, sample: alice@pve!deploy}
    privilege_separation: {description: Whether it has its own rights., type: bool, sample: true}
    expire: {description: 'When it expires, null for never.', type: str,
      sample: '2027-01-31T00:00:00Z'}
    comment: {description: Its comment., type: str, sample: ''}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.token import (
    token_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.token import TOKEN

ENTRY = ModuleEntry(partial(run_info, TOKEN), token_info_spec(), name="token_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
