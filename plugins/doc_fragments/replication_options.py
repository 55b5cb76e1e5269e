# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules replication and replication_info.

Written by `make options` from replication.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  id:
    description: 'ID of the job: the VMID of the guest and a number, such as V(100-0).'
    type: str
    required: true
  state:
    description: V(present) creates the job or changes what differs, V(absent) deletes it. The
      replicated disks on the target are removed with it.
    type: str
    choices: [present, absent]
    default: present
  target:
    description: Node that the disks are replicated to. Required for a new job. It cannot be
      changed.
    type: str
  schedule:
    description: Calendar event, such as V(*/30) for every 30 minutes. V(*/15) unless set. An
      empty text restores the default of Proxmox VE. By default, it is not changed.
    type: str
  rate:
    description: Limit in MB/s. An empty text removes it. By default, it is not changed.
    type: str
  disable:
    description: Whether the job does not run. By default, it is not changed.
    type: bool
  comment:
    description: Comment on the job. An empty text removes it. By default, it is not changed.
    type: str
  tenant:
    description: Tenant to which the guest must belong. A guest without exactly the tag of this
      tenant is refused. By default, guests of every tenant are accepted.
    type: str
  force:
    description: Whether O(state=absent) deletes the job at once and leaves the replicated disks
      on the target. Otherwise the node of the guest deletes both within minutes.
    type: bool
    default: false
"""

    INFO = r"""
options:
  id:
    description: ID of one job, such as V(100-0). By default, all jobs are returned.
    type: str
"""
