#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from realm_sync_job.yml: do not edit.

DOCUMENTATION = r"""
module: realm_sync_job
short_description: Manage jobs that synchronize realms
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a job that imports the users and groups of a realm from its
    directory on a schedule.
  - The token needs C(Realm.AllocateUser) on the realm, C(User.Modify) on C(/access/groups), and
    C(Sys.Audit) on C(/). To delete a job, it needs C(Sys.Modify) on C(/).
options:
  name:
    description: Name of the job. Backup jobs cannot have the same name.
    type: str
    required: true
  state:
    description: V(present) creates the job or updates settings that differ, V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  realm:
    description: Realm of type C(ldap) or C(ad). Required for a new job. It cannot be changed.
    type: str
  schedule:
    description: Calendar event, such as V(daily). Required for a new job. By default, it is not
      changed.
    type: str
  scope:
    description: The objects to import. Required for a new job. By default, it is not changed.
    type: str
    choices: [users, groups, both]
  remove_vanished:
    description: Parts to remove of users and groups that the directory lacks, V(acl), V(entry) and
      V(properties), as in M(pve.fleet.realm_sync). An empty list removes nothing. By default, it is
      not changed, and a new job uses the setting of its realm.
    type: list
    elements: str
  enable_new:
    description: Whether new users may log in. By default, it is not changed, and a new job uses the
      setting of its realm.
    type: bool
  enabled:
    description: Whether the job runs. By default, it is not changed, and a new job runs.
    type: bool
  comment:
    description: Comment on the job. An empty text removes it. By default, it is not changed.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.realm_sync_job_info
  - module: pve.fleet.realm_sync
  - module: pve.fleet.realm
"""

EXAMPLES = r"""
- name: Configure a directory
  pve.fleet.realm:
    name: company
    type: ldap
    server1: ldap.example.com
    base_dn: dc=example,dc=com
    user_attr: uid

- name: Import its users and groups every day
  pve.fleet.realm_sync_job:
    name: nightly
    realm: company
    scope: both
    schedule: "02:30"

- name: Remove users that left the directory, with their rights
  pve.fleet.realm_sync_job:
    name: nightly
    remove_vanished: [entry, acl]

- name: Stop the job for a while
  pve.fleet.realm_sync_job:
    name: nightly
    enabled: false

- name: Delete the job
  pve.fleet.realm_sync_job:
    name: nightly
    state: absent
"""

RETURN = r"""
realm_sync_job:
  description: The result as it is afterwards, or in check mode as it would be. It is null if it is
    deleted. RV(pve.fleet.realm_sync_job_info#module:realm_sync_jobs) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create realm sync job 'nightly']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: unknown realm, status: null, path: null, upid: null,
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
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.realm_sync_job import (
    realm_sync_job_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.realms.sync_job import (
    REALM_SYNC_JOB,
)

ENTRY = ModuleEntry(partial(run, REALM_SYNC_JOB), realm_sync_job_spec(), name="realm_sync_job")
main = ENTRY.main

if __name__ == "__main__":
    main()
