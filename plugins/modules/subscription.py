#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from subscription.yml: do not edit.

DOCUMENTATION = r"""
module: subscription
short_description: Manage the subscription of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Sets or removes the subscription key of a node. The node checks a new key with the shop of
    Proxmox, and needs a connection to it. A key that the shop does not know then has the status
    V(invalid).
  - The token needs C(Sys.Modify) and C(Sys.Audit) on the node.
options:
  node:
    description: Name of the node.
    type: str
    required: true
  state:
    description: V(present) sets the key of a node without a key, V(absent) removes the key.
    type: str
    choices: [present, absent]
    default: present
  key:
    description: The key of the subscription, for at least as many sockets as the node has. Required
      if the node has no key. It is never returned.
    type: str
  update_secrets:
    description: When O(key) is written to a node that has a subscription. V(on_create) does not
      replace an existing key, V(always) writes the key in each run.
    type: str
    choices: [on_create, always]
    default: on_create
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.subscription_info}, {module: pve.fleet.apt_repository}]
"""

EXAMPLES = r"""
- name: Set the key of a node without a subscription
  pve.fleet.subscription:
    node: pve1
    key: "{{ lookup('ansible.builtin.env', 'PVE_KEY') or 'pve2c-0123456789' }}"

- name: Replace the key
  pve.fleet.subscription:
    node: pve1
    key: pve2s-abcdef0123
    update_secrets: always

- name: Remove the key
  pve.fleet.subscription:
    node: pve1
    state: absent
"""

RETURN = r"""
subscription:
  description: The result as it is afterwards, or in check mode as it would be. It is null without a
    subscription. RV(pve.fleet.subscription_info#module:subscriptions) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create the subscription of node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: key, status: null, path: null, upid: null, retryable: false,
    tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.subscription import (
    subscription_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.identity.subscription import (
    SUBSCRIPTION,
)

ENTRY = ModuleEntry(partial(run, SUBSCRIPTION), subscription_spec(), name="subscription")
main = ENTRY.main

if __name__ == "__main__":
    main()
