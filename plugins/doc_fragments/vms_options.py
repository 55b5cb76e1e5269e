# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module vms except the options of a VM.

Written by `make options` from vms.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  vms:
    description:
      - The VMs, each with a name or a VMID. All are validated before
        the first change.
      - Options of a VM override those of its class, which override
        the options for every VM; C(docs/fleet.md) says how lists
        and dictionaries are merged.
    type: list
    elements: dict
  containers:
    description:
      - The containers, each with a name or a VMID, with the options
        of M(pve.fleet.container), and C(class), C(classes) and
        C(site). They are planned together with O(vms), and both
        share VMIDs, the names of a tenant and its quota.
      - Options next to O(vms), those of classes and of O(defaults)
        hold for containers too if containers have them, except
        C(source) and C(full).
    type: list
    elements: dict
  defaults:
    description:
      - Options for every VM and container as one dictionary, such
        as a variable of an estate. It overrides the same options
        next to O(vms). Every option is allowed except name and
        VMID; one that only VMs or only containers have holds for
        these.
    type: dict
    default: {}
  tenants:
    description:
      - Limits the run to the VMs of these tenants, compared exactly.
        An empty list means all VMs, and VMs of other tenants are
        validated too.
      - With O(prune) it must contain exactly one tenant, and only
        its VMs are removed.
    type: list
    elements: str
  tenant_settings:
    description:
      - What holds for the VMs of a tenant, by its name. Options
        of a VM and of its class override it, it overrides the options
        for every VM, and a VM of a tenant that it does not have
        is rejected.
      - Each is a dictionary with any of C(pool), C(tags), C(quota),
        C(allow_privileged), C(placement), C(networks), C(classes),
        C(storage_classes), C(class), C(backup), C(site), and C(defaults)
        for other options; C(comment) and C(access) are for M(pve.fleet.tenant).
    type: dict
    default: {}
  tenants_required:
    description: Whether each tenant in O(tenants) must have a VM
      in the list.
    type: bool
    default: true
  remove:
    description:
      - Whether to remove the VMs of the list, regardless of O(vms[].state)
        and O(prune). Only options that identify a VM, stop it or
        lift its protection are used.
      - No VM is removed if an entry has the VMID of a VM with another
        name, or if an entry without a tenant refers to a VM with
        a tenant's tag.
    type: bool
    default: false
  prune:
    description:
      - Whether to remove VMs, with their disks, that are not in
        the list and have exactly the tag of O(tenant), are in O(pool),
        or both if both are set.
      - Templates are never removed, and a protected VM is an error.
        No VM is removed if the list is empty or a VM of the list
        fails.
    type: bool
    default: false
  backup_jobs:
    description:
      - Whether the jobs of O(backup) are created and changed. V(false)
        leaves them to a run with another login, so that a login
        without C(Sys.Modify) on C(/) can work on the guests.
    type: bool
    default: true
  reboot_batch:
    description:
      - Maximum number of running VMs that are down at the same
        time for a reboot, restart, reset or a change that needs
        a stop. V(0) means unlimited.
      - The next batch starts when all VMs of the previous one run
        again; if one does not, the remaining VMs fail.
      - Environment variable E(PROXMOX_REBOOT_BATCH).
    type: int
    default: 5
  details:
    description: Whether RV(vms) includes the properties, plan and
      conditions of each VM in addition to its outcome.
    type: bool
    default: true
  parallel:
    description:
      - Maximum number of concurrent tasks of Proxmox VE. 0 means
        unlimited.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 32
  parallel_per_node:
    description:
      - Maximum number of concurrent tasks on one node. 0 means
        unlimited. A clone runs on the node of its source.
      - Environment variable E(PROXMOX_PARALLEL_PER_NODE).
    type: int
    default: 4
  parallel_per_storage:
    description:
      - Maximum number of VMs whose disks are created on one storage
        at the same time. 0 means unlimited.
      - Environment variable E(PROXMOX_PARALLEL_PER_STORAGE).
    type: int
    default: 0
  parallel_per_template:
    description:
      - Maximum number of concurrent clones of one template or VM.
        0 means unlimited.
      - Environment variable E(PROXMOX_PARALLEL_PER_TEMPLATE).
    type: int
    default: 4
  backup:
    description:
      - The backup job of a guest, here for all guests, with O(backup.schedule)
        and O(backup.storage) at least. Guests with equal options
        share a job.
      - By default, the jobs of a guest are not changed; C(docs/backup.md)
        has the rules and the privileges.
    type: dict
    suboptions:
      schedule:
        description: Calendar event of Proxmox VE, such as V(02:30)
          or V(mon..fri 22:00). An empty text takes the guest out
          of the jobs of estates.
        type: str
      storage:
        description: Storage for the archives.
        type: str
      keep:
        description:
          - Number of backups of each guest that are kept. After
            a backup, Proxmox VE removes the other backups of the
            guest on the storage that are not protected.
          - By default, the rule of the storage applies.
        type: dict
        suboptions:
          keep_all:
            description: Whether all backups are kept. It excludes
              all other keys.
            type: bool
          keep_last:
            description: Number of the newest backups to keep.
            type: int
          keep_hourly:
            description: Number of hours of which the newest backup
              is kept.
            type: int
          keep_daily:
            description: Number of days of which the newest backup
              is kept.
            type: int
          keep_weekly:
            description: Number of weeks of which the newest backup
              is kept.
            type: int
          keep_monthly:
            description: Number of months of which the newest backup
              is kept.
            type: int
          keep_yearly:
            description: Number of years of which the newest backup
              is kept.
            type: int
      mode:
        description: Whether a running guest continues (V(snapshot)),
          is suspended or is stopped. By default, as the node has
          it, which is V(snapshot).
        type: str
        choices: ['', snapshot, suspend, stop]
      compress:
        description: Compression of the archives. V(0) is none.
          By default, as the node has it, which is V(0).
        type: str
        choices: ['', '0', gzip, lzo, zstd]
      notes_template:
        description: Template for the notes of the archives, see
          O(pve.fleet.backup_job#module:notes_template).
        type: str
      bwlimit:
        description: Bandwidth limit in KiB/s. By default, there
          is none.
        type: int
      repeat_missed:
        description: Whether the job runs as soon as possible if
          it missed its time. By default, it does not.
        type: bool
"""
