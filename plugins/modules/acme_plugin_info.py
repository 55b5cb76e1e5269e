#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from acme_plugin.yml: do not edit.

DOCUMENTATION = r"""
module: acme_plugin_info
short_description: Gather information about plugins of ACME
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one plugin of ACME or all of them, without their credentials. One request is made.
  - The token needs C(Sys.Modify) on C(/), because Proxmox VE shows the credentials with the
    plugins.
options:
  name:
    description: Name of one plugin. By default, all plugins are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.acme_plugin}]
"""

EXAMPLES = r"""
- name: Read all plugins
  pve.fleet.acme_plugin_info:
  register: known

- name: Show their names
  ansible.builtin.debug:
    msg: "{{ known.acme_plugins | map(attribute='name') }}"
"""

RETURN = r"""
acme_plugins:
  description: The plugins, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: cloudflare}
    type: {description: Its type., type: str, sample: dns}
    api: {description: Its provider., type: str, returned: with type V(dns), sample: cf}
    validation_delay: {description: Seconds before the check., type: int, returned: with type
      V(dns), sample: 30}
    nodes: {description: Its nodes., type: list, elements: str, sample: []}
    disable: {description: Whether it is disabled., type: bool, sample: false}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.acme_plugin import (
    acme_plugin_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.identity.acme_account import (
    ACME_PLUGIN,
)

ENTRY = ModuleEntry(
    partial(run_info, ACME_PLUGIN), acme_plugin_info_spec(), name="acme_plugin_info"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
