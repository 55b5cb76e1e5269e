# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module task_info.

Written by `make options` from task_info.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Only tasks of the VM with this name.
    type: str
  vmid:
    description: Only tasks of the guest with this VMID. Without O(tenant) it can be one
      that was removed.
    type: int
  tenant:
    description:
      - Only tasks of VMs with this tenant's tag and without the tag of another tenant.
      - By default, tasks of all tenants and of the nodes themselves are returned. An empty
        value is therefore an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  node:
    description: Only tasks that ran on this node. By default, all nodes are read.
    type: str
  upid:
    description:
      - Only the task with this ID, as O(ignore:error.upid) of a failed task names it. It
        is an error if there is none.
    type: str
  started_by:
    description: Only tasks that this user started, such as V(alice@pve), or this token,
      such as V(alice@pve!deploy).
    type: str
  types:
    description: Only tasks of these types, such as V(qmstart) and V(qmigrate).
    type: list
    elements: str
  failed:
    description: Whether to return only tasks that failed, and those whose result is unknown
      because they were killed.
    type: bool
    default: false
  since:
    description:
      - Only tasks that were started since then. This is a time such as V(2026-11-20) or
        V(2026-11-20T20:15:33Z), or an age such as V(30m), V(24h), V(7d) or V(2w). A time
        without an offset is in UTC.
    type: str
  until:
    description: Only tasks that were started until then, see O(since).
    type: str
  limit:
    description: Maximum number of tasks, the newest of all nodes.
    type: int
    default: 100
  log:
    description: Whether to read the log of each task that is returned. This takes one more
      request for each.
    type: bool
    default: false
"""
