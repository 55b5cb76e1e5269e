#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from tenant.yml: do not edit.

DOCUMENTATION = r"""
module: tenant_info
short_description: Gather information about tenants
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the tenants of a cluster with their pools, users, tokens, roles, rights, VMs and
    containers.
  - A tenant is found by the tag of a guest, or by a role or user with its name.
options:
  name:
    description: Name of a tenant. By default, all tenants with a tag, a role or a user according to
      O(tenant_prefix) are returned.
    type: str
  tenant_prefix:
    description: Prefix of the tags of tenants.
    type: str
    default: tenant_
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.tenant}]
"""

EXAMPLES = r"""
- name: Read all tenants
  pve.fleet.tenant_info:
  register: known

- name: Show their tokens
  ansible.builtin.debug:
    msg: "{{ known.tenants | map(attribute='tokens') | flatten }}"
"""

RETURN = r"""
tenants:
  description: The tenants, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: acme}
    tag: {description: The tag of its VMs., type: str, sample: tenant_acme}
    pools: {description: Pools on which it has its role., type: list, elements: str, sample: [acme]}
    users: {description: Users that have its name or one of its roles., type: list, elements: str,
      sample: [tenant_acme@pve]}
    groups: {description: Groups that have one of its roles., type: list, elements: str}
    tokens:
      description: Tokens of these users.
      type: list
      elements: dict
      contains:
        token_id: {description: Full name of the token., type: str, sample: tenant_acme@pve!fleet}
        expire: {description: 'When it expires, null for never.', type: str,
          sample: '2035-12-31T00:00:00Z'}
        created: {description: 'The day on which M(pve.fleet.tenant) created it, null for other
          tokens.', type: str, sample: '2026-11-22'}
        days_left: {description: 'Days until it expires, negative afterwards, null for never.',
          type: int, sample: 89}
        tenant: {description: 'The tenant for which it was created, null for none.', type: str,
          sample: acme}
    roles: {description: Privileges by role., type: dict, sample: {tenant_acme.template: [VM.Audit,
      VM.Clone]}}
    rights: {description: Its roles by path and holder., type: list, elements: dict, sample:
      [{path: /pool/acme, user: tenant_acme@pve, role: tenant_acme}]}
    vms: {description: VMIDs of its VMs., type: list, elements: int, sample: [15046]}
    containers: {description: VMIDs of its containers., type: list, elements: int, sample: [710]}
    usage: {description: 'VMs, cores, and bytes of memory and boot disks.', type: dict, sample:
      {vms: 2, cores: 4, memory: 8589934592, disk: 42949672960}}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.tenant import (
    tenant_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.info import run_info

ENTRY = ModuleEntry(run_info, tenant_info_spec(), name="tenant_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
