#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from acl.yml: do not edit.

DOCUMENTATION = r"""
module: acl_info
short_description: Gather information about who has which role
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the rights on one path, or on all paths on which a user, a group or a token has a role.
    One request is made.
  - The list contains the paths on which the caller may change rights, or all paths if it has
    C(Sys.Audit) on C(/access).
  - The effective rights on a path also come from the paths above it, from groups and from pools.
    This module only returns the rights on the path itself.
options:
  path:
    description: One path. By default, all paths on which a role is granted are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.acl}]
"""

EXAMPLES = r"""
- name: Read the rights on a pool
  pve.fleet.acl_info:
    path: /pool/acme
  register: on_acme

- name: Read all rights
  pve.fleet.acl_info:
  register: all_rights

- name: List the paths on which a user has a role
  ansible.builtin.debug:
    msg: "{{ item.path }}"
  loop: "{{ all_rights.acls }}"
  loop_control:
    label: "{{ item.path }}"
  when: item.grants | selectattr('user', 'eq', 'ops@pve') | length > 0
"""

RETURN = r"""
acls:
  description: The rights, sorted by path.
  returned: success
  type: list
  elements: dict
  contains:
    path: {description: The path., type: str, sample: /pool/globex}
    grants:
      description: The holders of roles there.
      type: list
      elements: dict
      contains:
        user: {description: 'The user, or null.', type: str, sample: alice@pve}
        group: {description: 'The group, or null.', type: str}
        token: {description: 'The token, or null.', type: str}
        role: {description: The role., type: str, sample: PVEVMUser}
        propagate: {description: Whether it also applies to the paths below., type: bool,
          sample: true}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.acl import (
    acl_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.acl import ACL

ENTRY = ModuleEntry(partial(run_info, ACL), acl_info_spec(), name="acl_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
