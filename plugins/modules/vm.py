#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from vm.yml: do not edit.

DOCUMENTATION = r"""
module: vm
short_description: Manage a virtual machine
version_added: 0.1.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, updates and removes a virtual machine, and changes its power state. Only what the task
    sets is changed, and a VM that already is as described is not changed. Check mode, diff mode and
    the real run use the same plan, and check mode only reads.
  - 'A first VM: C(pve.fleet.vm: {name: web1, source: debian-13, cores: 2, memory: 4G, state:
    started}). Only O(name) is required. With several tenants, set O(tenant) in every task.'
  - B(Which VM:) O(name), O(vmid), O(tenant). B(Made from:) O(source), O(full), O(class).
  - B(Power:) O(state), O(reboot), O(graceful), O(force), O(wait_for).
  - B(Hardware:) O(cores), O(memory), O(cpu), O(disks), O(nics), O(bios), O(machine), O(agent), and
    any other option of PVE in O(options).
  - B(Guest:) O(cloud_init), and addresses in O(nics[].ip).
  - B(Place and limits:) O(node), O(placement), O(migrate), O(pool), O(tags), O(quota).
  - B(Connection:) O(host), O(token_id), O(token_secret), O(ca_path), best set in the environment by
    E(PROXMOX_HOST), E(PROXMOX_TOKEN_ID), E(PROXMOX_TOKEN_SECRET) and E(PROXMOX_CA_PATH).
  - The guide C(docs/vm.md) of this collection has all options by purpose, each with an example.
    Below they are listed by name.
  - An empty text removes an option, such as O(cpu), so that the default of Proxmox VE applies
    again. Settings that every VM has, such as its memory, cannot be removed; for them an empty text
    is ignored.
extends_documentation_fragment:
  - pve.fleet.vm_options
  - pve.fleet.vm_options.guest
  - pve.fleet.vm_options.identity
  - pve.fleet.vm_options.life
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.vms
    description: Many VMs in one task, planned together.
  - module: pve.fleet.clone
    description: A copy of a VM, of its state now or of a snapshot.
  - module: pve.fleet.snapshot
    description: Snapshots, and going back to them.
  - module: pve.fleet.vm_info
    description: What there is, without a change.
  - plugin: pve.fleet.proxmox
    plugin_type: inventory
"""

EXAMPLES = r"""
- name: Create a web server of tenant acme from a template
  pve.fleet.vm:
    name: web1
    tenant: acme
    source: debian-13
    cores: 2
    memory: 4G
    disks:
      - name: scsi0
        size: 20G
    nics:
      - network: lan
        vlan: 120
        ip: 10.20.0.11/24
        gateway: 10.20.0.1
    cloud_init:
      user: ops
      ssh_keys:
        - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9kL2cSGZ9Y7wqGm5y7qGmM4bqXy9t6v4kq3Yx0JmPz
          ops@example.com
      nameservers: [10.20.0.1]
    tags: [web]
    state: started

- name: Give the VM more memory and reboot it if needed
  pve.fleet.vm:
    name: web1
    tenant: acme
    memory: 8G
    reboot: if_needed

- name: Create a UEFI VM that boots an installation ISO
  pve.fleet.vm:
    name: build1
    source: local:iso/debian-13-netinst.iso
    bios: uefi
    machine: q35
    cores: 4
    memory: 8G
    disks:
      - size: 64G
        storage: local-lvm
        ssd: true
        discard: true
    nics:
      - bridge: vmbr0

- name: Create a VM from a cloud image on a storage with content import
  pve.fleet.vm:
    name: db1
    source: local:import/debian-13-genericcloud-amd64.qcow2
    disks:
      - storage: local-lvm
        size: 40G
    cloud_init:
      user: ops
    state: started

- name: Use named sizes and networks
  pve.fleet.vm:
    name: worker1
    source: 9000
    class: worker
    classes:
      worker: {cores: 4, memory: 8G, disks: [{name: scsi0, size: 30G}]}
    networks:
      backend: {bridge: vmbr1, vlan: 200}
    nics:
      - network: backend
        ip: dhcp

- name: Shut a VM down and remove it with its disks
  pve.fleet.vm:
    name: web1
    tenant: acme
    state: absent
    graceful: true
"""

