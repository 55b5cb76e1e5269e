#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from task_info.yml: do not edit.

DOCUMENTATION = r"""
module: task_info
short_description: Gather information about tasks of Proxmox VE
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the tasks of nodes and VMs, the newest first, with user, start time and result. All
    filters apply together.
  - The module sends one request for the listing and three for each node. A node keeps about 2000 of
    its own tasks.
  - An offline node does not fail the task. RV(missing) has the reason, and a warning is shown. The
    task fails if no node can be read.
  - A token without C(Sys.Audit) on a node only gets its own tasks.
options:
  name:
    description: Only tasks of the VM with this name.
    type: str
  vmid:
    description: Only tasks of the guest with this VMID. Without O(tenant), it can be a removed
      guest.
    type: int
  tenant:
    description:
      - Only tasks of VMs with this tenant's tag and without the tag of another tenant.
      - By default, tasks of all tenants and of the nodes themselves are returned. An empty value is
        therefore an error.
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
      - Only the task with this ID, from O(ignore:error.upid) of a failed task. It is an error if
        there is no such task.
    type: str
  started_by:
    description: Only tasks that this user started, such as V(alice@pve), or this token, such as
      V(alice@pve!deploy).
    type: str
  types:
    description: Only tasks of these types, such as V(qmstart) and V(qmigrate).
    type: list
    elements: str
  failed:
    description: Whether to return only tasks that failed, and tasks whose result is unknown because
      they were killed.
    type: bool
    default: false
  since:
    description:
      - Only tasks that were started since then. The value is a time such as V(2026-11-20) or
        V(2026-11-20T20:15:33Z), or an age such as V(30m), V(24h), V(7d) or V(2w). A time without an
        offset is in UTC.
    type: str
  until:
    description: Only tasks that were started until then, see O(since).
    type: str
  limit:
    description: Maximum number of tasks. The newest tasks of all nodes are returned.
    type: int
    default: 100
  log:
    description: Whether to read the log of each returned task. This takes one more request for
      each.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.vm_info}, {module: pve.fleet.cluster_info}]
"""

EXAMPLES = r"""
- name: Read the tasks that failed in the last 24 hours, with logs
  pve.fleet.task_info:
    failed: true
    since: 24h
    log: true
  register: failures

- name: Show user, task and error
  ansible.builtin.debug:
    msg: "{{ item.started }} {{ item.user }} {{ item.type }} {{ item.name or item.id }}: {{
      item.exitstatus }}"
  loop: "{{ failures.tasks }}"
  loop_control:
    label: "{{ item.upid }}"

- name: Read who started and stopped the VMs of a tenant in the last day
  pve.fleet.task_info:
    tenant: acme
    types: [qmstart, qmstop, qmshutdown]
    since: "2026-11-20"

- name: Read the last task of a VM
  pve.fleet.task_info:
    name: web1
    limit: 1
  register: last
"""

RETURN = r"""
tasks:
  description: The tasks, the newest first.
  returned: success
  type: list
  elements: dict
  contains:
    upid: {description: ID of the task., type: str,
      sample: 'UPID:pve1:0003F4A2:0A1B2C3D:6741A0B1:qmstart:15046:ops@pve!auto:'}
    node: {description: Node on which the task ran., type: str, sample: pve1}
    type: {description: Type of the task., type: str, sample: qmstart}
    id: {description: 'Object of the task, often a VMID.', type: str, sample: '15046'}
    vmid: {description: VMID of the guest. Null if the task concerns something else., type: int,
      sample: 15046}
    name: {description: 'Name of the VM. Null if the task concerns something else, or a removed
      guest.', type: str, sample: web1}
    tenant: {description: 'Tenant of the VM. Null if RV(tasks[].name) is null, or without a
      tenant.', type: str, sample: acme}
    user: {description: User who started the task., type: str, sample: ops@pve}
    token: {description: 'Name of the token that was used, else null.', type: str, sample: auto}
    status: {description: 'V(running), V(ok), V(warning), V(failed), or V(unknown) for a task that
      was killed.', type: str, sample: failed}
    exitstatus: {description: Exit status of the task. Null while it runs., type: str, sample:
      'start failed: QEMU exited with code 1'}
    started: {description: 'When the task was started, in ISO 8601 format, UTC.', type: str,
      sample: '2026-11-20T20:15:33Z'}
    ended: {description: 'When the task ended, null if unknown.', type: str,
      sample: '2026-11-20T20:15:35Z'}
    duration: {description: Seconds from the start to the end., type: int, sample: 2}
    log: {description: 'Lines of the log. Null without O(log), and if the log cannot be read.',
      type: list, elements: str, sample: ['TASK ERROR: start failed: QEMU exited with code 1']}
missing:
  description: Nodes that could not be read, each with C(node), C(category) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: []
checked:
  description: Time of the query in ISO 8601 format, UTC.
  returned: success
  type: str
  sample: '2026-11-20T20:15:33Z'
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.task_info import (
    task_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.tasks.run_info import run

ENTRY = ModuleEntry(
    run,
    task_info_spec(),
    {
        "mutually_exclusive": [
            ("name", "vmid"),
            ("upid", "node"),
            ("upid", "name"),
            ("upid", "vmid"),
        ]
    },
    names={"tenant": "tenant"},
    name="task_info",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
