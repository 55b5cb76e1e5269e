#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from vm_info.yml: do not edit.

DOCUMENTATION = r"""
module: vm_info
short_description: Gather information about virtual machines
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the VMs of a cluster that match all filters, sorted by VMID.
  - The module sends one request, and one more for each node with VMs that are too new for the
    listing of Proxmox VE. With O(name), each node with VMs is queried, with O(vmid) the node of the
    VM. Otherwise, a VM that reuses the VMID of a removed VM can be returned with the old name for
    about 10 seconds.
  - O(config) takes two more requests for each VM that matches.
options:
  name:
    description: Only VMs with exactly this name.
    type: str
  vmid:
    description: Only the VM with this VMID.
    type: int
  node:
    description: Only VMs on this node.
    type: str
  tenant:
    description:
      - Only VMs with this tenant's tag and without the tag of another tenant.
      - By default, VMs of all tenants are returned. An empty value is therefore an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  tags:
    description: Only VMs that have all of these tags.
    type: list
    elements: str
  pool:
    description: Only VMs in this resource pool.
    type: str
  template:
    description: Only templates (V(true)) or only other VMs (V(false)).
    type: bool
  config:
    description:
      - Whether to read the configuration. With V(false), RV(vms[].config) is null, and status and
        name can be about 10 seconds old, because they come from the listing of Proxmox VE.
    type: bool
    default: false
extends_documentation_fragment:
  - pve.fleet.vm_options.guest
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
seealso: [{module: pve.fleet.vm}, {plugin: pve.fleet.proxmox, plugin_type: inventory}]
"""

EXAMPLES = r"""
- name: List all VMs of a tenant
  pve.fleet.vm_info:
    tenant: acme
  register: acme

- name: Read one VM with its configuration
  pve.fleet.vm_info:
    vmid: 15046
    config: true
  register: web1
"""

RETURN = r"""
site:
  description: Name of the site of the task, otherwise the host of the endpoint.
  returned: success
  type: str
  sample: vienna
vms:
  description: The VMs.
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: VMID of the VM., type: int, sample: 15046}
    name: {description: Name of the VM., type: str, sample: web1}
    node: {description: Node on which the VM is., type: str, sample: pve1}
    status: {description: 'Status of the VM as QEMU reports it: running, stopped, paused and so
      on.', type: str, sample: running}
    power_state: {description: 'Power state: on, off or suspended.', type: str, sample: 'on'}
    phase:
      description:
        - 'Phase of the VM: Creating, Running, Stopped (also paused or hibernated), or Error (QEMU
          reports an error of the guest). Null if it is not known.'
      type: str
      sample: Running
    checked: {description: 'When the VM was read, as ISO 8601 in UTC.', type: str,
      sample: '2026-11-23T16:00:00Z'}
    template: {description: Whether the VM is a template., type: bool, sample: false}
    tenant: {description: Tenant of the VM. Null without a tenant's tag or with several., type: str,
      sample: acme}
    tags: {description: Tags of the VM., type: list, elements: str, sample: [tenant_acme, web]}
    pool: {description: Resource pool of the VM., type: str, sample: acme}
    lock: {description: 'Lock of the VM, such as backup.', type: str, sample: null}
    uptime: {description: Seconds since the VM was started., type: int, sample: 42}
    description: {description: Notes of the VM. Null without O(config)., type: str, sample: ''}
    cloned_from: {description: VMID of the VM or template it was cloned from. Null without
      O(config)., type: int, sample: 9000}
    move: {description: 'Its move to another cluster, like C(proxmox_move) in the inventory. Null
      without O(config) or a move.', type: dict, sample: null}
    config: {description: 'Configuration with the keys that PVE uses, including pending changes.
      Null without O(config).', type: dict, sample: {cores: 2}}
    macs: {description: MAC address of each NIC. Null without O(config)., type: dict, sample:
      {net0: 'BC:24:11:00:00:01'}}
    pending: {description: Options that apply after a stop or reboot. Null without O(config).,
      type: list, elements: str, sample: []}
    console_url: {description: URL of the console in a browser., type: str,
      sample: 'https://pve1:8006/?console=kvm'}
    addresses: {description: Addresses of the guest. Null without O(addresses)., type: list,
      elements: dict, sample: [{address: 10.20.0.11, prefix: 24, interface: eth0, family: ipv4}]}
    address: {description: The selected address. Null if none matches., type: str,
      sample: 10.20.0.11}
    address_source: {description: 'Source of the addresses: agent or cloud-init.', type: str,
      sample: agent}
    agent_problem: {description: 'Why the agent did not answer, else null.', type: str,
      sample: null}
    conditions: {description: 'See RV(pve.fleet.vm#module:conditions). Null without O(config).',
      type: list, elements: dict, sample: [{type: Ready, status: true, reason: Running}]}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_info_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.run_info import run

ENTRY = ModuleEntry(
    run,
    vm_info_spec(),
    returns_site=True,
    names={"node": "node", "tenant": "tenant", "tags": "tag", "pool": "pool"},
    name="vm_info",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
