#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from backup.yml: do not edit.

DOCUMENTATION = r"""
module: backup
short_description: Create backups of VMs and containers
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Backs up one or several guests, and removes old archives by a retention policy.
  - Guests on different nodes are processed in parallel, within O(parallel) and
    O(parallel_per_storage). A guest that fails does not stop the others; the task fails at the end,
    and RV(guests) has the outcome of each guest.
  - The token needs C(VM.Audit) and C(VM.Backup) on the guests, and C(Datastore.Audit) and
    C(Datastore.AllocateSpace) on the storage. On a backup server, O(keep) with hours, days or
    longer periods needs C(Sys.Audit) on the nodes.
  - If the retention of the storage limits the number of archives, Proxmox VE accepts no further
    archives from a token without C(Datastore.Allocate) on the storage. The guest is then refused,
    unless O(protected) is set.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - Without O(max_age) every run creates a backup.
options:
  storage:
    description: Storage for the archives. It must have content V(backup) and be available on the
      node of each guest.
    type: str
    required: true
  mode:
    description: Whether a running guest continues (V(snapshot)), is suspended or is stopped. The
      default of Proxmox VE is V(snapshot).
    type: str
    choices: [snapshot, suspend, stop]
  compress:
    description: Compression of the archives. V(0) means no compression, which is the default of
      Proxmox VE.
    type: str
    choices: ['0', gzip, lzo, zstd]
  notes_template:
    description: Notes of the archives. They can contain C({{cluster}}), C({{guestname}}),
      C({{node}}) and C({{vmid}}); write such a name as a string in an expression, so Ansible does
      not evaluate it.
    type: str
  protected:
    description: Whether the new archives are protected from removal.
    type: bool
    default: false
  fleecing:
    description: Fleecing for VMs, which prevents a slow backup storage from slowing down the guest.
    type: dict
    suboptions:
      enabled:
        description: Whether fleecing is used.
        type: bool
      storage:
        description: Storage for fleecing images.
        type: str
  bwlimit:
    description: Bandwidth limit in KiB/s. It needs C(Sys.Modify) on C(/).
    type: int
  ionice:
    description: Priority of disk access. V(8) means the idle class. It needs C(Sys.Modify) on C(/).
    type: int
  zstd:
    description: Number of threads of zstd. V(0) means half of the cores.
    type: int
  pigz:
    description: Number of threads of pigz, which replaces gzip. V(0) means gzip, V(1) means half of
      the cores.
    type: int
  performance:
    description: Performance settings. They need C(Sys.Modify) on C(/).
    type: dict
    suboptions:
      max_workers:
        description: Maximum number of workers for a VM.
        type: int
      pbs_entries_max:
        description: Maximum number of entries in memory for a container on a backup server.
        type: int
  exclude_path:
    description: Shell patterns of files in containers that are excluded.
    type: list
    elements: str
  stdexcludes:
    description: Whether temporary files and logs of containers are excluded. The default of Proxmox
      VE is V(true).
    type: bool
  lockwait:
    description: Minutes to wait for another backup on the node. The default of Proxmox VE is
      V(180).
    type: int
  stopwait:
    description: Minutes to wait until a guest has stopped. The default of Proxmox VE is V(10).
    type: int
  tmpdir:
    description: Directory for temporary files on the node. Only root@pam with a password may set
      it.
    type: str
  script:
    description: Hook script on the node. Only root@pam with a password may set it.
    type: str
  notification_mode:
    description: Whether notifications go to O(mailto) or to the notification system.
    type: str
    choices: [auto, legacy-sendmail, notification-system]
  mailto:
    description: Addresses or users for notifications by mail.
    type: list
    elements: str
  mailnotification:
    description: Whether mails are sent always or only after a failure.
    type: str
    choices: [always, failure]
  pbs_change_detection_mode:
    description: How changed files of containers are detected on a backup server.
    type: str
    choices: [legacy, data, metadata]
  max_age:
    description:
      - A guest with an archive on O(storage) that is younger than this age is not backed up again.
        The age is a number with the unit V(s), V(m), V(h), V(d) or V(w), such as V(20h).
      - By default, every run backs up every guest.
    type: str
  keep:
    description:
      - Number of archives of each guest on O(storage) to keep, by the rules of Proxmox VE. Other
        archives are removed after the backup of the guest. If the backup fails, no archive is
        removed.
      - Protected archives, renamed archives, and archives of an earlier guest with the same VMID
        are never removed. With O(tenant), archives whose configuration does not have exactly this
        tenant's tag are also kept.
      - By default, nothing is removed, regardless of the retention of the storage.
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
  parallel:
    description:
      - Maximum number of nodes that back up at the same time. A node backs up one guest at a time.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 4
  parallel_per_storage:
    description:
      - Maximum number of concurrent backups to O(storage) from all nodes together. A storage that
        is not shared is counted on each node. With 0, only O(parallel) limits the backups.
      - Environment variable E(PROXMOX_PARALLEL_PER_STORAGE).
    type: int
    default: 0
  task_timeout:
    description:
      - Seconds to wait for each backup. A backup that takes longer keeps running on the node.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 10800
extends_documentation_fragment:
  - pve.fleet.backup_options.choice
  - pve.fleet.connection
  - pve.fleet.attributes
seealso: [{module: pve.fleet.backup_info}, {module: pve.fleet.backup_job}]
"""

