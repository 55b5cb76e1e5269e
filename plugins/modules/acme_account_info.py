#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from acme_account.yml: do not edit.

DOCUMENTATION = r"""
module: acme_account_info
short_description: Gather information about accounts of ACME
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one account of ACME or all of them, without keys. One request is made for the list, and
    one for each account.
  - Proxmox VE only lets C(root@pam) do this, with O(user) and O(password).
options:
  name:
    description: Name of one account. By default, all accounts are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.acme_account}]
"""

EXAMPLES = r"""
- name: Read all accounts
  pve.fleet.acme_account_info:
    user: root@pam
    password: "{{ lookup('ansible.builtin.env', 'ROOT_PASSWORD') }}"
  when: lookup('ansible.builtin.env', 'ROOT_PASSWORD') | length > 0
"""

RETURN = r"""
acme_accounts:
  description: The accounts, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: default}
    contact: {description: Its mail addresses., type: list, elements: str, sample:
      [ops@example.com]}
    directory: {description: The directory of its CA., type: str,
      sample: 'https://acme-v02.api.letsencrypt.org/directory'}
    tos_url: {description: The terms that were agreed to., type: str,
      sample: 'https://letsencrypt.org/terms'}
    status: {description: Its state at the CA in the last query of Proxmox VE., type: str,
      sample: valid}
    location: {description: Its URL at the CA., type: str,
      sample: 'https://acme-v02.api.letsencrypt.org/acme/acct/1'}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.acme_account import (
    acme_account_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.identity.acme_account import (
    run_accounts_info,
)

ENTRY = ModuleEntry(run_accounts_info, acme_account_info_spec(), name="acme_account_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
