#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from apt_repository.yml: do not edit.

DOCUMENTATION = r"""
module: apt_repository_info
short_description: Gather information about the standard package repositories of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the standard repositories of a node. One request is made.
options:
  node:
    description: Name of the node.
    type: str
    required: true
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.apt_repository}]
"""

EXAMPLES = r"""
- name: Read the standard repositories
  pve.fleet.apt_repository_info:
    node: pve1
  register: found

- name: List the enabled repositories
  ansible.builtin.debug:
    msg: "{{ found.repositories | selectattr('state', 'eq', 'enabled') | map(attribute='handle') }}"
"""

RETURN = r"""
node:
  description: Name of the node.
  returned: success
  type: str
  sample: pve1
repositories:
  description: The repositories, sorted by handle, each with C(handle), C(name) and C(state), which
    is null if the repository is missing.
  returned: success
  type: list
  elements: dict
  sample: [{handle: enterprise, name: Enterprise, state: enabled}]
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.apt_repository import (
    apt_repository_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.apt.run import run_info

ENTRY = ModuleEntry(run_info, apt_repository_info_spec(), name="apt_repository_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
