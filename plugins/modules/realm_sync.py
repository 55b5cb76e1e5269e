#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from realm.yml: do not edit.

DOCUMENTATION = r"""
module: realm_sync
short_description: Synchronize users and groups with the directory of a realm
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, updates and removes users and groups to match the LDAP or AD directory of a realm.
  - Changes are found by reading users, groups and rights before and after, because Proxmox VE
    reports every user as updated, even if nothing differs.
  - In check mode, Proxmox VE itself does a dry run, as a task. Its log shows which users and groups
    would be added and removed, but not which properties would change.
  - The token needs C(Realm.AllocateUser) on the realm and C(User.Modify) on C(/access/groups). With
    C(Sys.Audit) on C(/access), it also reports removed rights.
attributes:
  check_mode:
    support: partial
    details:
      - Users and groups whose properties change are not predicted.
  diff_mode:
    support: full
    details:
      - The diff contains the names of users and groups, and the rights.
  idempotent:
    support: full
options:
  name:
    description: Name of a realm of type C(ldap) or C(ad).
    type: str
    required: true
  scope:
    description: Whether users, groups or both are synchronized. By default, the setting of the
      realm. It is an error if the realm has none.
    type: str
    choices: [users, groups, both]
  remove_vanished:
    description:
      - Parts to remove of users and groups that are no longer in the directory. An empty list
        removes nothing. By default, the setting of the realm.
      - V(entry) removes the user or group, with its tokens and rights. V(acl) removes the rights.
        V(properties) also removes, from users and groups that stay, properties that are not in the
        directory.
    type: list
    elements: str
    choices: [acl, entry, properties]
  enable_new:
    description: Whether new users may log in. By default, the setting of the realm, or else
      V(true).
    type: bool
  task_timeout:
    description:
      - Seconds to wait for the task. A task that takes longer continues on the node.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 300
  allow_self:
    description: Whether the run may remove the user of the task's own login, or its rights. With
      V(false), a dry run is made first if this user is in the realm, and such a removal is refused.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes]
seealso:
  - module: pve.fleet.realm_info
  - module: pve.fleet.user
  - module: pve.fleet.group
"""

EXAMPLES = r"""
- name: Synchronize users and groups, and remove those that have left
  pve.fleet.realm_sync:
    name: ldap
    scope: both
    remove_vanished: [entry, acl]
  register: synchronized

- name: Show the new users
  ansible.builtin.debug:
    msg: "{{ synchronized.realm_sync.users.added }}"
"""

RETURN = r"""
realm_sync:
  description: The changes of the synchronization, or in check mode the predicted changes.
  returned: success
  type: dict
  contains:
    name: {description: Name of the realm., type: str, sample: ldap}
    users: {description: 'Users that were added, removed and updated. In check mode C(updated) is
      null.', type: dict, sample: {added: [bob@ldap], removed: [], updated: [alice@ldap]}}
    groups: {description: The same for groups. A group is updated if its users differ., type: dict,
      sample: {added: [staff-ldap], removed: [], updated: []}}
    grants_removed: {description: Roles that users and groups of the realm no longer have.,
      type: list, elements: str, sample: [PVEAuditor for user carol@ldap on /]}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Synchronize realm 'ldap']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: TaskFailed
    reason: Connection refused
    status: null
    path: null
    upid: 'UPID:pve1:000000C1:000CD935:6B0209C4:auth-realm-sync:ldap:root@pam!test:'
    retryable: false
    tries: null
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.realm import (
    realm_sync_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.realms.sync import (
    run_realm_sync,
)

ENTRY = ModuleEntry(run_realm_sync, realm_sync_spec(), name="realm_sync")
main = ENTRY.main

if __name__ == "__main__":
    main()
