#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from replication.yml: do not edit.

DOCUMENTATION = r"""
module: replication_info
short_description: Gather information about replication jobs
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one job or all of them, without those that are being deleted. One request is made.
  - The token needs C(VM.Audit) on the guests.
options:
  id:
    description: ID of one job, such as V(100-0). By default, all jobs are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.replication}]
"""

EXAMPLES = r"""
- name: Read all jobs
  pve.fleet.replication_info:
  register: known

- name: List the guests that are replicated to pve2
  ansible.builtin.debug:
    msg: "{{ known.replications | selectattr('target', 'eq', 'pve2') | map(attribute='vmid') }}"
"""

RETURN = r"""
replications:
  description: The jobs, sorted by ID.
  returned: success
  type: list
  elements: dict
  contains:
    id: {description: Its ID., type: str, sample: 100-0}
    vmid: {description: The VMID of the guest., type: int, sample: 100}
    target: {description: The node to which it replicates., type: str, sample: pve2}
    source: {description: The node of the guest., type: str, sample: pve1}
    schedule: {description: When it runs., type: str, sample: '*/15'}
    rate: {description: The limit in MB/s., type: str, sample: ''}
    disable: {description: Whether it is disabled., type: bool, sample: false}
    comment: {description: Its comment., type: str, sample: ''}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.replication import (
    replication_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.replication import (
    REPLICATION,
)

ENTRY = ModuleEntry(
    partial(run_info, REPLICATION), replication_info_spec(), name="replication_info"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
