#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from acl.yml: do not edit.

DOCUMENTATION = r"""
module: acl
short_description: Manage who has which role on a path
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Grants roles on a path to users, groups and tokens, and revokes them. Other roles on the path
    are kept unless O(exact) is set.
  - Roles, users, groups and tokens that do not exist are refused before the first write, also in
    check mode. A role with privileges that the caller does not have on the path is also refused,
    because in Proxmox VE callers cannot grant privileges that they do not have.
  - The object at the path does not need to exist. If it does not exist, or is hidden from the
    caller, a warning is shown.
  - The token needs C(Permissions.Modify) on the path, or C(Pool.Allocate) on C(/pool/NAME),
    C(VM.Allocate) on C(/vms/VMID), C(Datastore.Allocate) on C(/storage/NAME) together with all
    privileges of the roles.
options:
  path:
    description: Path to which the rights apply, such as V(/pool/globex), V(/vms/100),
      V(/storage/ceph) or V(/).
    type: str
    required: true
  state:
    description: V(present) adds the grants, V(absent) removes them.
    type: str
    choices: [present, absent]
    default: present
  grants:
    description: Holders of roles on O(path). Each item sets one of O(grants[].user),
      O(grants[].group) and O(grants[].token).
    type: list
    elements: dict
    required: true
    suboptions:
      user:
        description: User with its realm, such as V(alice@pve).
        type: str
      group:
        description: Group of users.
        type: str
      token:
        description: Full name of a token, such as V(alice@pve!deploy). A token with privilege
          separation never has more rights than its user.
        type: str
      role:
        description: Name of the role.
        type: str
        required: true
      propagate:
        description: Whether the role also applies to the paths below. With O(state=absent), the
          role is removed in both cases.
        type: bool
        default: true
  exact:
    description: Whether all other roles on O(path) are removed. It cannot be combined with
      O(state=absent).
    type: bool
    default: false
  allow_self:
    description: Whether the change may remove privileges of the task's own login. With V(false),
      this is refused before the first write, and the message names the privileges.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.acl_info
  - module: pve.fleet.role
  - module: pve.fleet.group
  - module: pve.fleet.user
"""

EXAMPLES = r"""
- name: Create a group
  pve.fleet.group:
    name: globex

- name: Let it use the VMs of a pool, and revoke all other roles
  pve.fleet.acl:
    path: /pool/globex
    grants:
      - group: globex
        role: PVEVMUser
    exact: true

- name: Let a token read one storage, but no paths below it
  pve.fleet.acl:
    path: /storage/ceph
    grants:
      - token: ops@pve!auto
        role: PVEDatastoreUser
        propagate: false

- name: Revoke both
  pve.fleet.acl:
    path: "{{ item.path }}"
    grants: "{{ item.grants }}"
    state: absent
  loop:
    - path: /pool/globex
      grants: [{group: globex, role: PVEVMUser}]
    - path: /storage/ceph
      grants: [{token: ops@pve!auto, role: PVEDatastoreUser}]
"""

RETURN = r"""
acl:
  description: The rights on the path as they are afterwards, or in check mode as they would be.
    RV(pve.fleet.acl_info#module:acls) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Add PVEVMUser for group globex to the rights on '/pool/globex']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: PermissionDenied, reason: more than own rights, status: null, path: null,
    upid: null, retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.acl import (
    acl_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.acl import ACL

ENTRY = ModuleEntry(partial(run, ACL), acl_spec(), name="acl")
main = ENTRY.main

if __name__ == "__main__":
    main()
