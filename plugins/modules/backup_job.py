#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from backup_job.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: backup_job
short_description: Manage backup jobs
version_added: 0.2.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Creates, changes and deletes a scheduled backup job of the cluster.
  - Pools, nodes and storages that do not exist, and storages without content C(backup), are refused
    before the first write. Proxmox VE itself stores them, and the job fails when it runs. Guests
    that do not exist cause a warning.
  - Proxmox VE has no protection against two programs that change the same job at the same time.
  - The token needs C(Sys.Audit) and C(Sys.Modify) on C(/), C(Datastore.Allocate) on the storage,
    and C(VM.Backup) on O(pool).
extends_documentation_fragment:
  - pve.fleet.backup_job_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.backup_job_info
  - module: pve.fleet.backup_info
"""

EXAMPLES = r"""
- name: Back up all guests at night and keep a week
  pve.fleet.backup_job:
    name: nightly
    schedule: "02:30"
    all: true
    storage: local
    mode: snapshot
    compress: zstd
    prune_backups: {keep_daily: 7, keep_weekly: 4}
    notes_template: "{{ '{{guestname}} on {{node}}' }}"
    repeat_missed: true

- name: Leave the templates out
  pve.fleet.backup_job:
    name: nightly
    all: true
    exclude: [9000, 9001]

- name: Back up the VMs of a tenant every six hours
  pve.fleet.backup_job:
    name: acme
    schedule: "*/6:00"
    pool: acme
    storage: local

- name: Stop a job for a maintenance
  pve.fleet.backup_job:
    name: nightly
    enabled: false

- name: Delete a job, but not its archives
  pve.fleet.backup_job:
    name: acme
    state: absent
"""

RETURN = r"""
backup_job:
  description: The job as it is afterwards, or in check mode as it would be. It is null
    when the job is deleted.
  returned: success
  type: dict
  contains:
    name: {description: Its ID., type: str, sample: nightly}
    schedule: {description: When it runs., type: str, sample: '02:30'}
    enabled: {description: Whether it runs., type: bool, sample: true}
    all: {description: Whether it backs up all guests., type: bool, sample: true}
    vms: {description: VMIDs of its guests., type: list, elements: int, sample: []}
    pool: {description: Pool of its guests., type: str, sample: ''}
    exclude: {description: VMIDs that it leaves out., type: list, elements: int, sample: [
        9000]}
    node: {description: 'Node of its guests, empty for all nodes.', type: str, sample: ''}
    storage: {description: Storage of its archives., type: str, sample: local}
    mode: {description: 'Its mode, empty for the default.', type: str, sample: snapshot}
    compress: {description: 'Its compression, empty for the default.', type: str, sample: zstd}
    prune_backups: {description: Numbers of backups that are kept., type: dict, sample: {
        keep_daily: 7}}
    remove: {description: Whether it removes old backups., type: bool, sample: true}
    notes_template: {description: Template of the notes., type: str, sample: ''}
    protected: {description: Whether new archives are protected., type: bool, sample: false}
    fleecing: {description: Settings of fleecing., type: dict, sample: {enabled: null,
        storage: null}}
    bwlimit: {description: Bandwidth limit in KiB/s., type: int, sample: 0}
    ionice: {description: Priority of disk access., type: int, sample: 7}
    zstd: {description: Threads of zstd., type: int, sample: 1}
    performance: {description: Settings of performance., type: dict, sample: {max_workers: null,
        pbs_entries_max: null}}
    pbs_change_detection_mode: {description: Detection of changes., type: str, sample: ''}
    exclude_path: {description: Patterns of files that are left out., type: list, elements: str,
      sample: []}
    notification_mode: {description: Way of its notifications., type: str, sample: ''}
    mailto: {description: Receivers of mails., type: list, elements: str, sample: []}
    mailnotification: {description: When mails are sent., type: str, sample: ''}
    repeat_missed: {description: Whether a missed run is repeated., type: bool, sample: true}
    comment: {description: Its comment., type: str, sample: ''}
    next_run: {description: 'When it runs next in ISO 8601 format, UTC. Null if that is
        unknown.', type: str, sample: '2026-11-21T02:30:00Z'}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create backup job 'nightly']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: unknown storage
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
  sample: [Create backup job 'nightly']
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._backup.job.table import BACKUP_JOB
from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.backup_job import (
    backup_job_spec,
)

ENTRY = Entry(partial(run, BACKUP_JOB), backup_job_spec(), name="backup_job")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
