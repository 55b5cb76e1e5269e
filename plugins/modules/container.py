#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from container.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: container
short_description: Manage a container
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Creates, updates and removes a container, and changes its power state. Only what the task
    sets is changed, and a container that already is as described is not changed. Check mode,
    diff mode and the real run use the same plan, and check mode only reads.
  - 'A first container: C(pve.fleet.container: {name: proxy1, source: debian-13-standard, memory:
    1G, state: started}). Only O(name) and O(source) are required. With several tenants, set
    O(tenant) in every task.'
  - The guide C(docs/containers.md) of this collection explains containers by task.
  - An empty text removes an option, such as O(cores), so that the default of Proxmox VE applies
    again.
extends_documentation_fragment:
  - pve.fleet.container_options
  - pve.fleet.container_options.guest
  - pve.fleet.container_options.identity
  - pve.fleet.container_options.life
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.container_info
  - module: pve.fleet.vm
"""

EXAMPLES = r"""
- name: Create a container of tenant acme from the newest Debian template
  pve.fleet.container:
    name: proxy1
    tenant: acme
    source: debian-13-standard
    cores: 2
    memory: 1G
    rootfs:
      size: 8G
    nics:
      - bridge: vmbr0
        ip: dhcp
    state: started

- name: Give it more memory and a volume for its data
  pve.fleet.container:
    name: proxy1
    tenant: acme
    memory: 2G
    mounts:
      - path: /var/lib/data
        size: 10G

- name: Shut it down and remove it with its volumes
  pve.fleet.container:
    name: proxy1
    tenant: acme
    state: absent
    graceful: true
"""

RETURN = r"""
container:
  description:
    - The container after the task, with the keys of RV(pve.fleet.container_info#module:containers).
      In check mode the container as it is now, or only name, node, VMID, C(phase) and C(checked) of
      one that would be created.
    - Null when the container does not exist.
  returned: success
  type: dict
  sample: {vmid: 15047, name: proxy1, node: pve1, status: running}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Set memory=2048 on container 'proxy1' (15047) on node pve1]
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Set memory=2048 on container 'proxy1' (15047) on node pve1]
applied:
  description: Options that were changed and apply immediately. In check mode, options that would
    be.
  returned: success
  type: list
  elements: str
  sample: [memory]
pending:
  description: Options that are set but apply only after a stop or reboot of the VM.
  returned: success
  type: list
  elements: str
  sample: [nesting]
needs_reboot:
  description: Whether the VM needs a stop or reboot, see RV(pending).
  returned: success
  type: bool
  sample: false
placement:
  description:
    - Selected node and the reasons, if this run selected one. Null for a container that stays on
      its node.
    - C(refused) has the reason for each node that was not selected.
  returned: success
  type: dict
  sample: {node: pve2, reasons: [2 of 3 nodes fit], refused: {pve1: offline}}
conditions:
  description:
    - C(Ready), C(VMCreated), C(ResourcesAllocated) and C(NetworkConfigured), each with status and
      reason.
    - If the task failed, the reason is the category of RV(error), and a status that is not known
      is null.
  returned: always
  type: list
  elements: dict
  sample: [{type: Ready, status: true, reason: Running}]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: foreign tenant
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._container.run import run
from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._guest.describe import conditions_of_failure
from ansible_collections.pve.fleet.plugins.module_utils._spec.container import container_spec

ENTRY = Entry(
    run,
    container_spec(),
    {"required_one_of": [("name", "vmid")]},
    conditions=conditions_of_failure,
    name="container",
)


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
