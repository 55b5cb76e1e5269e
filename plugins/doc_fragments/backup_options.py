# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules backup and backup_info.

Written by `make options` from backup.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    CHOICE = r"""
options:
  name:
    description:
      - The exact name of one VM or container.
      - Mutually exclusive with O(vms).
    type: str
  vmid:
    description:
      - The number of one VM or container. With O(name) too, a guest of that number with another
        name is refused.
      - Mutually exclusive with O(vms).
    type: int
  vms:
    description: Several VMs and containers, each by its exact name or its number.
    type: list
    elements: str
  tenant:
    description:
      - The tenant whose guests these are. A guest that is named and does not have exactly this
        tenant's tag is refused.
      - By default, guests of every tenant are meant. An empty value is therefore an error.
    type: str
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  tags:
    description:
      - Chooses the guests that have all of these tags, with O(tenant) only those of the tenant.
      - It has no effect on a guest that is named.
    type: list
    elements: str
  pool:
    description:
      - Chooses the guests in this resource pool, with O(tenant) only those of the tenant.
      - It has no effect on a guest that is named.
    type: str
"""

    DOCUMENTATION = r"""
options:
  storage:
    description: Storage for the archives. It must have content V(backup) and be available
      on the node of each guest.
    type: str
    required: true
  mode:
    description: Whether a running guest continues (V(snapshot)), is suspended or is stopped.
      The default of Proxmox VE is V(snapshot).
    type: str
    choices: [snapshot, suspend, stop]
  compress:
    description: Compression of the archives. V(0) is none, which is the default of Proxmox
      VE.
    type: str
    choices: ['0', gzip, lzo, zstd]
  notes_template:
    description: Notes of the archives. They can contain C({{cluster}}), C({{guestname}}),
      C({{node}}) and C({{vmid}}); write such a name as a text in an expression so that Ansible
      does not fill it in.
    type: str
  protected:
    description: Whether the new archives are protected from removal.
    type: bool
    default: false
  fleecing:
    description: Fleecing of VMs, so that a slow backup storage does not slow down the guest.
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
  pbs_change_detection_mode:
    description: How files of containers that changed are detected on a backup server.
    type: str
    choices: [legacy, data, metadata]
  max_age:
    description:
      - A guest with a younger archive on O(storage) is not backed up again. This is a number
        with the unit V(s), V(m), V(h), V(d) or V(w), such as V(20h).
      - By default, every run backs up every guest.
    type: str
  keep:
    description:
      - Number of archives of each guest on O(storage) to keep, by the rule of Proxmox VE.
        The others are removed after the backup of the guest; if that fails, none is removed.
      - Protected archives, renamed ones, and those of an earlier guest with the same VMID
        are never removed. With O(tenant), neither are those whose configuration does not
        have exactly this tenant's tag.
      - By default, nothing is removed, whatever rule the storage has.
    type: dict
    suboptions:
      keep_all:
        description: Whether all backups are kept. It excludes all other keys.
        type: bool
      keep_last:
        description: Number of the newest backups to keep.
        type: int
      keep_hourly:
        description: Number of hours of which the newest backup is kept.
        type: int
      keep_daily:
        description: Number of days of which the newest backup is kept.
        type: int
      keep_weekly:
        description: Number of weeks of which the newest backup is kept.
        type: int
      keep_monthly:
        description: Number of months of which the newest backup is kept.
        type: int
      keep_yearly:
        description: Number of years of which the newest backup is kept.
        type: int
  parallel:
    description:
      - Maximum number of nodes that back up at the same time. A node backs up one guest at
        a time.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 4
  task_timeout:
    description:
      - Seconds to wait for each backup. A backup that takes longer keeps running on the node.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 10800
"""

    INFO = r"""
options:
  storages:
    description: Only archives on these storages. By default, all storages with content V(backup)
      are read.
    type: list
    elements: str
  max_age:
    description:
      - A guest whose newest archive is older counts as a guest without a backup. This is a number
        with the unit V(s), V(m), V(h), V(d) or V(w), such as V(26h).
      - By default, an archive of any age is enough.
    type: str
  newest:
    description: Whether to return only the newest archive of each guest. The figures in RV(guests)
      are of all its archives.
    type: bool
    default: false
  detect_reuse:
    description:
      - Whether to recognize archives of an earlier guest that had the same VMID, by the tasks that
        removed it. This takes two more requests for each node.
      - With O(tenant) this is always done.
    type: bool
    default: false
"""
