#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from estate_info.yml: do not edit.

DOCUMENTATION = r"""
module: estate_info
short_description: Gather a running cluster as an estate
version_added: 0.1.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the VMs and containers of a cluster as the variables of an estate, and as the text of an
    estate file with comments. A run of C(pve.fleet.provision) with that file changes nothing.
  - Options that have the default of Proxmox VE, or what a new VM gets, are left out. What VMs have
    in common becomes defaults, classes, networks, storage classes and settings of tenants.
  - Each VM is planned as M(pve.fleet.vms) plans it, each container as M(pve.fleet.container) does.
    What cannot be expressed so that the plan does nothing is named in RV(unexpressed) and in a
    comment. Passwords, and the environment of containers, are named in RV(secrets).
  - Containers have all of their settings in their own item. If there are some, settings that
    containers could take over are not shared among VMs either.
  - The same VMs have the same text in each run, so that it can be kept in git.
  - Tenants have their networks and isolation in the form of M(pve.fleet.tenant), and the NICs of
    their guests name these networks. A guest that is not isolated keeps the VNet as its bridge, and
    is named in RV(unexpressed). The login needs C(SDN.Audit) on the VNets and C(Sys.Audit) on C(/)
    for them.
  - This takes as many requests as M(pve.fleet.vms) makes without a change, one each for the backup
    jobs, the HA rules and the VNets, and one about the privileges of the login if no filter is
    given. Networks of tenants take some five requests more for each tenant and each guest on them.
    Without C(Sys.Audit) on C(/), the backup jobs and the placement that HA rules keep are left out
    with a warning.
options:
  tenant:
    description:
      - Only VMs and containers with this tenant's tag and without the tag of another tenant.
      - By default, guests of all tenants are returned. An empty value is therefore an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  pool:
    description: Only guests in this resource pool.
    type: str
  tags:
    description: Only guests that have all of these tags.
    type: list
    elements: str
  vms:
    description: Only these VMs and containers, by name or VMID. One that is not there is an error.
    type: list
    elements: str
  templates:
    description: Whether templates are part of the estate.
    type: bool
    default: true
  adopt:
    description:
      - Tenant that the VMs without one get. In the estate they have it with C(adopt=true), and a
        run of C(pve.fleet.provision) adds its tag to them, and nothing else.
      - Templates keep to no tenant, because each tenant can clone these. O(adopt) cannot be
        combined with O(tenant).
    type: str
  power:
    description:
      - Whether VMs have their power state. If V(false), a run of the estate leaves it alone, and
        VMs that it creates are not started.
    type: bool
    default: true
  on_nodes:
    description:
      - Whether VMs have their node. A run of such an estate moves a VM back that was migrated.
    type: bool
    default: false
  quotas:
    description:
      - Whether each tenant has what its VMs use as its quota. Proxmox VE has no quotas, so by
        default the use is a comment in RV(text).
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.vms}, {module: pve.fleet.drift_info}]
"""

EXAMPLES = r"""
- name: Read the VMs of a tenant as an estate
  pve.fleet.estate_info:
    tenant: acme
  register: acme

- name: Write it to a file
  ansible.builtin.copy:
    content: "{{ acme.text }}"
    dest: "{{ playbook_dir }}/acme.yml"
    mode: "0600"

- name: Read all VMs, and give those without a tenant to one
  pve.fleet.estate_info:
    adopt: initech
  register: cluster

- name: Show what the estate does not have
  ansible.builtin.debug:
    msg: "{{ cluster.report }}"
"""

RETURN = r"""
estate:
  description: The variables of the estate, as the role C(pve.fleet.provision) takes them.
  returned: success
  type: dict
  contains:
    provision_state: {description: State of VMs that set none., type: str, sample: started}
    provision_defaults: {description: What all VMs have in common., type: dict, sample: {cpu: host}}
    provision_classes: {description: What VMs of the same cores and memory have in common.,
      type: dict, sample: {2c-4g: {cores: 2, memory: 4G}}}
    provision_networks: {description: Networks that several NICs share., type: dict, sample:
      {vmbr1.120: {bridge: vmbr1, vlan: 120}}}
    provision_storage_classes: {description: Storages with options that several disks share.,
      type: dict, sample: {ceph-discard-ssd: {storage: ceph, discard: true, ssd: true}}}
    tenants: {description: 'Settings of tenants, such as their pools.', type: dict, sample: {acme:
      {pool: acme}}}
    provision_vms: {description: 'The VMs, by tenant and VMID, those without a tenant last.',
      type: list, elements: dict, sample: [{name: web1, vmid: 15046, tenant: acme, class: 2c-4g}]}
    provision_containers: {description: The containers in the same order. The variable is missing if
      there are none., type: list, elements: dict, sample: [{name: proxy1, vmid: 710, tenant: acme,
      memory: 1G, rootfs: {storage: ceph, size: 8G}}]}
text:
  description: The same as the text of an estate file, with comments.
  returned: success
  type: str
  sample: '---

    provision_vms: []

    '
complete:
  description: Whether every guest that is meant could be read.
  returned: success
  type: bool
  sample: true
missing:
  description:
    - VMs and containers that could not be read, each with C(vmid), C(name), C(tenant), C(node) and
      C(reason). In the estate they have no options, so that a run neither changes nor prunes them.
    - Where a privilege is missing, C(privilege) and C(acl_path) name it, else they are null.
  returned: success
  type: list
  elements: dict
  sample: [{vmid: 15047, name: web2, tenant: acme, node: pve3, reason: node pve3 is offline,
    privilege: null, acl_path: null}]
nodes:
  description: Nodes that are offline and have such VMs, each with C(node) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: [{node: pve3, reason: node pve3 is offline}]
unexpressed:
  description:
    - What the options of guests do not have, each with C(vmid), C(name), C(option) and C(value) as
      Proxmox VE has them, and C(reason).
  returned: success
  type: list
  elements: dict
  sample: [{vmid: 15046, name: web1, option: unused0, value: 'local-lvm:vm-15046-disk-1', reason: a
    disk that no drive uses}]
secrets:
  description: Options that have a secret, which Proxmox VE does not return.
  returned: success
  type: list
  elements: dict
  sample: [{vmid: 15046, name: web1, option: cloud_init.password}]
unsettled:
  description:
    - VMs that the next run of any estate changes, because an earlier run was interrupted, each with
      C(vmid), C(name) and C(steps).
  returned: success
  type: list
  elements: dict
  sample: []
report:
  description: What the estate does not have, as lines for people.
  returned: success
  type: list
  elements: str
  sample: [exported 6 VMs, 'acme/web1 (15046): cloud_init.password is left out, it is a secret']
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._estate.run_info import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.estate_info import (
    estate_info_spec,
)

ENTRY = Entry(run, estate_info_spec(), name="estate_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
