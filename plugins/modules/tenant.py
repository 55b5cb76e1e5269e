#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from tenant.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: tenant
short_description: Manage tenants
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Creates, changes and removes all that a tenant has in Proxmox VE. That is a pool, roles with the
    least privileges, a user or a group, an API token, the rights on the pool and on what the tenant
    may use, and the registered tag.
  - The whole plan is made and checked before the first change. Where a change fails all the same,
    RV(error) says in C(done) what was done before, and a second run completes the rest.
  - Rights that the roles of the tenant give on other paths or to others are taken away. Rights by
    other roles stay, and are reported in a warning.
  - With O(state=absent), the VMs of the tenant are removed first. If one of them cannot be removed,
    all other parts stay.
  - The caller needs the privileges of an administrator.
extends_documentation_fragment:
  - pve.fleet.tenant_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.tenant_info
  - module: pve.fleet.vms
  - module: pve.fleet.preflight_info
"""

EXAMPLES = r"""
- name: Create a tenant that provisions its own VMs
  pve.fleet.tenant:
    name: initech
    templates: [debian-13]
    storages: [ceph]
    bridges: [vmbr0]
    nodes: [pve1, pve2]
    token_life: 90
    credentials_file: "{{ playbook_dir }}/initech.sites.yml"

- name: Use its token
  pve.fleet.vm:
    sites_file: "{{ playbook_dir }}/initech.sites.yml"
    name: app1
    tenant: initech
    pool: initech
    source: debian-13

- name: Give it another token, without a moment in which none is valid
  pve.fleet.tenant:
    name: initech
    state: rotated
    credentials_file: "{{ playbook_dir }}/initech.sites.yml"

- name: Create the zone of the networks of tenants
  pve.fleet.sdn:
    zones:
      - {name: teams, type: vlan, bridge: vmbr0}

- name: Switch the firewall of the cluster on
  pve.fleet.firewall:
    scope: cluster
    options: {enable: true}

- name: Create a tenant with a network of its own, which another tenant may reach
  pve.fleet.tenant:
    name: hooli
    networks:
      front: {zone: teams, tag_range: [1000, 1999], subnet: 10.1.0.0/24, gateway: 10.1.0.1}
    isolation: own
    peers: [initech]
    credentials_file: "{{ playbook_dir }}/hooli.sites.yml"

- name: Remove it with its VMs
  pve.fleet.tenant:
    name: initech
    state: absent
    confirm: initech
"""

RETURN = r"""
tenant:
  description: The tenant as it is afterwards, or in check mode as it would be, and null when
    it is removed.
  returned: success
  type: dict
  contains:
    name: {description: Its name., type: str, sample: acme}
    tag: {description: The tag of its VMs., type: str, sample: tenant_acme}
    registered_tag: {description: Whether the tag is a registered one., type: bool, sample: false}
    pool: {description: The pool of its VMs., type: str, sample: acme}
    user: {description: The user of its token., type: str, sample: tenant_acme@pve}
    group: {description: 'The group that has the rights, null for the user.', type: str}
    token_id:
      description: The whole name of its token.
      type: str
      sample: tenant_acme@pve!fleet
    roles: {description: Privileges by role., type: dict, sample: {tenant_acme.template: [VM.Audit,
          VM.Clone]}}
    rights:
      description: Roles by path.
      type: dict
      sample: {/vms/9000: [tenant_acme.template]}
    networks:
      description: The own networks that the task lists, with the VNet, the zone, the tag and
        the subnet of each.
      type: list
      elements: dict
      sample: [{name: front, vnet: tqpzjk5a, zone: teams, tag: 101, subnet: 10.1.0.0/24}]
    isolation: {description: 'The isolation of its guests, null if the task lists no networks.',
      type: str, sample: own}
    security_group: {description: 'Name of its security group, null without one.', type: str,
      sample: tenant_acme}
    usage: {description: 'VMs, cores, and bytes of memory and boot disks.', type: dict, sample: {
        vms: 2, cores: 4, memory: 8589934592, disk: 42949672960}}
credentials:
  description:
    - The login of a token that was created in this run, as the content of a O(sites_file). It is
      null without one, and where O(credentials_file) has it.
  returned: success
  type: dict
not_isolated:
  description:
    - VMIDs of guests that existed on a VNet of the tenant before its isolation, and that it does
      not separate yet. A warning names them. A task that lists their NICs with O(networks) isolates
      them.
    - It is empty if O(networks) lists no VNet, and with O(isolation=none).
  returned: with O(state=present)
  type: list
  elements: int
  sample: []
vms:
  description: With O(state=absent), the VMs and containers that are or would be removed.
  returned: success
  type: list
  elements: dict
  contains:
    kind: {description: 'Kind of the guest, V(vm) or V(container).', type: str, sample: vm}
    name: {description: Name of the VM., type: str, sample: web1}
    vmid: {description: VMID of the VM., type: int, sample: 15046}
    node: {description: Node of the VM., type: str, sample: pve1}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create pool 'acme', Create role 'tenant_acme']
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Create pool 'acme', Create role 'tenant_acme']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: strays
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
    done: []
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.tenant import tenant_spec
from ansible_collections.pve.fleet.plugins.module_utils._tenant.run import run

ENTRY = Entry(run, tenant_spec(), returned_secrets=("credentials",), name="tenant")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
