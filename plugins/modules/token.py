#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from token.yml: do not edit.

DOCUMENTATION = r"""
module: token
short_description: Manage API tokens
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes, rotates and deletes an API token of a user.
  - The secret is returned once, as RV(secret), by the run that creates or rotates the token. The
    output of that run is hidden as with C(no_log). A registered variable contains the secret, so
    set C(no_log) on tasks that use it.
  - If the response with the secret is lost, the task fails and names the next step. No second token
    is created.
  - The caller needs C(User.Modify) on C(/access/groups) or on a group of the user. Users may manage
    their own tokens with user and password, but not with a token.
options:
  owner:
    description: User with its realm to which the token belongs, such as V(alice@pve).
    type: str
    required: true
  name:
    description: Name of the token, without the user, such as V(deploy).
    type: str
    required: true
  state:
    description:
      - V(present) creates the token if it does not exist, and updates settings that differ. The
        result contains the secret only for a new token.
      - V(rotated) replaces the secret of an existing token. The former secret is no longer
        accepted. The token keeps its rights. Every run reports a change.
      - Before Proxmox VE 9.2, a secret cannot be replaced. V(rotated) then creates O(successor), a
        second token with the same settings and rights. Delete the first token when the second one
        is in use.
      - V(absent) deletes the token with its rights.
    type: str
    choices: [present, absent, rotated]
    default: present
  privilege_separation:
    description: Whether the token has its own rights, of which only the rights that its user also
      has are effective. With V(false), the token has all rights of its user. By default, V(true)
      for a new token. Otherwise it is not changed.
    type: bool
  expire:
    description:
      - When the token expires, as a date or a time such as V(2027-01-31) or
        V(2027-01-31T18:00:00+01:00). Without an offset, the time is in UTC. V(never) removes the
        expiry. By default, it is not changed.
      - A date in the past is refused if it would be set.
    type: str
  comment:
    description: Comment on the token. An empty text removes it. By default, it is not changed.
    type: str
  successor:
    description: Name of the second token that O(state=rotated) creates before Proxmox VE 9.2, which
      requires it. The token must not exist. Since 9.2, this option is refused.
    type: str
  credentials_file:
    description:
      - File on the host that runs the module, to which the login is written with mode 0600 when the
        token is created or rotated. RV(secret) is then null. The file has the format of
        O(sites_file).
      - The file is reserved before the token is created. An existing token without a login in this
        file is an error, because its secret is lost. With O(state=absent), the file is removed.
      - By default, the secret is returned.
    type: path
  vault_password:
    description: Password with which O(credentials_file) is encrypted, as by C(ansible-vault). It
      needs the Python library C(cryptography). By default, the file is not encrypted.
    type: str
  allow_self:
    description: Whether the token of the task's own login may be deleted, restricted, rotated or
      given an earlier expiry date. With V(false), this is refused before the first write, and the
      message names the loss.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.token_info
  - module: pve.fleet.user
  - module: pve.fleet.acl
"""

EXAMPLES = r"""
- name: Create a token with its own rights
  pve.fleet.token:
    owner: ops@pve
    name: deploy
    expire: "2035-12-31"
  register: deploy
  no_log: true

- name: Keep the secret, which is only returned once
  ansible.builtin.copy:
    content: "{{ deploy.secret }}"
    dest: "{{ playbook_dir }}/deploy.secret"
    mode: "0600"
  no_log: true
  when: deploy.secret is not none

- name: Create another token, and write its login to an encrypted file
  pve.fleet.token:
    owner: ops@pve
    name: backup
    credentials_file: "{{ playbook_dir }}/backup.sites.yml"
    vault_password: "{{ lookup('ansible.builtin.password', '/dev/null', length=20) }}"

- name: Replace the secret of the first token
  pve.fleet.token:
    owner: ops@pve
    name: deploy
    state: rotated
  register: rotated
  no_log: true

- name: Delete it
  pve.fleet.token:
    owner: ops@pve
    name: deploy
    state: absent

- name: Delete the token of this play's login in the last task
  pve.fleet.token:
    owner: ops@pve
    name: auto
    state: absent
    allow_self: true
"""

RETURN = r"""
token:
  description:
    - The token as it is afterwards, or in check mode as it would be. If a successor is created, it
      is the successor.
    - It is null if the token is deleted.
    - RV(pve.fleet.token_info#module:tokens) describes its fields.
  returned: success
  type: dict
secret:
  description: The secret of a token that was created or rotated in this run, else null.
  returned: success
  type: str
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create token 'alice@pve!deploy']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: NetworkError, reason: lost secret, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.token import (
    token_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.login.token import run_login

ENTRY = ModuleEntry(run_login, token_spec(), returned_secrets=("secret",), name="token")
main = ENTRY.main

if __name__ == "__main__":
    main()
