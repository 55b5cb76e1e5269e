#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from sdn.yml: do not edit.

DOCUMENTATION = r"""
module: sdn_info
short_description: Gather information about software-defined networks
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns zones, VNets, subnets, fabrics, controllers, IPAMs and name servers in their running
    configuration, in the form of the options of M(pve.fleet.sdn).
  - It also returns pending changes, addresses leased by the IPAM of Proxmox VE, and the status of
    zones on each node.
  - The token needs C(SDN.Audit) on C(/sdn), and C(Sys.Audit) on C(/).
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.sdn}]
"""

EXAMPLES = r"""
- name: Read networks
  pve.fleet.sdn_info:
  register: networks

- name: List changes that have not been applied
  ansible.builtin.debug:
    var: networks.pending
"""

RETURN = r"""
sdn:
  description:
    - The running objects by section, in the form of the options, without tokens and keys.
    - Module M(pve.fleet.sdn) omits subnets, IPAMs and name servers if the task does not concern
      them.
  returned: success
  type: dict
  sample: {zones: [{name: teams, type: vlan, bridge: vmbr0}], vnets: [{name: blue, zone: teams,
    tag: 110}]}
pending:
  description: Changes that are configured but not applied.
  returned: success
  type: list
  elements: str
  sample: [vnet blue (changed)]
leases:
  description: Addresses in the IPAM of Proxmox VE.
  returned: success
  type: list
  elements: dict
  sample: [{ipam: pve, vnet: lab0, subnet: 10.40.0.0/24, ip: 10.40.0.100, mac: 'BC:24:11:00:00:01',
    hostname: web, vmid: 10001, gateway: null}]
nodes:
  description: Status of each zone on each node, V(available), V(pending) or V(error). Module
    M(pve.fleet.sdn) returns it after an apply.
  returned: success
  type: dict
  sample: {pve1: {teams: available}}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.run import (
    no_options,
    run_info,
)

ENTRY = ModuleEntry(run_info, no_options(), name="sdn_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
