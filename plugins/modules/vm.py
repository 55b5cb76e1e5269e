#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from vm.yml: do not edit.

DOCUMENTATION = r"""
module: vm
short_description: Manage a virtual machine
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, updates and removes a virtual machine, and changes its power state. Only options that
    the task sets are changed, and a VM that already matches them is not changed. Check mode, diff
    mode and the real run use the same plan, and check mode only reads.
  - 'A first VM: C(pve.fleet.vm: {name: web1, source: debian-13, cores: 2, memory: 4G,
    state: started}). Only O(name) is required. With several tenants, set O(tenant) in every task.'
  - B(Which VM:) O(name), O(vmid), O(tenant). B(Source:) O(source), O(full), O(class).
  - B(Power:) O(state), O(reboot), O(graceful), O(force), O(wait_for).
  - B(Hardware:) O(cores), O(memory), O(cpu), O(disks), O(nics), O(bios), O(machine), O(agent), and
    any other option of PVE in O(options).
  - B(Guest:) O(cloud_init), and addresses in O(nics[].ip).
  - B(Place and limits:) O(node), O(placement), O(migrate), O(pool), O(tags), O(quota).
  - B(Connection:) O(host), O(token_id), O(token_secret), O(ca_path), best set in the environment by
    E(PROXMOX_HOST), E(PROXMOX_TOKEN_ID), E(PROXMOX_TOKEN_SECRET) and E(PROXMOX_CA_PATH).
  - The guide C(docs/vm.md) of this collection lists all options by purpose, each with an example.
  - An empty text removes an option, such as O(cpu), so the default of Proxmox VE applies again.
    Settings that every VM has, such as its memory, cannot be removed; for them an empty text is
    ignored.
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
    description: Copies of a VM, of its current state or of a snapshot.
  - module: pve.fleet.snapshot
    description: Snapshots of a VM, and rollbacks to them.
  - module: pve.fleet.vm_info
    description: Information about VMs.
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

- name: Increase the memory of the VM and reboot it if needed
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
site:
  description: Name of the site of the task, otherwise the host of the endpoint.
  returned: success
  type: str
  sample: vienna
vm:
  description:
    - The VM after the task, with the keys of RV(pve.fleet.vm_info#module:vms) except C(conditions).
      C(addresses) is null unless O(addresses) or O(wait_for) requests them.
    - In check mode, the current VM, or only name, node, VMID, C(phase) and C(checked) of a VM that
      would be created. C(phase) is then Pending.
    - Null if the VM does not exist.
  returned: success
  type: dict
  sample: {vmid: 15046, name: web1, node: pve1, status: running, phase: Running, tenant: acme}
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

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.describe import (
    conditions_of_failure,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.desired.guest import (
    sites_of_quota,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.desired.layers import (
    class_secrets,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.run import run

ENTRY = ModuleEntry(
    run,
    vm_spec(),
    {"required_one_of": [("name", "vmid")]},
    secrets=class_secrets,
    conditions=conditions_of_failure,
    sites=SiteSupport(names=sites_of_quota),
    returns_site=True,
    name="vm",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
