#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from acme_account.yml: do not edit.

DOCUMENTATION = r"""
module: acme_account
short_description: Manage accounts of ACME
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Registers, changes and deactivates an account at an ACME CA, such as Let's Encrypt.
    M(pve.fleet.node) sets the account of a node, and M(pve.fleet.acme_certificate) orders its
    certificate.
  - Proxmox VE only lets C(root@pam) do this, with O(user) and O(password). Other logins and tokens
    are refused before any request.
  - The task is refused before the first write if the agreement to the terms of the CA is missing,
    or if an account to deactivate is used by nodes.
options:
  name:
    description: Name of the account. M(pve.fleet.node) uses V(default) unless its option C(acme)
      names another one.
    type: str
    required: true
  state:
    description: V(present) registers the account or updates settings that differ, V(absent)
      deactivates it at the CA, which cannot be undone.
    type: str
    choices: [present, absent]
    default: present
  contact:
    description: Mail addresses for messages of the CA. Required for a new account. The list
      replaces the addresses of the account. By default, they are not changed.
    type: list
    elements: str
  directory:
    description: URL of the directory of the CA. By default,
      V(https://acme-v02.api.letsencrypt.org/directory) for a new account. It cannot be changed.
    type: str
  tos_url:
    description: URL of the terms of service of the CA, to which you agree. Required for a new
      account if the CA has terms. It cannot be changed.
    type: str
  eab_kid:
    description: Key identifier of an external account, if the CA requires one. It is only used for
      a new account, and never returned.
    type: str
  eab_hmac_key:
    description: HMAC key of the external account. It is only used for a new account, and never
      returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.acme_account_info
  - module: pve.fleet.acme_plugin
  - module: pve.fleet.acme_certificate
  - module: pve.fleet.node
"""

EXAMPLES = r"""
- name: Register an account at the test system of Let's Encrypt
  pve.fleet.acme_account:
    name: staging
    contact: [ops@example.com]
    directory: https://acme-staging-v02.api.letsencrypt.org/directory
    tos_url: https://letsencrypt.org/documents/LE-SA-v1.5-February-24-2025.pdf
    user: root@pam
    password: "{{ lookup('ansible.builtin.env', 'ROOT_PASSWORD') }}"
  when: lookup('ansible.builtin.env', 'ROOT_PASSWORD') | length > 0

- name: Deactivate it
  pve.fleet.acme_account:
    name: staging
    state: absent
    user: root@pam
    password: "{{ lookup('ansible.builtin.env', 'ROOT_PASSWORD') }}"
  when: lookup('ansible.builtin.env', 'ROOT_PASSWORD') | length > 0
"""

RETURN = r"""
acme_account:
  description: The account as it is afterwards, or in check mode as it would be. It is null if the
    account is deactivated. RV(pve.fleet.acme_account_info#module:acme_accounts) describes its
    fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create ACME account 'default']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: PermissionDenied, reason: root only, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.acme_account import (
    acme_account_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.identity.acme_account import (
    ACME_ACCOUNT,
)

ENTRY = ModuleEntry(partial(run, ACME_ACCOUNT), acme_account_spec(), name="acme_account")
main = ENTRY.main

if __name__ == "__main__":
    main()
