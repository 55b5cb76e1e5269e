#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ha_resource.yml: do not edit.

DOCUMENTATION = r"""
module: ha_resource_info
short_description: Gather information about resources of the HA manager
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one resource of the HA manager or all of them. One request is made.
  - The token needs C(Sys.Audit) on C(/).
options:
  sid:
    description: ID of one resource, such as V(vm:100). By default, all resources are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.ha_resource}]
"""

EXAMPLES = r"""
- name: Read all resources
  pve.fleet.ha_resource_info:
  register: known

- name: List the resources that the HA manager ignores
  ansible.builtin.debug:
    msg: "{{ known.ha_resources | selectattr('request_state', 'eq', 'ignored') }}"
"""

RETURN = r"""
ha_resources:
  description: The resources, sorted by ID. Empty if there is no resource with that ID.
  returned: success
  type: list
  elements: dict
  contains:
    sid: {description: Its ID., type: str, sample: 'vm:100'}
    request_state: {description: The state that the HA manager maintains., type: str,
      sample: started}
    max_restart: {description: Attempts to restart it on its node., type: int, sample: 1}
    max_relocate: {description: Attempts to start it on another node., type: int, sample: 1}
    failback: {description: Whether it moves back to a node of higher priority., type: bool,
      sample: true}
    group: {description: Its group., type: str, sample: ''}
    comment: {description: Its comment., type: str, sample: ''}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ha_resource import (
    ha_resource_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.resource import (
    HA_RESOURCE,
)

ENTRY = ModuleEntry(
    partial(run_info, HA_RESOURCE), ha_resource_info_spec(), name="ha_resource_info"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
