#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: vm
short_description: Make a virtual machine what it should be
version_added: "0.1.0"
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Say what a VM is. The module creates it, or changes what differs, and does nothing where nothing differs.
  - What an option does not mention is left alone, also inside a disk or NIC. MAC addresses and volumes survive every
    update, tags of others and other disks and NICs too.
  - One plan stands behind check mode, diff mode and the real run. Check mode only reads.
  - A VM is found by O(vmid), else by O(name), anywhere in the cluster.
extends_documentation_fragment:
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
  - pve.fleet.vm_options
  - pve.fleet.vm_options.guest
  - pve.fleet.vm_options.identity
  - pve.fleet.vm_options.life
seealso:
  - module: pve.fleet.vm_info
  - plugin: pve.fleet.proxmox
    plugin_type: inventory
"""

EXAMPLES = r"""
- name: A web server of tenant acme, cloned from a template by name
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
        - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9kL2cSGZ9Y7wqGm5y7qGmM4bqXy9t6v4kq3Yx0JmPz ops@example.com
      nameservers: [10.20.0.1]
    tags: [web]
    state: started

- name: The same VM with more memory; nothing else is touched
  pve.fleet.vm:
    name: web1
    tenant: acme
    memory: 8G
    reboot: if_needed

- name: An installation from an ISO with UEFI
  pve.fleet.vm:
    name: build1
    source: local:iso/debian-13.iso
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

- name: From a cloud image that lies on a storage with content import
  pve.fleet.vm:
    name: db1
    source: local:import/debian-13.qcow2
    disks:
      - storage: local-lvm
        size: 40G
    cloud_init:
      user: ops
    state: started

- name: Sizes, networks and storages by name
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

- name: Gone, with its disks, after a graceful shutdown
  pve.fleet.vm:
    name: web1
    tenant: acme
    state: absent
    graceful: true
"""

RETURN = r"""
vm:
  description:
    - The VM. In check mode the VM as it is before the change; for a VM that would be created only name, node and VMID.
    - It is null when the VM is gone.
  returned: success
  type: dict
  contains:
    vmid: {description: Its number., type: int, sample: 10000}
    name: {description: Its name., type: str, sample: web1}
    node: {description: The node it is on., type: str, sample: pve1}
    status: {description: "Its power state: running, stopped, paused and so on.", type: str, sample: running}
    power_state: {description: "The same in short: on, off or suspended.", type: str, sample: "on"}
    template: {description: Whether it is a template., type: bool, sample: false}
    tenant: {description: "The tenant whose tag it bears, null with none or several.", type: str, sample: acme}
    tags: {description: Its tags., type: list, elements: str, sample: [tenant_acme, web]}
    pool: {description: Its resource pool., type: str, sample: acme}
    lock: {description: "What has it locked, such as backup.", type: str, sample: null}
    uptime: {description: Seconds since it was started., type: int, sample: 42}
    description: {description: Its notes., type: str, sample: ""}
    cloned_from: {description: The VMID it was cloned from., type: int, sample: 9000}
    config:
      description: "Its configuration in PVE's own keys, pending changes included."
      type: dict
      sample: {cores: 2}
    macs: {description: The MAC address of each NIC., type: dict, sample: {net0: "BC:24:11:00:00:01"}}
    pending: {description: Options that wait for a stop., type: list, elements: str, sample: []}
    console_url: {description: Where a browser finds its console., type: str, sample: "https://pve1:8006/?console=kvm"}
    addresses:
      description: The addresses of the guest, null unless asked for.
      type: list
      elements: dict
      sample: [{address: 10.20.0.11, prefix: 24, interface: eth0, family: ipv4}]
    address: {description: "The address that was chosen, null where none fits.", type: str, sample: 10.20.0.11}
    address_source: {description: "Where they come from, agent or cloud-init.", type: str, sample: agent}
    agent_problem: {description: "Why the agent did not answer, null where it did.", type: str, sample: null}
plan:
  description: The steps of the plan in words, in the order in which they are carried out. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: ["Set cores=4 on VM 'web1' (10000) on node pve1"]
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: ["Set cores=4 on VM 'web1' (10000) on node pve1"]
applied:
  description: Options that the task changed and that hold now. In check mode, that would.
  returned: success
  type: list
  elements: str
  sample: [description]
pending:
  description: Options that are set but wait for a stop or reboot of the VM.
  returned: success
  type: list
  elements: str
  sample: [cores]
needs_reboot:
  description: Whether options wait for a stop or reboot, see RV(pending).
  returned: success
  type: bool
  sample: false
placement:
  description:
    - Where the VM goes and why, where that was decided in this run, and null for a VM that stays where it is.
    - C(refused) says of each other node why it was not taken.
  returned: success
  type: dict
  sample:
    node: pve2
    reasons: ["2 of 3 nodes fit", "least_used: 12% of its memory would be given to 4 VMs"]
    refused: {pve1: offline, pve3: 25% of its memory would be given to 7 VMs}
conditions:
  description: C(Ready), C(VMCreated), C(ResourcesAllocated) and C(NetworkConfigured), each with status and reason.
  returned: success
  type: list
  elements: dict
  sample: [{type: Ready, status: true, reason: Running}]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: foreign tenant
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry import Entry
from ansible_collections.pve.fleet.plugins.module_utils._spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._vm.converge import converge as run
from ansible_collections.pve.fleet.plugins.module_utils._vm.estate import class_secrets

ENTRY = Entry(run, vm_spec(), {"required_one_of": [("name", "vmid")]}, secrets=class_secrets)


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
