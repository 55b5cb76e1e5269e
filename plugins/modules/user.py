#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from user.yml: do not edit.

DOCUMENTATION = r"""
module: user
short_description: Manage users
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a user, and sets its groups.
  - Requests that Proxmox VE would refuse are detected first, also in check mode. A realm that does
    not exist is refused, although Proxmox VE accepts it.
  - The user of the task's own login, and V(root@pam), are neither deleted nor disabled.
  - The token needs C(Realm.AllocateUser) on C(/access/realm/REALM) to create and delete, and
    C(User.Modify) on C(/access/groups) or on the groups of the user.
options:
  name:
    description: Name of the user with its realm, such as V(alice@pve). The realm of a new user must
      exist.
    type: str
    required: true
  state:
    description:
      - V(present) creates the user if it does not exist, and updates settings that differ.
      - V(absent) deletes the user with its tokens and all its rights.
    type: str
    choices: [present, absent]
    default: present
  enabled:
    description: Whether the user and its tokens can log in. By default, V(true) for a new user.
      Otherwise it is not changed.
    type: bool
  expire:
    description:
      - When the user and its tokens can no longer log in, as a date or a time such as V(2027-01-31)
        or V(2027-01-31T18:00:00+01:00). Without an offset, the time is in UTC. V(never) removes the
        expiry. By default, it is not changed.
      - A date in the past is refused if it would be set. O(enabled=false) ends the access
        immediately.
    type: str
  firstname:
    description: First name. An empty text removes it. By default, it is not changed.
    type: str
  lastname:
    description: Last name. An empty text removes it. By default, it is not changed.
    type: str
  email:
    description: E-mail address. An empty text removes it. By default, it is not changed.
    type: str
  comment:
    description: Comment on the user. An empty text removes it. By default, it is not changed.
    type: str
  groups:
    description: Groups of the user. They must exist. By default, they are not changed.
    type: list
    elements: str
  append:
    description: Whether the user stays in groups that O(groups) does not list. With V(false), the
      user is removed from them.
    type: bool
    default: false
  user_password:
    description:
      - Password of the user, for realms whose passwords Proxmox VE stores. It must have 8 to 64
        characters.
      - It is set when the user is created. It is never compared; see O(update_password).
    type: str
  update_password:
    description:
      - Whether O(user_password) is also set for an existing user.
      - V(always) sets it in every run, which then reports a change. Proxmox VE does not accept this
        from a token, so a login with user and password is needed.
    type: str
    choices: [on_create, always]
    default: on_create
  allow_self:
    description: Whether the user of the task's own login may be deleted, disabled, removed from
      groups, or given an earlier expiry date or another password. With V(false), this is refused
      before the first write, and the message names the loss. The user V(root@pam) is never deleted,
      disabled or given an expiry date.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.user_info
  - module: pve.fleet.group
  - module: pve.fleet.acl
  - module: pve.fleet.token
"""

EXAMPLES = r"""
- name: Create a user with an initial password
  pve.fleet.user:
    name: alice@pve
    firstname: Alice
    email: alice@example.com
    user_password: "{{ lookup('ansible.builtin.password', '/dev/null', length=20) }}"

- name: Let the access end with the contract
  pve.fleet.user:
    name: alice@pve
    expire: "2035-12-31"

- name: Close the account
  pve.fleet.user:
    name: alice@pve
    enabled: false

- name: Delete the user with its tokens and rights
  pve.fleet.user:
    name: alice@pve
    state: absent
"""

RETURN = r"""
user:
  description:
    - The user as it is afterwards, or in check mode as it would be.
    - It is null if the user is deleted.
    - RV(pve.fleet.user_info#module:users) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create user 'alice@pve']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: ConfigurationError, reason: unknown realm, status: null, path: null,
    upid: null, retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.user import (
    user_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.user import run_user

ENTRY = ModuleEntry(run_user, user_spec(), name="user")
main = ENTRY.main

if __name__ == "__main__":
    main()
