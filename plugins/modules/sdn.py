#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from sdn.yml: do not edit.

DOCUMENTATION = r"""
module: sdn
short_description: Manage software-defined networks as a transaction
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Declares zones, VNets, subnets, fabrics, controllers, IPAMs and name servers, or any part of
    them. Sections and options that are not set are not changed.
  - The plan is the difference to the running configuration. With Proxmox VE 9, the task locks the
    configuration, writes, reads what an apply would change on each node, applies, waits for the
    nodes, and releases the lock.
  - If a step before the apply fails, the task rolls back and releases the lock. IPAMs and name
    servers are not rolled back.
  - Pending changes of others are neither applied nor rolled back. The task is refused while such
    changes exist.
  - After an interrupted run, the next run of the same user on the same computer takes over its
    lock, and rolls back its changes before it writes its own.
  - Overlapping subnets of a zone, overlapping fabrics, unknown nodes, bridges and interfaces, other
    types of zones, tags that are invalid in a zone, and the removal of a VNet that guests use are
    refused before the first write.
  - Proxmox VE 8 has no lock and no fabrics. There, concurrent changes of others are also applied.
  - The token needs C(SDN.Allocate) on C(/sdn), and C(Sys.Audit) on C(/). The removal of a VNet
    needs C(VM.Audit) on all guests, and changes of O(fabric_nodes) need C(Sys.Modify) on these
    nodes.
options:
  zones:
    description: Zones.
    type: list
    elements: dict
    suboptions:
      name:
        description: ID of the zone, 2 to 8 letters and digits.
        type: str
        required: true
      state:
        description: Whether the object exists.
        type: str
        choices: [present, absent]
        default: present
      type:
        description: Type of the zone. Required for a new zone. It cannot be changed.
        type: str
        choices: [simple, vlan, qinq, vxlan, evpn]
      bridge:
        description: Bridge of the nodes, for O(zones[].type=vlan) and V(qinq).
        type: str
      nodes:
        description: Nodes of the zone. By default, or with an empty list, all nodes.
        type: list
        elements: str
      tag:
        description: Service VLAN of a zone with O(zones[].type=qinq).
        type: int
      vlan_protocol:
        description: Protocol of the service VLAN.
        type: str
        choices: [802.1q, 802.1ad]
      peers:
        description: Addresses of the nodes, for O(zones[].type=vxlan). An empty list removes them.
        type: list
        elements: str
      fabric:
        description:
          - Fabric that connects the nodes, instead of O(zones[].peers). An empty value removes it.
          - Needs Proxmox VE 9.0.
        type: str
      vxlan_port:
        description: UDP port of VXLAN.
        type: int
      vrf_vxlan:
        description: VXLAN ID of the VRF, for O(zones[].type=evpn).
        type: int
      controller:
        description: Controller, for O(zones[].type=evpn).
        type: str
      exitnodes:
        description: Nodes that route to other networks.
        type: list
        elements: str
      exitnodes_primary:
        description: Preferred exit node. An empty value removes it.
        type: str
      exitnodes_local_routing:
        description: Whether exit nodes can reach the VNets themselves.
        type: bool
      advertise_subnets:
        description: Whether EVPN announces whole subnets.
        type: bool
      disable_arp_nd_suppression:
        description: Whether the suppression of ARP and ND packets is disabled.
        type: bool
      rt_import:
        description: Route targets to import. An empty value removes them.
        type: str
      mac:
        description: MAC address of the anycast gateway. Proxmox VE chooses one by default. It
          cannot be removed.
        type: str
      bridge_disable_mac_learning:
        description: Whether bridges do not learn MAC addresses.
        type: bool
      mtu:
        description: MTU of the zone.
        type: int
      ipam:
        description: IPAM of the zone. An empty value removes it.
        type: str
      dhcp:
        description: DHCP server of the zone. An empty value removes it.
        type: str
        choices: ['', dnsmasq]
      dns:
        description: Name server of the zone. An empty value removes it.
        type: str
      reversedns:
        description: Name server for reverse records. An empty value removes it.
        type: str
      dnszone:
        description: Domain of the zone. An empty value removes it.
        type: str
  vnets:
    description: VNets.
    type: list
    elements: dict
    suboptions:
      name:
        description: ID of the VNet, 2 to 8 letters and digits.
        type: str
        required: true
      state:
        description: Whether the object exists.
        type: str
        choices: [present, absent]
        default: present
      zone:
        description: Zone of the VNet. Required for a new VNet.
        type: str
      tag:
        description: VLAN tag or VXLAN ID.
        type: int
      alias:
        description: Alias of the VNet. An empty value removes it.
        type: str
      vlanaware:
        description: Whether guests can use VLANs within the VNet.
        type: bool
      isolate_ports:
        description: Whether guests of the VNet cannot reach each other.
        type: bool
  subnets:
    description: Subnets.
    type: list
    elements: dict
    suboptions:
      cidr:
        description: Network, such as V(10.1.0.0/24).
        type: str
        required: true
      vnet:
        description: VNet of the subnet.
        type: str
        required: true
      state:
        description: Whether the object exists.
        type: str
        choices: [present, absent]
        default: present
      gateway:
        description: Address of the gateway. An empty value removes it.
        type: str
      snat:
        description: Whether the node translates addresses of outgoing packets.
        type: bool
      dnszoneprefix:
        description: Prefix of the domain. An empty value removes it.
        type: str
      dhcp_ranges:
        description: Ranges of addresses for DHCP. An empty list removes them.
        type: list
        elements: dict
        suboptions:
          start_address:
            description: First address.
            type: str
            required: true
          end_address:
            description: Last address.
            type: str
            required: true
      dhcp_dns_server:
        description: Name server that DHCP announces. An empty value removes it.
        type: str
  fabrics:
    description:
      - Fabrics, which are routed networks between the nodes. They need Proxmox VE 9.0.
      - Fabrics with other protocols, which later versions support, are returned and not changed.
    type: list
    elements: dict
    suboptions:
      name:
        description: ID of the fabric, 2 to 8 letters, digits and hyphens.
        type: str
        required: true
      state:
        description: Whether the object exists. The nodes of a fabric are removed with the fabric.
        type: str
        choices: [present, absent]
        default: present
      protocol:
        description: Protocol of the fabric. Required for a new fabric. It cannot be changed.
        type: str
        choices: [openfabric, ospf]
      ip_prefix:
        description:
          - Network of the IPv4 addresses of the nodes. An empty value removes it.
          - If it changes, the nodes of the fabric are removed and created again in the same
            transaction.
        type: str
      ip6_prefix:
        description: Network of the IPv6 addresses of the nodes, for V(openfabric). An empty value
          removes it.
        type: str
      hello_interval:
        description: Seconds between hello packets, 1 to 600, for V(openfabric).
        type: int
      csnp_interval:
        description: Seconds between complete sequence number packets, 1 to 600, for V(openfabric).
        type: int
      area:
        description: Area, a number or an IPv4 address. Required for V(ospf).
        type: str
  fabric_nodes:
    description: Nodes of fabrics.
    type: list
    elements: dict
    suboptions:
      fabric:
        description: Fabric of the node.
        type: str
        required: true
      node:
        description: Name of the node.
        type: str
        required: true
      state:
        description: Whether the object exists.
        type: str
        choices: [present, absent]
        default: present
      ip:
        description: IPv4 address of the node within O(fabrics[].ip_prefix). An empty value removes
          it.
        type: str
      ip6:
        description: IPv6 address of the node within O(fabrics[].ip6_prefix). An empty value removes
          it.
        type: str
      interfaces:
        description: Interfaces that lead to other nodes of the fabric. An empty list removes them.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the interface.
            type: str
            required: true
          ip:
            description: IPv4 address with prefix length. By default, the interface does not have
              its own address.
            type: str
          ip6:
            description: IPv6 address with prefix length, for V(openfabric).
            type: str
          hello_multiplier:
            description: Number of missed hello packets, 2 to 100, after which a neighbour counts as
              lost, for V(openfabric).
            type: int
  controllers:
    description: Controllers.
    type: list
    elements: dict
    suboptions:
      name:
        description: ID of the controller.
        type: str
        required: true
      state:
        description: Whether the object exists.
        type: str
        choices: [present, absent]
        default: present
      type:
        description: Type of the controller. Required for a new controller.
        type: str
        choices: [evpn, bgp, isis]
      asn:
        description: Autonomous system number.
        type: int
      peers:
        description: Addresses of the peers. An empty list removes them.
        type: list
        elements: str
      fabric:
        description:
          - Fabric that connects the nodes, instead of O(controllers[].peers), for V(evpn). An empty
            value removes it.
          - Needs Proxmox VE 9.0.
        type: str
      node:
        description: Node of the controller.
        type: str
      ebgp:
        description: Whether peers belong to other autonomous systems.
        type: bool
      ebgp_multihop:
        description: Number of hops to the peers.
        type: int
      loopback:
        description: Interface with the address of the router. An empty value removes it.
        type: str
      bgp_multipath_as_path_relax:
        description: Whether multiple paths of the same length are used.
        type: bool
      isis_domain:
        description: Name of the IS-IS domain.
        type: str
      isis_ifaces:
        description: Interfaces of IS-IS.
        type: list
        elements: str
      isis_net:
        description: Network entity title of IS-IS.
        type: str
  ipams:
    description: IPAMs. Changes to them take effect immediately, without an apply.
    type: list
    elements: dict
    suboptions:
      name:
        description: ID of the IPAM.
        type: str
        required: true
      state:
        description: Whether the object exists.
        type: str
        choices: [present, absent]
        default: present
      type:
        description: Type of the IPAM. Required for a new IPAM.
        type: str
        choices: [pve, netbox, phpipam]
      url:
        description: URL of its API.
        type: str
      token:
        description: Token for its API.
        type: str
      section:
        description: Section of phpIPAM.
        type: int
      fingerprint:
        description: Fingerprint of its certificate. An empty value removes it.
        type: str
  dns:
    description: Name servers. Changes to them take effect immediately, without an apply.
    type: list
    elements: dict
    suboptions:
      name:
        description: ID of the name server.
        type: str
        required: true
      state:
        description: Whether the object exists.
        type: str
        choices: [present, absent]
        default: present
      type:
        description: Type of the name server. Required for a new name server.
        type: str
        choices: [powerdns]
      url:
        description: URL of its API.
        type: str
      key:
        description: Key for its API.
        type: str
      ttl:
        description: Time to live of records.
        type: int
      reversemaskv6:
        description: Prefix length of reverse zones for IPv6.
        type: int
      fingerprint:
        description: Fingerprint of its certificate. An empty value removes it.
        type: str
  exact:
    description:
      - Sections whose objects are removed if they are not listed. Each of these sections must be
        set.
      - VNets of tenants and their subnets are kept. M(pve.fleet.tenant) creates and removes them.
    type: list
    elements: str
    choices: [zones, vnets, subnets, fabrics, fabric_nodes, controllers, ipams, dns]
  task_timeout:
    description:
      - Seconds to wait for the task of an apply, and then for the zones on the nodes.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 300
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
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

- name: Connect two nodes with a fabric, and create a VXLAN zone over it
  pve.fleet.sdn:
    fabrics:
      - {name: under, protocol: openfabric, ip_prefix: 10.99.1.0/24}
    fabric_nodes:
      - {fabric: under, node: pve1, ip: 10.99.1.1, interfaces: [{name: vmbr0}]}
      - {fabric: under, node: pve2, ip: 10.99.1.2, interfaces: [{name: vmbr0}]}
    zones:
      - {name: across, type: vxlan, fabric: under, nodes: [pve1, pve2]}
    vnets:
      - {name: far, zone: across, tag: 6000}

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
    - Module M(pve.fleet.sdn) omits subnets, IPAMs and name servers if the task does not concern
      them.
  returned: success
  type: dict
  sample: {zones: [{name: teams, type: vlan, bridge: vmbr0}], vnets: [{name: blue, zone: teams,
    tag: 110}]}
dry_run:
  description: Differences of the files C(interfaces) and C(frr) on each node, as Proxmox VE
    predicted them before the apply. They are part of the diff.
  returned: success
  type: dict
  sample: {pve1: {interfaces: +auto blue}}
nodes:
  description: Status of each zone on each node, V(available), V(pending) or V(error). Module
    M(pve.fleet.sdn) returns it after an apply.
  returned: success
  type: dict
  sample: {pve1: {teams: available}}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Lock the SDN configuration, 'Create zone ''teams'': bridge=vmbr0, type=vlan', Apply the
    SDN configuration, Release the SDN lock]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: pending changes, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.sdn import (
    sdn_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.run import run

ENTRY = ModuleEntry(run, sdn_spec(), name="sdn")
main = ENTRY.main

if __name__ == "__main__":
    main()
