#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from firewall.yml: do not edit.

DOCUMENTATION = r"""
module: firewall_check
short_description: Check whether the firewall allows a connection
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Evaluates the rules of the firewall for one connection, and returns the decisive rule. No packet
    is sent, and nothing is changed.
  - The built-in rules of Proxmox VE are part of the evaluation, as are macros, aliases, IP sets,
    security groups and policies.
  - Routing, VLANs and other firewalls are not evaluated, nor are rules of type C(forward), which
    only the firewall based on nftables has.
  - The token needs C(Sys.Audit) on C(/), and C(VM.Audit) on the guests.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details:
      - Nothing is changed.
  idempotent:
    support: full
options:
  source:
    description: The end that opens the connection. Set one of O(source.name), O(source.vmid) and
      O(source.node), or only O(source.address).
    type: dict
    required: true
    suboptions:
      name:
        description: Exact name of a guest.
        type: str
      vmid:
        description: VMID of a guest.
        type: int
      tenant:
        description: Tenant of the guest. By default, the guest can belong to any tenant.
        type: str
      nic:
        description: NIC of the guest, such as V(net0). By default, its first NIC.
        type: str
      node:
        description: Name of a node.
        type: str
      address:
        description:
          - IP address. If it is set alone, the address is outside of the cluster.
          - By default, the address of the node, or the static address in the configuration of the
            guest.
        type: str
  dest:
    description: The other end, in the form of O(source).
    type: dict
    required: true
    suboptions:
      name:
        description: Exact name of a guest.
        type: str
      vmid:
        description: VMID of a guest.
        type: int
      tenant:
        description: Tenant of the guest. By default, the guest can belong to any tenant.
        type: str
      nic:
        description: NIC of the guest, such as V(net0). By default, its first NIC.
        type: str
      node:
        description: Name of a node.
        type: str
      address:
        description:
          - IP address. If it is set alone, the address is outside of the cluster.
          - By default, the address of the node, or the static address in the configuration of the
            guest.
        type: str
  proto:
    description: Protocol, such as V(tcp), V(udp), V(icmp) or V(icmpv6).
    type: str
    default: tcp
  dport:
    description: Destination port.
    type: int
  sport:
    description: Source port. By default, 50000, a typical port of clients.
    type: int
  icmp_type:
    description: Type of an ICMP packet. By default, V(echo-request).
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes]
seealso: [{module: pve.fleet.firewall}, {module: pve.fleet.firewall_info}]
"""

EXAMPLES = r"""
- name: Check whether this address can reach the API of a node
  pve.fleet.firewall_check:
    source: {address: 192.0.2.10}
    dest: {node: pve1}
    dport: 8006
  register: access

- name: Show the decisive rule
  ansible.builtin.debug:
    msg: "{{ access.reachable }}: {{ access.decided_by.reason }}"

- name: Check ping between two nodes
  pve.fleet.firewall_check:
    source: {node: pve1}
    dest: {node: pve2}
    proto: icmp
"""

RETURN = r"""
reachable:
  description: Whether all firewalls on the path accept the connection. Null if a rule cannot be
    evaluated, such as a rule with an IP set of SDN.
  returned: success
  type: bool
  sample: false
decided_by:
  description:
    - The decisive result, which is the first one that does not accept the connection, or the last
      one.
    - It contains C(place), C(direction), C(verdict), C(origin), C(position), C(rule) and C(reason).
      C(rule) is null if the firewall is disabled.
    - Null if both ends are outside of the cluster.
  returned: success
  type: dict
  sample:
    place: VM 10001 net0
    direction: in
    verdict: DROP
    origin: policy_in
    position: null
    rule:
      type: in
      action: DROP
      enable: true
    reason: 'policy_in: in DROP'
decisions:
  description: The decisions of all firewalls on the path, in the form of RV(decided_by).
  returned: success
  type: list
  elements: dict
  sample: []
packet:
  description: The packet that was evaluated.
  returned: success
  type: dict
  sample: {source: 10.0.0.5, dest: 10.0.0.6, proto: tcp, dport: 443, sport: 50000}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.firewall import (
    firewall_check_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.reach.run_check import run

ENTRY = ModuleEntry(
    run,
    firewall_check_spec(),
    names={"source.node": "node", "dest.node": "node"},
    name="firewall_check",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
