# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules snapshot and snapshot_info.

Written by `make options` from snapshot.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    CHOICE = r"""
options:
  name:
    description:
      - The exact name of one VM.
      - Mutually exclusive with O(vms).
    type: str
  vmid:
    description:
      - The number of one VM. With O(name) too, a VM of that number with another name is refused.
      - Mutually exclusive with O(vms).
    type: int
  vms:
    description: Several VMs, each by its exact name or its number.
    type: list
    elements: str
  tenant:
    description:
      - The tenant whose VMs these are. A VM that is named and does not have exactly this tenant's
        tag is refused.
      - Left out, VMs of every tenant are meant, so it is an error when it is given without a value.
      - Without O(name), O(vmid) and O(vms) all VMs of the tenant with O(tags) are chosen, without
        templates.
    type: str
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  tags:
    description:
      - Chooses the VMs that have all of these tags, with O(tenant) only those of the tenant.
      - It has no effect on a VM that is named.
    type: list
    elements: str
"""

    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(present) creates the snapshot unless it exists. Only the description of an
        existing snapshot is changed.
      - V(absent) deletes the snapshot. Its children become children of its parent.
      - V(rolled_back) rolls the VM back to the snapshot. Later changes are lost, including
        options and tags. The notes of the VM and its current tenant's tag are kept.
    type: str
    choices: [present, absent, rolled_back]
    default: present
  snapshot:
    description:
      - Name of the snapshot, 2 to 40 letters, digits, V(_) and V(-), starting with
        a letter.
      - With O(state=present), it defaults to O(prefix) and the time in UTC, such as
        V(auto-20260131-235959).
      - Without it, O(state=absent) deletes only snapshots that match O(pattern).
    type: str
  prefix:
    description: Prefix of an automatic name.
    type: str
    default: auto-
  description:
    description: Description of the snapshot.
    type: str
  vmstate:
    description: Whether to save the memory of a running VM. For a VM that does not
      run it has no effect, and a warning reports that.
    type: bool
    default: false
  keep:
    description:
      - Number of the newest snapshots matching O(pattern) to keep. Older matching snapshots
        are deleted.
      - Together with O(keep_for), a snapshot is deleted only if neither option keeps
        it.
    type: int
  keep_for:
    description:
      - How long to keep snapshots that match O(pattern), as a number with the unit
        V(s), V(m), V(h), V(d) or V(w), such as V(12h) or V(7d).
      - Together with O(keep), a snapshot is deleted only if neither option keeps it.
    type: str
  pattern:
    description:
      - Shell pattern for the snapshot names to which O(keep) and O(keep_for) apply,
        such as V(nightly-*). It is case-sensitive. Other snapshots, and snapshots that
        Proxmox VE has not finished, are never deleted.
      - With automatic names, it defaults to those with the same O(prefix).
      - With O(state=absent) and without O(keep) and O(keep_for), all matching snapshots
        are deleted.
    type: str
  restart:
    description:
      - Whether to start a VM after a rollback if it ran before. Proxmox VE itself leaves
        it stopped.
      - After a rollback to a snapshot with memory the VM always runs.
    type: bool
    default: true
  force:
    description:
      - Whether a rollback may delete newer snapshots. They are deleted before the rollback,
        starting with the newest.
      - This is needed only on storages that can only roll back to the newest snapshot,
        which are ZFS, LVM, and files with snapshots as volume chains. On all other
        storages newer snapshots are kept.
    type: bool
    default: false
  parallel:
    description:
      - Maximum number of VMs that are processed at the same time.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 4
  task_timeout:
    description:
      - Seconds to wait for each task of Proxmox VE.
      - A task that takes longer keeps running on the node. RV(error) then contains
        its C(upid), and the next run waits for it.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 300
"""

    INFO = r"""
options:
  details:
    description:
      - Whether to read the sizes of disks and saved memory. This takes one request for each
        snapshot and one for each storage with saved memory.
      - Proxmox VE does not report the space that a snapshot itself uses.
    type: bool
    default: false
"""
