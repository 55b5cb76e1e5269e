#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from role.yml: do not edit.

DOCUMENTATION = r"""
module: role
short_description: Manage roles
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a role, which is a set of privileges. Its holders and paths are set
    with M(pve.fleet.acl).
  - Requests that Proxmox VE would refuse are detected first, also in check mode. The built-in roles
    of Proxmox VE cannot be changed.
  - The token needs C(Sys.Modify) on C(/access). To find the holders of a role before its deletion,
    it also needs C(Sys.Audit) on C(/access).
options:
  name:
    description: Name of the role. Names that begin with C(PVE) are reserved for the roles of
      Proxmox VE.
    type: str
    required: true
  state:
    description:
      - V(present) creates the role if it does not exist, and updates settings that differ.
      - V(absent) deletes the role. A role in use is only deleted with O(force).
    type: str
    choices: [present, absent]
    default: present
  privileges:
    description:
      - Privileges of the role, such as V(VM.Audit). By default, they are not changed.
      - V(agent_read) means the privilege to read from the guest agent, which is
        V(VM.GuestAgent.Audit) since Proxmox VE 9.0 and V(VM.Monitor) before. V(agent) means all
        privileges for the guest agent, which are V(VM.GuestAgent.*) since 9.0 and V(VM.Monitor)
        before.
      - A privilege that this version of Proxmox VE does not have is an error.
    type: list
    elements: str
  append:
    description: Whether privileges that O(privileges) does not list are kept. With V(false), they
      are removed from the role.
    type: bool
    default: false
  force:
    description: Whether O(state=absent) also deletes a role in use. Its holders then lose its
      privileges.
    type: bool
    default: false
  allow_self:
    description: Whether the change or deletion may remove privileges of the task's own login. With
      V(false), this is refused before the first write, and the message names the privileges.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.role_info
  - module: pve.fleet.acl
  - module: pve.fleet.preflight_info
"""

EXAMPLES = r"""
- name: Create a role for operators
  pve.fleet.role:
    name: operator
    privileges: [VM.Audit, VM.PowerMgmt, VM.Console, agent_read]

- name: Add a privilege and keep the others
  pve.fleet.role:
    name: operator
    privileges: [VM.Snapshot]
    append: true

- name: Delete the role, if it is not in use
  pve.fleet.role:
    name: operator
    state: absent
"""

RETURN = r"""
role:
  description:
    - The role as it is afterwards, or in check mode as it would be.
    - It is null if the role is deleted.
    - RV(pve.fleet.role_info#module:roles) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Set privileges of role 'operator']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: ValidationFailed, reason: unknown privilege, status: null, path: null,
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
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.role import (
    role_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.role import ROLE

ENTRY = ModuleEntry(partial(run, ROLE), role_spec(), name="role")
main = ENTRY.main

if __name__ == "__main__":
    main()
