#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from role.yml: do not edit.

DOCUMENTATION = r"""
module: role_info
short_description: Gather information about roles
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one role or all of them, each with its privileges. One request is made.
  - Every user and token may read all roles.
options:
  name:
    description: Name of one role. By default, all roles are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.role}]
"""

EXAMPLES = r"""
- name: Read one role
  pve.fleet.role_info:
    name: PVEVMUser
  register: user_role

- name: Read all roles
  pve.fleet.role_info:
  register: all_roles

- name: List the roles that can delete VMs
  ansible.builtin.debug:
    msg: "{{ all_roles.roles | selectattr('privileges', 'contains', 'VM.Allocate')
      | map(attribute='name') }}"
"""

RETURN = r"""
roles:
  description: The roles, sorted by name. Empty if there is no role of that name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: operator}
    built_in: {description: Whether it is a built-in role of Proxmox VE., type: bool, sample: false}
    privileges: {description: Its privileges., type: list, elements: str, sample: [VM.Audit,
      VM.PowerMgmt]}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.role import (
    role_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.role import ROLE

ENTRY = ModuleEntry(partial(run_info, ROLE), role_info_spec(), name="role_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
