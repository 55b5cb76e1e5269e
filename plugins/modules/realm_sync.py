#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from realm.yml: do not edit.

DOCUMENTATION = r"""
module: realm_sync
short_description: Synchronize users and groups with the directory of a realm
version_added: 0.1.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, updates and removes users and groups as the LDAP or AD directory of a realm has them.
  - What changes is found by reading users, groups and rights before and after, because Proxmox VE
    reports each user as updated, whether anything differs or not.
  - In check mode Proxmox VE itself does a dry run, as a task. Its log tells which users and groups
    come and go, but not which properties change.
  - The token needs C(Realm.AllocateUser) on the realm and C(User.Modify) on C(/access/groups). With
    C(Sys.Audit) on C(/access) it also reports rights that are taken away.
attributes:
  check_mode:
    support: partial
    details:
      - Users and groups whose properties change are not predicted.
  diff_mode:
    support: full
    details:
      - The difference has the names of users and groups, and the rights.
  idempotent:
    support: full
options:
  name:
    description: Name of a realm of type C(ldap) or C(ad).
    type: str
    required: true
  scope:
    description: What is taken over. By default, as the realm has it; where it has nothing either,
      that is an error.
    type: str
    choices: [users, groups, both]
  remove_vanished:
    description:
      - What is removed of users and groups that the directory does not have any more. An empty list
        removes nothing. By default, as the realm has it.
      - V(entry) removes the user or group, with tokens and rights. V(acl) takes the rights away.
        V(properties) also removes, from users and groups that stay, what the directory does not
        have.
    type: list
    elements: str
    choices: [acl, entry, properties]
  enable_new:
    description: Whether new users may log in. By default, as the realm has it, and else they may.
    type: bool
  task_timeout:
    description:
      - Seconds to wait for the task. One that takes longer keeps running on the node.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 300
  allow_self:
    description: Whether the run may remove the user that the task logs in as, or its rights.
      Without it, a dry run comes first if this user is in the realm, and such a run is refused.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes]
seealso:
  - module: pve.fleet.realm_info
  - module: pve.fleet.user
  - module: pve.fleet.group
"""

EXAMPLES = r"""
- name: Take over users and groups, and remove those that have left
  pve.fleet.realm_sync:
    name: ldap
    scope: both
    remove_vanished: [entry, acl]
  register: synchronized

- name: Show who came
  ansible.builtin.debug:
    msg: "{{ synchronized.realm_sync.users.added }}"
"""

RETURN = r"""
realm_sync:
  description: What the synchronization changed, or in check mode would change.
  returned: success
  type: dict
  contains:
    name: {description: Name of the realm., type: str, sample: ldap}
    users: {description: 'Users that were added, removed and updated. In check mode C(updated) is
      null.', type: dict, sample: {added: [bob@ldap], removed: [], updated: [alice@ldap]}}
    groups: {description: The same for groups. A group is updated if its users differ., type: dict,
      sample: {added: [staff-ldap], removed: [], updated: []}}
    grants_removed: {description: Roles that users and groups of the realm do not have any more.,
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

from ansible_collections.pve.fleet.plugins.module_utils._access.run_realm_sync import run_realm_sync
from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.realm import realm_sync_spec

ENTRY = Entry(run_realm_sync, realm_sync_spec(), name="realm_sync")
main = ENTRY.main

if __name__ == "__main__":
    main()
