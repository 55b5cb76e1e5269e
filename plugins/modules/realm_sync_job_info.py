#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from realm_sync_job.yml: do not edit.

DOCUMENTATION = r"""
module: realm_sync_job_info
short_description: Gather information about jobs that synchronize realms
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one job or all of them. One request is made.
  - The token needs C(Sys.Audit) on C(/).
options:
  name:
    description: Name of one job. By default, all jobs are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.realm_sync_job}]
"""

EXAMPLES = r"""
- name: Read all jobs
  pve.fleet.realm_sync_job_info:
  register: known

- name: List the realms without a job
  ansible.builtin.debug:
    msg: "{{ ['company'] | difference(known.realm_sync_jobs | map(attribute='realm')) }}"
"""

RETURN = r"""
realm_sync_jobs:
  description: The jobs, sorted by name. Empty if there is no job of that name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: nightly}
    realm: {description: Its realm., type: str, sample: company}
    schedule: {description: When it runs., type: str, sample: daily}
    scope: {description: The imported objects., type: str, sample: users}
    remove_vanished: {description: The removed parts of users and groups. It is null if the realm
      decides., type: list, elements: str, sample: [acl, entry]}
    enable_new: {description: Whether new users may log in. It is null if the realm decides.,
      type: bool, sample: true}
    enabled: {description: Whether it runs., type: bool, sample: true}
    comment: {description: Its comment., type: str, sample: ''}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.realm_sync_job import (
    realm_sync_job_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.realms.sync_job import (
    REALM_SYNC_JOB,
)

ENTRY = ModuleEntry(
    partial(run_info, REALM_SYNC_JOB), realm_sync_job_info_spec(), name="realm_sync_job_info"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