RETURN = r"""
vm:
  description:
    - The VM after the task. In check mode the VM as it is now, or only name, node, VMID, C(phase)
      and C(checked) of a VM that would be created.
    - Null when the VM does not exist.
  returned: success
  type: dict
  contains:
    vmid: {description: VMID of the VM., type: int, sample: 15046}
    name: {description: Name of the VM., type: str, sample: web1}
    node: {description: Node on which the VM is., type: str, sample: pve1}
    status: {description: 'Status of the VM as QEMU reports it: running, stopped, paused and so
      on.', type: str, sample: running}
    power_state: {description: 'Power state: on, off or suspended.', type: str, sample: 'on'}
    phase:
      description:
        - 'Phase of the VM: Pending (planned in check mode), Creating, Running, Stopped (also paused
          or hibernated), or Error (QEMU reports an error of the guest). Null if it is not known.'
      type: str
      sample: Running
    checked: {description: 'When the VM was read, as ISO 8601 in UTC.', type: str, sample:
      '2026-11-23T16:00:00Z'}
    template: {description: Whether the VM is a template., type: bool, sample: false}
    tenant: {description: Tenant of the VM. Null without a tenant's tag or with several., type: str,
      sample: acme}
    tags: {description: Tags of the VM., type: list, elements: str, sample: [tenant_acme, web]}
    pool: {description: Resource pool of the VM., type: str, sample: acme}
    lock: {description: 'Lock of the VM, such as backup.', type: str, sample: null}
    uptime: {description: Seconds since the VM was started., type: int, sample: 42}
    description: {description: Notes of the VM., type: str, sample: ''}
    cloned_from: {description: VMID of the VM or template it was cloned from., type: int, sample:
      9000}
    config: {description: 'Configuration with the keys that PVE uses, including pending changes.',
      type: dict, sample: {cores: 2}}
    macs:
      description: MAC address of each NIC.
      type: dict
      sample: {net0: 'BC:24:11:00:00:01'}
    pending: {description: Options that apply after a stop or reboot., type: list, elements: str,
      sample: []}
    console_url:
      description: URL of the console in a browser.
      type: str
      sample: https://pve1:8006/?console=kvm
    addresses: {description: Addresses of the guest. Null unless O(addresses) or O(wait_for)
      requests them., type: list, elements: dict, sample: [{address: 10.20.0.11, prefix: 24,
      interface: eth0, family: ipv4}]}
    address: {description: The selected address. Null if none matches., type: str, sample:
      10.20.0.11}
    address_source: {description: 'Source of the addresses: agent or cloud-init.', type: str,
      sample: agent}
    agent_problem: {description: 'Why the agent did not answer, else null.', type: str, sample:
      null}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Set cores=4 on VM 'web1' (15046) on node pve1]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
applied:
  description: Options that were changed and apply immediately. In check mode, options that would
    be.
  returned: success
  type: list
  elements: str
  sample: [description]
pending:
  description: Options that are set but apply only after a stop or reboot of the VM.
  returned: success
  type: list
  elements: str
  sample: [cores]
needs_reboot:
  description: Whether the VM needs a stop or reboot, see RV(pending).
  returned: success
  type: bool
  sample: false
placement:
  description:
    - Selected node and the reasons, if this run selected one. Null for a VM that stays on its node.
    - C(refused) has the reason for each node that was not selected.
  returned: success
  type: dict
  sample:
    node: pve2
    reasons:
      - 2 of 3 nodes fit
      - 'least_used: 12% of its memory would be given to 4 guests'
    refused:
      pve1: offline
      pve3: 25% of its memory would be given to 7 guests
conditions:
  description:
    - C(Ready), C(VMCreated), C(ResourcesAllocated) and C(NetworkConfigured), each with status and
      reason.
    - If the task failed, the reason is the category of RV(error), and a status that is not known is
      null.
  returned: always
  type: list
  elements: dict
  sample: [{type: Ready, status: true, reason: Running}]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: foreign tenant, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._guest.describe import conditions_of_failure
from ansible_collections.pve.fleet.plugins.module_utils._guest.desired.classes import class_secrets
from ansible_collections.pve.fleet.plugins.module_utils._spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._vm.run import run

ENTRY = Entry(
    run,
    vm_spec(),
    {"required_one_of": [("name", "vmid")]},
    secrets=class_secrets,
    conditions=conditions_of_failure,
    name="vm",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
