#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from role.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: role
short_description: Manage roles
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Creates, changes and deletes a role, which is a set of privileges. Who holds it, and where, is
    set with M(pve.fleet.acl).
  - What Proxmox VE would refuse is checked first, in check mode too. The roles of Proxmox VE itself
    cannot be changed.
  - The token needs C(Sys.Modify) on C(/access). To see who holds a role before it is deleted, it
    also needs C(Sys.Audit) on C(/access).
extends_documentation_fragment:
  - pve.fleet.role_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
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

- name: Add a privilege, and keep the others
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
    - It is null when the role is deleted.
  returned: success
  type: dict
  contains:
    name: {description: Its name., type: str, sample: operator}
    built_in: {description: Whether it is a role of Proxmox VE itself., type: bool, sample: false}
    privileges: {description: Its privileges., type: list, elements: str, sample: [VM.Audit,
        VM.PowerMgmt]}
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
  sample:
    category: ValidationFailed
    reason: unknown privilege
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Set privileges of role 'operator']
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._access.role import ROLE
from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.role import role_spec

ENTRY = Entry(partial(run, ROLE), role_spec(), name="role")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
