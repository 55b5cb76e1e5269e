#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: vm_info
short_description: Tell about virtual machines
version_added: "0.1.0"
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Returns the VMs of a cluster that match all of the given filters, sorted by VMID.
  - One request lists them, and one more each node with VMs that are too new for PVE's listing.
  - With O(config) two more are made for each VM that is left after the filters.
extends_documentation_fragment:
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
  - pve.fleet.vm_options.guest
options:
  name:
    description: Only VMs of exactly this name.
    type: str
  vmid:
    description: Only the VM with this number.
    type: int
  node:
    description: Only VMs on this node.
    type: str
  tenant:
    description: Only VMs that bear exactly this tenant's tag and no other tenant's.
    type: str
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  tags:
    description: Only VMs that bear all of these tags.
    type: list
    elements: str
  pool:
    description: Only VMs in this resource pool.
    type: str
  template:
    description: Only templates (V(true)) or only VMs that are none (V(false)).
    type: bool
  config:
    description:
      - Whether the configuration is read too. Without it RV(vms[].config) is null, and power state and name can be
        about
        10 seconds old, as PVE's own listing is.
    type: bool
    default: false
seealso:
  - module: pve.fleet.vm
  - plugin: pve.fleet.proxmox
    plugin_type: inventory
"""

EXAMPLES = r"""
- name: All VMs of a tenant
  pve.fleet.vm_info:
    tenant: acme
  register: acme

- name: One VM with its configuration
  pve.fleet.vm_info:
    vmid: 10000
    config: true
  register: web1
"""

RETURN = r"""
vms:
  description: The VMs, each with the keys that RV(pve.fleet.vm#module:vm) has.
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: Its number., type: int, sample: 10000}
    name: {description: Its name., type: str, sample: web1}
    node: {description: The node it is on., type: str, sample: pve1}
    status: {description: Its power state., type: str, sample: running}
    power_state: {description: "The same in short: on, off or suspended.", type: str, sample: "on"}
    template: {description: Whether it is a template., type: bool, sample: false}
    tenant: {description: "The tenant whose tag it bears, null with none or several.", type: str, sample: acme}
    tags: {description: Its tags., type: list, elements: str, sample: [tenant_acme, web]}
    pool: {description: Its resource pool., type: str, sample: acme}
    lock: {description: What has it locked., type: str, sample: null}
    uptime: {description: Seconds since it was started., type: int, sample: 42}
    description: {description: "Its notes, null without O(config).", type: str, sample: ""}
    cloned_from: {description: "The VMID it was cloned from, null without O(config).", type: int, sample: 9000}
    config:
      description: "Its configuration in PVE's own keys, null without O(config)."
      type: dict
      sample: {cores: 2}
    macs:
      description: "The MAC address of each NIC, null without O(config)."
      type: dict
      sample: {net0: "BC:24:11:00:00:01"}
    pending:
      description: "Options that wait for a stop, null without O(config)."
      type: list
      elements: str
      sample: []
    console_url: {description: Where a browser finds its console., type: str, sample: "https://pve1:8006/?console=kvm"}
    addresses:
      description: The addresses of the guest, null without O(addresses).
      type: list
      elements: dict
      sample: [{address: 10.20.0.11, prefix: 24, interface: eth0, family: ipv4}]
    address: {description: "The address that was chosen, null where none fits.", type: str, sample: 10.20.0.11}
    address_source: {description: "Where they come from, agent or cloud-init.", type: str, sample: agent}
    agent_problem: {description: "Why the agent did not answer, null where it did.", type: str, sample: null}
    conditions:
      description: "As module M(pve.fleet.vm) returns them, null without O(config)."
      type: list
      elements: dict
      sample: [{type: Ready, status: true, reason: Running}]
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry import Entry
from ansible_collections.pve.fleet.plugins.module_utils._spec.vm import vm_info_spec
from ansible_collections.pve.fleet.plugins.module_utils._vm.info import gather as run

ENTRY = Entry(run, vm_info_spec())


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