EXAMPLES = r"""
- name: Back up a VM before an upgrade, and protect the archive
  pve.fleet.backup:
    name: web1
    tenant: acme
    storage: local
    compress: zstd
    notes_template: before the upgrade
    protected: true

- name: Back up the guests of a tenant at most every 20 hours, and keep three archives of each
  pve.fleet.backup:
    tenant: acme
    storage: local
    max_age: 20h
    keep: {keep_last: 3}
  register: backups

- name: Show which archives were removed
  ansible.builtin.debug:
    msg: "{{ item.name }}: {{ item.removed | join(', ') or 'none' }}"
  loop: "{{ backups.guests }}"
  loop_control:
    label: "{{ item.vmid }}"
"""

RETURN = r"""
guests:
  description:
    - The selected guests, by VMID.
    - If the task fails for some of the guests, it contains all of them.
  returned: always, unless the options are rejected
  type: list
  elements: dict
  contains:
    vmid: {description: VMID of the guest., type: int, sample: 15046}
    type: {description: V(qemu) for a VM and V(lxc) for a container., type: str, sample: qemu}
    name: {description: Name of the guest., type: str, sample: web1}
    node: {description: Node on which the guest is., type: str, sample: pve1}
    tenant: {description: Tenant of the guest. Null without a tenant's tag or with several.,
      type: str, sample: acme}
    failed: {description: Whether the guest failed. C(msg) and C(error) then have the reason.,
      type: bool, sample: false}
    changed: {description: 'Whether it was backed up or archives were removed, in check mode whether
      they would be.', type: bool, sample: true}
    backed_up: {description: 'Whether it was backed up, in check mode whether it would be.',
      type: bool, sample: true}
    volume: {description: Volume of the new archive., type: str,
      sample: 'local:backup/vzdump-qemu-15046-2026_11_20-20_15_33.vma.zst'}
    size: {description: Size of the new archive in bytes., type: int, sample: 1073741824}
    duration: {description: Duration of the backup in seconds., type: int, sample: 42}
    left_out: {description: 'Disks that its backup leaves out, because their backup is off. The
      default of a container''s mounts is off. Null if its configuration cannot be read, or if it
      was not backed up.', type: list, elements: str, sample: [mp0]}
    warnings: {description: Warnings of the task., type: list, elements: str, sample: []}
    removed: {description: Volumes of the removed archives., type: list, elements: str, sample: []}
    archives:
      description:
        - With O(keep), the archives of the guest on the storage, the newest first. In check mode,
          they include the new archive. Each has C(volume), C(ctime), C(mark) and C(reason).
        - The mark is V(keep), V(remove), V(protected), V(renamed) or V(foreign).
      type: list
      elements: dict
      sample: [{volume: 'local:backup/vzdump-qemu-15046-2026_11_13-20_15_33.vma.zst',
        ctime: 1794600933, mark: keep, reason: keep-weekly 2026-W46}]
    plan: {description: The steps in words., type: list, elements: str, sample: [Back up guest
      'web1' (15046) to storage local]}
    done: {description: The steps that were carried out., type: list, elements: str, sample: []}
report:
  description: 'Lines for people: one for each guest that changes or fails, in check mode the
    limits, and the counts.'
  returned: always, unless the options are rejected
  type: list
  elements: str
  sample: [~ acme/web1  back up to storage local, 'Plan: 1 to change']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: VM.Backup on /vms/15046, status: null, path: null,
    upid: null, retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.backup import backup_spec
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.create.run import run

ENTRY = ModuleEntry(
    run,
    backup_spec(),
    {
        "mutually_exclusive": [("name", "vms"), ("vmid", "vms")],
        "required_one_of": [("name", "vmid", "vms", "tenant", "tags", "pool")],
    },
    names={"fleecing.storage": "storage", "tenant": "tenant", "tags": "tag", "pool": "pool"},
    name="backup",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
