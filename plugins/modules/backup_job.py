#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from backup_job.yml: do not edit.

DOCUMENTATION = r"""
module: backup_job
short_description: Manage backup jobs
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a scheduled backup job of the cluster.
  - Pools, nodes and storages that do not exist, and storages without content C(backup), are refused
    before the first write. Proxmox VE itself accepts them, and the job then fails when it runs.
    Guests that do not exist cause a warning.
  - Proxmox VE does not protect a job against concurrent changes by two programs.
  - The token needs C(Sys.Audit) and C(Sys.Modify) on C(/), C(Datastore.Allocate) on the storage,
    and C(VM.Backup) on O(pool).
options:
  name:
    description: ID of the job.
    type: str
    required: true
  state:
    description: V(present) creates the job or updates settings that differ, V(absent) deletes it.
      Archives are never deleted.
    type: str
    choices: [present, absent]
    default: present
  schedule:
    description: Calendar event of Proxmox VE, such as V(02:30) or V(mon..fri 22:00). Required for a
      new job.
    type: str
  enabled:
    description: Whether the job is enabled. By default, V(true) for a new job. Otherwise it is not
      changed.
    type: bool
  all:
    description:
      - Whether the job backs up all guests, also those that are created later.
      - A job has one of O(all), O(vms) and O(pool). The new choice replaces the former one.
    type: bool
  vms:
    description: VMIDs of the VMs and containers that the job backs up. The list replaces the guests
      of the job.
    type: list
    elements: int
  pool:
    description: Resource pool whose guests the job backs up, also those that become members later.
    type: str
  exclude:
    description: VMIDs that the job excludes, with O(all) or O(pool) in the same task. An empty list
      removes all exclusions. By default, they are not changed.
    type: list
    elements: int
  node:
    description: Only guests on this node. An empty text removes the limit. By default, it is not
      changed.
    type: str
  storage:
    description: Storage for the archives. By default, it is not changed, and a new job uses
      V(local).
    type: str
  mode:
    description: Whether a running guest continues (V(snapshot)), is suspended or is stopped. An
      empty text restores the default of the node, which is V(snapshot). By default, it is not
      changed.
    type: str
    choices: ['', snapshot, suspend, stop]
  compress:
    description: Compression of the archives. V(0) means no compression. An empty text restores the
      default of the node, which is V(0). By default, it is not changed.
    type: str
    choices: ['', '0', gzip, lzo, zstd]
  prune_backups:
    description:
      - Number of backups of each guest that are kept. After a backup, Proxmox VE removes the other
        backups of the guest on the storage that are not protected.
      - It replaces the whole retention of the job. With an empty dictionary, the retention of the
        storage applies. By default, it is not changed.
    type: dict
    suboptions:
      keep_all:
        description: Whether all backups are kept. It cannot be combined with other keys.
        type: bool
      keep_last:
        description: Number of the newest backups to keep.
        type: int
      keep_hourly:
        description: Number of hours for which the newest backup is kept.
        type: int
      keep_daily:
        description: Number of days for which the newest backup is kept.
        type: int
      keep_weekly:
        description: Number of weeks for which the newest backup is kept.
        type: int
      keep_monthly:
        description: Number of months for which the newest backup is kept.
        type: int
      keep_yearly:
        description: Number of years for which the newest backup is kept.
        type: int
  remove:
    description: Whether the job removes old backups. By default, V(true) for a new job. Otherwise
      it is not changed.
    type: bool
  notes_template:
    description: Template for the notes of the archives. It can contain C({{cluster}}),
      C({{guestname}}), C({{node}}) and C({{vmid}}); write such a name as a string in an expression,
      so Ansible does not evaluate it. An empty text removes it. By default, it is not changed.
    type: str
  protected:
    description: Whether new archives are protected from removal. By default, it is not changed.
    type: bool
  fleecing:
    description: Fleecing for VMs, which prevents a slow backup storage from slowing down the guest.
      An empty dictionary removes it. By default, it is not changed.
    type: dict
    suboptions:
      enabled:
        description: Whether fleecing is used.
        type: bool
      storage:
        description: Storage for fleecing images.
        type: str
  bwlimit:
    description: Bandwidth limit in KiB/s. V(0) means no limit. By default, it is not changed.
    type: int
  ionice:
    description: Priority of disk access. V(8) means the idle class. By default, it is not changed.
    type: int
  zstd:
    description: Number of threads of zstd. V(0) means half of the cores. By default, it is not
      changed.
    type: int
  pigz:
    description: Number of threads of pigz, which replaces gzip. V(0) means gzip, V(1) means half of
      the cores. By default, it is not changed.
    type: int
  performance:
    description: Performance settings. An empty dictionary removes them. By default, they are not
      changed.
    type: dict
    suboptions:
      max_workers:
        description: Maximum number of workers for a VM.
        type: int
      pbs_entries_max:
        description: Maximum number of entries in memory for a container on a backup server.
        type: int
  pbs_change_detection_mode:
    description: How changed files of containers are detected on a backup server. An empty text
      removes it. By default, it is not changed.
    type: str
    choices: ['', legacy, data, metadata]
  exclude_path:
    description: Shell patterns of files in containers that are excluded. The list replaces the
      patterns of the job. By default, it is not changed.
    type: list
    elements: str
  stdexcludes:
    description: Whether temporary files and logs of containers are excluded. By default, it is not
      changed.
    type: bool
  lockwait:
    description: Minutes to wait for another backup on the node. By default, it is not changed.
    type: int
  stopwait:
    description: Minutes to wait until a guest has stopped. By default, it is not changed.
    type: int
  tmpdir:
    description: Directory for temporary files on the node. Only root@pam with a password may set
      it. An empty text removes it. By default, it is not changed.
    type: str
  script:
    description: Hook script on the node. Only root@pam with a password may set it. An empty text
      removes it. By default, it is not changed.
    type: str
  notification_mode:
    description: Whether notifications go to O(mailto) or to the notification system. An empty text
      removes it. By default, it is not changed.
    type: str
    choices: ['', auto, legacy-sendmail, notification-system]
  mailto:
    description: Addresses or users for notifications by mail. The list replaces the addresses of
      the job. By default, it is not changed.
    type: list
    elements: str
  mailnotification:
    description: Whether mails are sent always or only after a failure. An empty text removes it. By
      default, it is not changed.
    type: str
    choices: ['', always, failure]
  repeat_missed:
    description: Whether the job runs as soon as possible if it missed its time, for example because
      a node was down. By default, it is not changed.
    type: bool
  comment:
    description: Comment on the job. An empty text removes it. By default, it is not changed.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.backup_job_info}, {module: pve.fleet.backup_info}]
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

- name: Exclude the templates
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

- name: Disable a job during a maintenance
  pve.fleet.backup_job:
    name: nightly
    enabled: false

- name: Delete a job, and keep its archives
  pve.fleet.backup_job:
    name: acme
    state: absent
"""

RETURN = r"""
backup_job:
  description: The job as it is afterwards, or in check mode as it would be. It is null if the job
    is deleted. RV(pve.fleet.backup_job_info#module:backup_jobs) describes its fields.
  returned: success
  type: dict
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
  sample: {category: Conflict, reason: unknown storage, status: null, path: null, upid: null,
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
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.backup_job import (
    backup_job_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.job.table import (
    BACKUP_JOB,
)

ENTRY = ModuleEntry(partial(run, BACKUP_JOB), backup_job_spec(), name="backup_job")
main = ENTRY.main

if __name__ == "__main__":
    main()
