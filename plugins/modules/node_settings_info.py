#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node.yml: do not edit.

DOCUMENTATION = r"""
module: node_settings_info
short_description: Gather information about the settings of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the settings of a node in the form of the options of M(pve.fleet.node). Four requests
    are made.
  - The token needs C(Sys.Audit) on C(/).
options:
  node:
    description: Name of the node.
    type: str
    required: true
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.node}]
"""

EXAMPLES = r"""
- name: Read the settings of a node
  pve.fleet.node_settings_info:
    node: pve1
  register: found

- name: Show its name servers
  ansible.builtin.debug:
    msg: "{{ found.settings.dns.servers }}"

- name: Apply them to another node
  pve.fleet.node:
    node: pve2
    dns: "{{ found.settings.dns }}"
    timezone: "{{ found.settings.timezone }}"
  when: found.settings.dns.search != ''
"""

RETURN = r"""
node:
  description: Name of the node.
  returned: success
  type: str
  sample: pve1
settings:
  description: Its settings, as the options of M(pve.fleet.node) declare them.
  returned: success
  type: dict
  sample: {description: Rack 4, startall_onboot_delay: 0, timezone: UTC}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.node import (
    node_settings_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.settings.run import (
    run_info,
)

ENTRY = ModuleEntry(run_info, node_settings_info_spec(), name="node_settings_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
