#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from subscription.yml: do not edit.

DOCUMENTATION = r"""
module: subscription_info
short_description: Gather information about the subscription of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the subscription of a node, without its key. One request is made.
  - Without C(Sys.Audit) on the node, Proxmox VE only returns the status and the level.
options:
  node:
    description: Name of the node.
    type: str
    required: true
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.subscription}]
"""

EXAMPLES = r"""
- name: Read the subscription
  pve.fleet.subscription_info:
    node: pve1
  register: found

- name: Show its status
  ansible.builtin.debug:
    msg: "{{ found.subscriptions | map(attribute='status') | join }}"
"""

RETURN = r"""
subscriptions:
  description: The subscription of the node, an empty list if it has none.
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: The node., type: str, sample: pve1}
    status: {description: 'Its status, such as V(active), V(expired) or V(invalid).', type: str,
      sample: active}
    level: {description: Its level., type: str, sample: s}
    product_name: {description: The name of the product., type: str}
    next_due_date: {description: The day on which it must be renewed., type: str,
      sample: '2027-01-01'}
    sockets: {description: Number of sockets of the node., type: int, sample: 2}
    server_id: {description: The ID of the node in the shop., type: str}
    message: {description: The message of the shop., type: str, sample: ''}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.subscription import (
    subscription_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.identity.subscription import (
    SUBSCRIPTION,
)

ENTRY = ModuleEntry(
    partial(run_info, SUBSCRIPTION), subscription_info_spec(), name="subscription_info"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
