#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from realm.yml: do not edit.

DOCUMENTATION = r"""
module: realm_info
short_description: Gather information about realms
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one realm or all of them. One request is made.
  - A realm is a source of user authentication. Its name is the part of a user's name after the
    C(@).
  - No privileges are needed.
options:
  name:
    description: Name of one realm. By default, all realms are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.realm_sync}, {module: pve.fleet.user}]
"""

EXAMPLES = r"""
- name: Read all realms
  pve.fleet.realm_info:
  register: estate

- name: List the realms with a directory
  ansible.builtin.debug:
    msg: "{{ estate.realms | selectattr('type', 'in', ['ldap', 'ad']) | map(attribute='name') }}"
"""

RETURN = r"""
realms:
  description: The realms, sorted by name. Empty if there is no realm of that name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: pve}
    type: {description: 'Its type, such as pam, pve, ldap, ad or openid.', type: str, sample: pve}
    comment: {description: Its comment., type: str, sample: Proxmox VE authentication server}
    default: {description: Whether the login form proposes it., type: bool, sample: false}
    second_factor: {description: Type of the second factor that it requires. Null if it requires
      none., type: str, sample: null}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.realm import (
    realm_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.realms.realm import REALM

ENTRY = ModuleEntry(partial(run_info, REALM), realm_info_spec(), name="realm_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
