#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from task_info.yml: do not edit.

DOCUMENTATION = r"""
module: task
short_description: Wait for a task of Proxmox VE, or stop it
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Waits until a task has ended, or stops it. The result contains its exit status, its warnings and
    the end of its log.
  - In check mode, a task is neither stopped nor waited for. The result contains the current task.
  - A token may stop its own tasks. To stop other tasks, it needs C(Sys.Modify) on the node, and to
    read them C(Sys.Audit).
options:
  upid:
    description: ID of the task, from RV(pve.fleet.task_info#module:tasks[].upid) or
      O(ignore:error.upid) of a failed task.
    type: str
    required: true
  state:
    description: V(finished) waits until the task has ended, and fails if it failed. V(stopped)
      stops the task if it runs, and does not fail if it failed.
    type: str
    choices: [finished, stopped]
    default: finished
  task_timeout:
    description:
      - Seconds to wait for the end of the task.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 300
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.task_info}]
"""

EXAMPLES = r"""
- name: Find the last task of a VM
  pve.fleet.task_info:
    name: web1
    limit: 1
  register: last

- name: Wait until it has ended
  pve.fleet.task:
    upid: "{{ last.tasks[0].upid }}"
    task_timeout: 3600
  register: ended
  failed_when: false

- name: Stop it if it still runs
  pve.fleet.task:
    upid: "{{ last.tasks[0].upid }}"
    state: stopped
"""

RETURN = r"""
task:
  description:
    - The task, with the keys of RV(pve.fleet.task_info#module:tasks), without C(name), C(tenant),
      C(ended) and C(duration).
    - C(warnings) contains the warnings in its log, and C(log) the last ten lines.
  returned: success
  type: dict
  sample: {node: pve1, type: vzdump, status: ok, exitstatus: OK, warnings: [], log: [TASK OK]}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Stop task vzdump of 15046 on node pve1]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Stop task vzdump of 15046 on node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: TaskFailed, reason: task failed, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.task_info import (
    task_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.tasks.run import run

ENTRY = ModuleEntry(run, task_spec(), name="task")
main = ENTRY.main

if __name__ == "__main__":
    main()
