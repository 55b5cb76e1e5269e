#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_service.yml: do not edit.

DOCUMENTATION = r"""
module: node_service
short_description: Manage services of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Starts, stops, restarts or reloads a service of a node, and waits for the end of the task.
  - The services V(pveproxy), V(pvedaemon) and V(pve-cluster) are not stopped, and neither is
    V(corosync) on the node that answers the API.
  - The token needs C(Sys.Modify) and C(Sys.Audit) on the node.
options:
  node:
    description: Name of the node.
    type: str
    required: true
  name:
    description: The service, such as V(pveproxy), V(postfix) or V(chrony). Proxmox VE manages the
      services that M(pve.fleet.node_service_info) lists.
    type: str
    required: true
  state:
    description: V(started) and V(stopped) only change a service that is in another state.
      V(restarted) and V(reloaded) make a change in each run. A service that cannot reload is
      restarted.
    type: str
    required: true
    choices: [started, stopped, restarted, reloaded]
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.node_service_info}, {module: pve.fleet.node}]
"""

EXAMPLES = r"""
- name: Read the services
  pve.fleet.node_service_info:
    node: pve2
  register: found

- name: Restart the mail server
  pve.fleet.node_service:
    node: pve2
    name: postfix
    state: restarted
  when: "'postfix' in found.services | map(attribute='name')"

- name: Start the time server
  pve.fleet.node_service:
    node: pve2
    name: chrony
    state: started
  when: "'chrony' in found.services | map(attribute='name')"
"""

RETURN = r"""
service:
  description: The service as it is afterwards, or in check mode as it would be.
    RV(pve.fleet.node_service_info#module:services) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Restart service postfix of node pve1]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Restart service postfix of node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: essential service, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.node_service import (
    node_service_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.service import run

ENTRY = ModuleEntry(run, node_service_spec(), name="node_service")
main = ENTRY.main

if __name__ == "__main__":
    main()
