#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from estate_info.yml: do not edit.

DOCUMENTATION = r"""
module: estate_info
short_description: Gather a running cluster as an estate
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the VMs and containers of a cluster as the variables of an estate, and as the text of an
    estate file with comments. A run of C(pve.fleet.provision) with that file changes nothing.
  - Options with the default of Proxmox VE, or the default of a new VM, are omitted. Common options
    of VMs become defaults, classes, networks, storage classes and settings of tenants.
  - Each VM is planned as by M(pve.fleet.vms), each container as by M(pve.fleet.container).
    RV(unexpressed) and a comment name settings that cannot be expressed in a way that the plan is
    empty. RV(secrets) names passwords and the environment of containers.
  - All settings of a container are in its own item. If there are containers, settings that would
    also apply to containers are not shared among VMs.
  - The text is the same in each run if the VMs are unchanged, so it can be kept in git.
  - Networks and isolation of tenants are in the form of M(pve.fleet.tenant), and the NICs of their
    guests name these networks. A guest that is not isolated keeps the VNet as its bridge, and
    RV(unexpressed) names it. The login needs C(SDN.Audit) on the VNets and C(Sys.Audit) on C(/) for
    them.
  - This takes as many requests as M(pve.fleet.vms) makes without a change, one each for the backup
    jobs, the HA rules and the VNets, and one for the privileges of the login if no filter is set.
    Networks of tenants take about five more requests for each tenant and each guest on them.
    Without C(Sys.Audit) on C(/), the backup jobs and the placement in HA rules are omitted with a
    warning.
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
    description: Only these VMs and containers, by name or VMID. A missing guest is an error.
    type: list
    elements: str
  templates:
    description: Whether templates are part of the estate.
    type: bool
    default: true
  adopt:
    description:
      - Tenant for VMs without a tenant. In the estate, they have this tenant and C(adopt=true), and
        a run of C(pve.fleet.provision) only adds its tag to them.
      - Templates do not get a tenant, because every tenant can clone templates without a tenant.
        O(adopt) cannot be combined with O(tenant).
    type: str
  power:
    description:
      - Whether the estate contains the power state of VMs. With V(false), a run of the estate does
        not change it, and VMs that it creates are not started.
    type: bool
    default: true
  on_nodes:
    description:
      - Whether the estate contains the node of VMs. A run of such an estate moves a migrated VM
        back.
    type: bool
    default: false
  quotas:
    description:
      - Whether the current use of each tenant becomes its quota. Proxmox VE has no quotas, so by
        default the use is only a comment in RV(text).
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

- name: Read all VMs, and assign VMs without a tenant to a tenant
  pve.fleet.estate_info:
    adopt: initech
  register: cluster

- name: Show settings that the estate does not contain
  ansible.builtin.debug:
    msg: "{{ cluster.report }}"
"""

RETURN = r"""
estate:
  description: The variables of the estate, in the form of the role C(pve.fleet.provision).
  returned: success
  type: dict
  contains:
    provision_state: {description: State of VMs without their own state., type: str,
      sample: started}
    provision_defaults: {description: Common options of all VMs., type: dict, sample: {cpu: host}}
    provision_classes: {description: Common options of VMs with the same cores and memory.,
      type: dict, sample: {2c-4g: {cores: 2, memory: 4G}}}
    provision_networks: {description: Networks that several NICs share., type: dict, sample:
      {vmbr1.120: {bridge: vmbr1, vlan: 120}}}
    provision_storage_classes: {description: Storages with options that several disks share.,
      type: dict, sample: {ceph-discard-ssd: {storage: ceph, discard: true, ssd: true}}}
    tenants: {description: 'Settings of tenants, such as their pools.', type: dict, sample: {acme:
      {pool: acme}}}
    provision_vms: {description: 'The VMs, by tenant and VMID. VMs without a tenant are last.',
      type: list, elements: dict, sample: [{name: web1, vmid: 15046, tenant: acme, class: 2c-4g}]}
    provision_containers: {description: The containers in the same order. The variable is missing if
      there are none., type: list, elements: dict, sample: [{name: proxy1, vmid: 710, tenant: acme,
      memory: 1G, rootfs: {storage: ceph, size: 8G}}]}
text:
  description: The same variables as the text of an estate file, with comments.
  returned: success
  type: str
  sample: '---

    provision_vms: []

    '
complete:
  description: Whether every selected guest could be read.
  returned: success
  type: bool
  sample: true
missing:
  description:
    - VMs and containers that could not be read, each with C(vmid), C(name), C(tenant), C(node) and
      C(reason). In the estate, they have no options, so a run neither changes nor prunes them.
    - If a privilege is missing, C(privilege) and C(acl_path) name it. Otherwise, they are null.
  returned: success
  type: list
  elements: dict
  sample: [{vmid: 15047, name: web2, tenant: acme, node: pve3, reason: node pve3 is offline,
    privilege: null, acl_path: null}]
nodes:
  description: Offline nodes with such VMs, each with C(node) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: [{node: pve3, reason: node pve3 is offline}]
unexpressed:
  description:
    - Settings that the options of guests cannot express, each with C(vmid), C(name), C(option) and
      C(value) as in Proxmox VE, and C(reason).
  returned: success
  type: list
  elements: dict
  sample: [{vmid: 15046, name: web1, option: unused0, value: 'local-lvm:vm-15046-disk-1', reason: a
    disk that no drive uses}]
secrets:
  description: Options with a secret, which Proxmox VE does not return.
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
  description: Settings that the estate does not contain, as readable lines.
  returned: success
  type: list
  elements: str
  sample: [exported 6 VMs, 'acme/web1 (15046): cloud_init.password is left out, it is a secret']
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.estate_info import (
    estate_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.estate.run_info import run

ENTRY = ModuleEntry(
    run,
    estate_info_spec(),
    names={"tenant": "tenant", "pool": "pool", "tags": "tag"},
    name="estate_info",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
