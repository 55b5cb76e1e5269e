#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_service.yml: do not edit.

DOCUMENTATION = r"""
module: node_service_info
short_description: Gather information about services of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the services of a node that Proxmox VE manages. One request is made.
  - The token needs C(Sys.Audit) on the node.
options:
  node:
    description: Name of the node.
    type: str
    required: true
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.node_service}]
"""

EXAMPLES = r"""
- name: Read the services
  pve.fleet.node_service_info:
    node: pve1
  register: found

- name: Show failed services
  ansible.builtin.debug:
    msg: "{{ found.services | selectattr('active_state', 'eq', 'failed') | map(attribute='name') }}"
"""

RETURN = r"""
services:
  description: The services, sorted by name. A service with the unit state V(not-found) is not
    installed.
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: Its node., type: str, sample: pve1}
    name: {description: Its name., type: str, sample: postfix}
    description: {description: Its description., type: str, sample: Postfix Mail Transport Agent}
    state: {description: 'Its state, the SubState of systemd.', type: str, sample: running}
    active_state: {description: 'Whether it is active, the ActiveState of systemd.', type: str,
      sample: active}
    unit_state: {description: 'Whether it starts with the node, the UnitFileState of systemd.',
      type: str, sample: enabled}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.node_service import (
    node_service_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.service import run_info

ENTRY = ModuleEntry(run_info, node_service_info_spec(), name="node_service_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
