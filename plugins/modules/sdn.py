#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from sdn.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: sdn
short_description: Manage software-defined networks as a transaction
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Declares zones, VNets, subnets, controllers, IPAMs and name servers, or any part of them.
    What is not set is not changed.
  - The plan is the difference to the running configuration. With Proxmox VE 9, the task locks
    the configuration, writes, reads what an apply would change on each node, applies, waits
    for the nodes, and releases the lock.
  - If a step before the apply fails, the task rolls back and releases the lock. IPAMs and name
    servers are not rolled back.
  - Pending changes of others are neither applied nor rolled back. The task is refused while
    there are some.
  - The next run of the same user on the same computer takes over the lock of a run that was
    interrupted, and rolls its changes back before it writes its own.
  - Overlapping subnets of a zone, unknown nodes and bridges, other types of zones, tags that
    a zone cannot have, and the removal of a VNet that guests use are refused before the first
    write.
  - Proxmox VE 8 has no lock. There, other changes at the same time are applied too.
  - The token needs C(SDN.Allocate) on C(/sdn), and C(Sys.Audit) on C(/). The removal of a VNet
    needs C(VM.Audit) on all guests.
extends_documentation_fragment:
  - pve.fleet.sdn_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.sdn_info
  - module: pve.fleet.firewall
  - module: pve.fleet.node_network
"""

EXAMPLES = r"""
- name: Create a zone with a VNet for each of two teams
  pve.fleet.sdn:
    zones:
      - {name: teams, type: vlan, bridge: vmbr0}
    vnets:
      - {name: blue, zone: teams, tag: 110, alias: Team blue}
      - {name: green, zone: teams, tag: 120, alias: Team green}

- name: Create a VXLAN zone over three nodes
  pve.fleet.sdn:
    zones:
      - name: over
        type: vxlan
        peers: [10.99.0.11, 10.99.0.12, 10.99.0.13]
        mtu: 1450
    vnets:
      - {name: wide, zone: over, tag: 5000}

- name: Create an EVPN zone with an exit node
  pve.fleet.sdn:
    controllers:
      - {name: ctl, type: evpn, asn: 65000, peers: [10.99.0.11, 10.99.0.12, 10.99.0.13]}
    zones:
      - {name: routed, type: evpn, controller: ctl, vrf_vxlan: 10000, exitnodes: [pve1], mtu: 1450}
    vnets:
      - {name: apps, zone: routed, tag: 11000}
    subnets:
      - {cidr: 10.50.0.0/24, vnet: apps, gateway: 10.50.0.1, snat: true}

- name: Create a network with DHCP on each node
  pve.fleet.sdn:
    zones:
      - {name: lab, type: simple, ipam: pve, dhcp: dnsmasq}
    vnets:
      - {name: lab0, zone: lab}
    subnets:
      - cidr: 10.40.0.0/24
        vnet: lab0
        gateway: 10.40.0.1
        snat: true
        dhcp_ranges:
          - {start_address: 10.40.0.100, end_address: 10.40.0.199}

- name: Remove a team's VNet
  pve.fleet.sdn:
    vnets:
      - {name: green, state: absent}
"""

RETURN = r"""
sdn:
  description:
    - The running objects by section, in the form of the options, without tokens and keys.
    - Module M(pve.fleet.sdn) leaves out subnets, IPAMs and name servers if the task does not
      concern them.
  returned: success
  type: dict
  sample:
    zones:
      - name: teams
        type: vlan
        bridge: vmbr0
    vnets:
      - name: blue
        zone: teams
        tag: 110
dry_run:
  description: Differences of the files C(interfaces) and C(frr) on each node, as Proxmox VE foresaw
    them before the apply. They are part of the diff.
  returned: success
  type: dict
  sample: {pve1: {interfaces: +auto blue}}
nodes:
  description: Status of each zone on each node, V(available), V(pending) or V(error). Module
    M(pve.fleet.sdn) has it after an apply.
  returned: success
  type: dict
  sample: {pve1: {teams: available}}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample:
    - Lock the SDN configuration
    - 'Create zone ''teams'': bridge=vmbr0, type=vlan'
    - Apply the SDN configuration
    - Release the SDN lock
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample:
    - Lock the SDN configuration
    - 'Create zone ''teams'': bridge=vmbr0, type=vlan'
    - Apply the SDN configuration
    - Release the SDN lock
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: pending changes
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._sdn.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.sdn import sdn_spec

ENTRY = Entry(run, sdn_spec(), name="sdn")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
