#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from backup_job.yml: do not edit.

DOCUMENTATION = r"""
module: backup_job_info
short_description: Gather information about backup jobs and the guests that they cover
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one backup job or all of them, each guest with the enabled jobs that back it up, and the
    guests without such a job. Two requests are made, and one for each guest in a job.
  - The token needs C(Sys.Audit) on C(/), and C(VM.Audit) on the guests. Guests that the token may
    not see are not returned.
options:
  name:
    description: ID of one job. By default, all jobs are returned.
    type: str
  tenant:
    description: Only guests of this tenant in RV(guests) and RV(uncovered). By default, guests of
      all tenants are returned. An empty value is therefore an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.backup_job}, {module: pve.fleet.backup_info}]
"""

EXAMPLES = r"""
- name: Read all jobs
  pve.fleet.backup_job_info:
  register: known

- name: Show the guests that no job backs up
  ansible.builtin.debug:
    msg: "{{ known.uncovered | map(attribute='name') }}"

- name: Show the guests that several jobs back up
  ansible.builtin.debug:
    msg: "{{ item.name }}: {{ item.jobs | join(', ') }}"
  loop: "{{ known.guests | selectattr('jobs.1', 'defined') }}"
"""

RETURN = r"""
backup_jobs:
  description: The jobs, sorted by ID.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its ID., type: str, sample: nightly}
    schedule: {description: When it runs., type: str, sample: '02:30'}
    enabled: {description: Whether it runs., type: bool, sample: true}
    all: {description: Whether it backs up all guests., type: bool, sample: true}
    vms: {description: VMIDs of its guests., type: list, elements: int, sample: []}
    pool: {description: Pool of its guests., type: str, sample: ''}
    exclude: {description: VMIDs that it excludes., type: list, elements: int, sample: [9000]}
    node: {description: 'Node of its guests, empty for all nodes.', type: str, sample: ''}
    storage: {description: Storage of its archives., type: str, sample: local}
    mode: {description: 'Its mode, empty for the default.', type: str, sample: snapshot}
    compress: {description: 'Its compression, empty for the default.', type: str, sample: zstd}
    prune_backups: {description: Numbers of backups that are kept., type: dict, sample:
      {keep_daily: 7}}
    remove: {description: Whether it removes old backups., type: bool, sample: true}
    notes_template: {description: Template of the notes., type: str, sample: ''}
    protected: {description: Whether new archives are protected., type: bool, sample: false}
    fleecing: {description: Settings of fleecing., type: dict, sample: {enabled: null,
      storage: null}}
    bwlimit: {description: Bandwidth limit in KiB/s., type: int, sample: 0}
    ionice: {description: Priority of disk access., type: int, sample: 7}
    zstd: {description: Threads of zstd., type: int, sample: 1}
    pigz: {description: Threads of pigz., type: int, sample: 0}
    performance: {description: Settings of performance., type: dict, sample: {max_workers: null,
      pbs_entries_max: null}}
    pbs_change_detection_mode: {description: Detection of changes., type: str, sample: ''}
    exclude_path: {description: Patterns of files that are excluded., type: list, elements: str,
      sample: []}
    stdexcludes: {description: Whether temporary files are excluded., type: bool, sample: true}
    lockwait: {description: Minutes to wait for another backup., type: int, sample: 180}
    stopwait: {description: Minutes to wait for the stop of a guest., type: int, sample: 10}
    tmpdir: {description: Directory for temporary files., type: str, sample: ''}
    script: {description: Hook script., type: str, sample: ''}
    notification_mode: {description: Its notification mode., type: str, sample: ''}
    mailto: {description: Receivers of mails., type: list, elements: str, sample: []}
    mailnotification: {description: When mails are sent., type: str, sample: ''}
    repeat_missed: {description: Whether a missed run is repeated., type: bool, sample: true}
    comment: {description: Its comment., type: str, sample: ''}
    next_run: {description: 'When it runs next in ISO 8601 format, UTC. Null if that is unknown.',
      type: str, sample: '2026-11-21T02:30:00Z'}
guests:
  description: The guests, by VMID.
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: VMID of the guest., type: int, sample: 15046}
    type: {description: V(qemu) for a VM and V(lxc) for a container., type: str, sample: qemu}
    name: {description: Name of the guest., type: str, sample: web1}
    node: {description: Node on which the guest is., type: str, sample: pve1}
    tenant: {description: Tenant of the guest. Null without a tenant's tag or with several.,
      type: str, sample: acme}
    template: {description: Whether the guest is a template., type: bool, sample: false}
    jobs: {description: Enabled jobs that back it up., type: list, elements: str, sample: [nightly]}
    left_out: {description: 'Disks that its backups leave out, because their backup is off. The
      default of a container''s mounts is off. Null without a job, and if its configuration cannot
      be read.', type: list, elements: str, sample: [mp0]}
uncovered:
  description: The guests of RV(guests) that no enabled job backs up. RV(guests) describes its
    fields.
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.backup_job import (
    backup_job_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.job.coverage import (
    run_info,
)

ENTRY = ModuleEntry(
    run_info, backup_job_info_spec(), names={"tenant": "tenant"}, name="backup_job_info"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
