#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from acme_plugin.yml: do not edit.

DOCUMENTATION = r"""
module: acme_plugin
short_description: Manage plugins of ACME
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a plugin that validates domains for an ACME CA, such as Let's
    Encrypt. M(pve.fleet.node) sets the plugin of each domain, and M(pve.fleet.acme_certificate)
    orders the certificate.
  - The token needs C(Sys.Modify) on C(/).
options:
  name:
    description: Name of the plugin.
    type: str
    required: true
  state:
    description: V(present) creates the plugin or updates settings that differ, V(absent) deletes
      it.
    type: str
    choices: [present, absent]
    default: present
  type:
    description: V(dns) validates a domain by a DNS record, V(standalone) by a web server on port 80
      of the node. Required for a new plugin. It cannot be changed.
    type: str
    choices: [dns, standalone]
  api:
    description: Name of the DNS provider in Proxmox VE, such as V(cf). Required for a new plugin of
      type V(dns). By default, it is not changed.
    type: str
  data:
    description: Variables of the provider with its credentials, by their names. They are never
      returned. By default, a new plugin has none.
    type: dict
  update_secrets:
    description: Whether O(data) is written to an existing plugin. V(on_create) never writes it,
      V(always) writes it in each run.
    type: str
    choices: [on_create, always]
    default: on_create
  validation_delay:
    description: Seconds between the record and its check. Proxmox VE uses V(30) if it is unset. By
      default, it is not changed.
    type: int
  nodes:
    description: Nodes that use the plugin. An empty list means all nodes. By default, it is not
      changed.
    type: list
    elements: str
  disable:
    description: Whether the plugin is disabled. By default, it is not changed.
    type: bool
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.acme_plugin_info
  - module: pve.fleet.acme_certificate
  - module: pve.fleet.node
"""

EXAMPLES = r"""
- name: Validate domains by DNS records at Cloudflare
  pve.fleet.acme_plugin:
    name: cloudflare
    type: dns
    api: cf
    data:
      CF_Token: "{{ lookup('ansible.builtin.env', 'CF_TOKEN') or 'not-set' }}"

- name: Replace the credentials
  pve.fleet.acme_plugin:
    name: cloudflare
    data: {CF_Token: another-token}
    update_secrets: always

- name: Delete the plugin
  pve.fleet.acme_plugin:
    name: cloudflare
    state: absent
"""

RETURN = r"""
acme_plugin:
  description: The plugin as it is afterwards, or in check mode as it would be. It is null if the
    plugin is deleted. RV(pve.fleet.acme_plugin_info#module:acme_plugins) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create ACME plugin 'cloudflare']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: data, status: null, path: null, upid: null, retryable: false,
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
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.acme_plugin import (
    acme_plugin_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.identity.acme_account import (
    ACME_PLUGIN,
)

ENTRY = ModuleEntry(
    partial(run, ACME_PLUGIN), acme_plugin_spec(), names={"nodes": "node"}, name="acme_plugin"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
