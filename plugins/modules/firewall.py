#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from firewall.yml: do not edit.

DOCUMENTATION = r"""
module: firewall
short_description: Manage the firewall of the cluster, a node, a guest, a VNet or a security group
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Manages options, rules, aliases and IP sets of one scope of the firewall.
  - Rules are compared as an ordered list, and the task makes as few writes as possible. Proxmox VE
    creates rules at the top, so a rule further down is created and then moved.
  - After each write, the result for each packet is that of the old list or of the new list. If this
    is not directly possible, a rule is created disabled, moved, and then enabled.
  - Each write requires that the rules have not changed since they were read. If another run has
    changed them, the rest is planned again.
  - A security group or VNet with the mark of a tenant is changed only with O(tenant). Aliases and
    IP sets of the cluster with such a mark are not changed. M(pve.fleet.tenant) manages them.
  - Aliases, IP sets, security groups, macros and interfaces that do not exist are refused before
    the first write.
  - Rules of the cluster and of nodes are evaluated before the first write. If they would block this
    computer's access to the API, or SSH or corosync between nodes, the task is refused unless
    O(allow_lockout) is set.
  - The token needs C(Sys.Audit) and C(Sys.Modify) on C(/) for the cluster and security groups, on
    C(/nodes/NODE) and C(Sys.Audit) on C(/) for a node, C(VM.Audit) and C(VM.Config.Network) for a
    guest, and C(SDN.Allocate) for a VNet.
options:
  state:
    description:
      - Whether a security group exists. V(absent) removes a group with its rules.
      - A group that a rule of the cluster, a node, a VNet or a guest uses is not removed. The token
        then needs C(VM.Audit) on C(/vms), because one request is made for each guest.
    type: str
    choices: [present, absent]
    default: present
  comment:
    description: Comment of a security group. An empty value removes it.
    type: str
  options:
    description: Options of the scope. An option that is not set is not changed. Each scope supports
      some of the options.
    type: dict
    suboptions:
      enable:
        description: Whether the firewall of the scope is enabled. It is enabled after its rules are
          complete.
        type: bool
      ebtables:
        description: Whether the cluster filters frames with ebtables.
        type: bool
      policy_in:
        description: Policy for incoming packets that no rule matches. An empty value removes it.
        type: str
        choices: ['', ACCEPT, REJECT, DROP]
      policy_out:
        description: Policy for outgoing packets that no rule matches. An empty value removes it.
        type: str
        choices: ['', ACCEPT, REJECT, DROP]
      policy_forward:
        description: Policy for forwarded packets that no rule matches. An empty value removes it.
        type: str
        choices: ['', ACCEPT, DROP]
      log_ratelimit:
        description: Rate limit of the log, such as V(enable=1,rate=1/second,burst=5). An empty
          value removes it.
        type: str
      log_level_in:
        description: Log level of incoming packets.
        type: str
        choices: [emerg, alert, crit, err, warning, notice, info, debug, nolog]
      log_level_out:
        description: Log level of outgoing packets.
        type: str
        choices: [emerg, alert, crit, err, warning, notice, info, debug, nolog]
      log_level_forward:
        description: Log level of forwarded packets.
        type: str
        choices: [emerg, alert, crit, err, warning, notice, info, debug, nolog]
      tcp_flags_log_level:
        description: Log level of packets with illegal TCP flags.
        type: str
        choices: [emerg, alert, crit, err, warning, notice, info, debug, nolog]
      smurf_log_level:
        description: Log level of smurf packets.
        type: str
        choices: [emerg, alert, crit, err, warning, notice, info, debug, nolog]
      nosmurfs:
        description: Whether a node drops smurf packets.
        type: bool
      tcpflags:
        description: Whether a node drops packets with illegal TCP flags.
        type: bool
      nf_conntrack_max:
        description: Maximum number of tracked connections of a node.
        type: int
      nf_conntrack_tcp_timeout_established:
        description: Seconds after which an idle TCP connection is no longer tracked.
        type: int
      nf_conntrack_tcp_timeout_syn_recv:
        description: Seconds to wait for the end of a TCP handshake.
        type: int
      nf_conntrack_allow_invalid:
        description: Whether packets with an invalid state are accepted.
        type: bool
      nf_conntrack_helpers:
        description: Protocols with a helper for connection tracking, such as V(ftp,sip). An empty
          value removes it.
        type: str
      protection_synflood:
        description: Whether a node limits new TCP connections.
        type: bool
      protection_synflood_rate:
        description: New TCP connections per source and second.
        type: int
      protection_synflood_burst:
        description: New TCP connections per source at once.
        type: int
      log_nf_conntrack:
        description: Whether a node logs tracked connections.
        type: bool
      nftables:
        description: Whether a node uses the firewall based on nftables.
        type: bool
      macfilter:
        description: Whether a guest can only send from its own MAC address.
        type: bool
      dhcp:
        description: Whether a guest can use DHCP.
        type: bool
      ndp:
        description: Whether NDP is accepted.
        type: bool
      radv:
        description: Whether a guest can send router advertisements.
        type: bool
      ipfilter:
        description: Whether a guest can only send from its own IP addresses.
        type: bool
  rules:
    description:
      - The complete list of rules, in order. An empty list removes all rules. By default, rules are
        not changed.
      - Existing rules that are not listed are removed, except the rule for the security group that
        isolates a tenant's guest. That rule stays at the top of the list.
    type: list
    elements: dict
    suboptions:
      type:
        description: Direction, or V(group) for the rules of a security group.
        type: str
        required: true
        choices: [in, out, forward, group]
      action:
        description: V(ACCEPT), V(DROP) or V(REJECT), or with O(rules[].type=group) the name of the
          security group.
        type: str
        required: true
      enable:
        description: Whether the rule is enabled.
        type: bool
        default: true
      macro:
        description: Name of a macro of Proxmox VE, such as V(SSH).
        type: str
      iface:
        description: Interface. For a guest, this is its NIC, such as V(net0).
        type: str
      source:
        description: Addresses, networks, a range, the name of an alias, or V(+NAME) for an IP set.
        type: str
      dest:
        description: Destination, in the form of O(rules[].source).
        type: str
      proto:
        description: Protocol, such as V(tcp).
        type: str
      sport:
        description: Source ports, such as V(1024:65535).
        type: str
      dport:
        description: Destination ports, such as V(80,443,8000:8010).
        type: str
      icmp_type:
        description: Type of ICMP packets, such as V(echo-request). Proxmox VE accepts names only.
        type: str
      log:
        description: Log level. V(nolog) is the default.
        type: str
        choices: [emerg, alert, crit, err, warning, notice, info, debug, nolog]
      comment:
        description: Comment of the rule.
        type: str
  aliases:
    description: Aliases of the cluster or of a guest. Other aliases are kept unless O(exact) is
      set.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the alias. It is not case-sensitive.
        type: str
        required: true
      cidr:
        description: Address or network.
        type: str
        required: true
      comment:
        description: Comment of the alias.
        type: str
  ip_sets:
    description: IP sets of the cluster or of a guest. Other sets and members are kept unless
      O(exact) is set.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the IP set. Proxmox VE keeps it in lower case.
        type: str
        required: true
      comment:
        description: Comment of the IP set.
        type: str
      members:
        description: Members of the IP set.
        type: list
        elements: dict
        suboptions:
          cidr:
            description: Address, network or alias.
            type: str
            required: true
          nomatch:
            description: Whether the address is excluded from the set.
            type: bool
            default: false
          comment:
            description: Comment of the member.
            type: str
  allow_lockout:
    description:
      - Whether rules of the cluster or a node may block the access of this computer to the API, or
        SSH or corosync between nodes. By default, such rules are refused. With V(true), a warning
        reports them.
    type: bool
    default: false
  caller_address:
    description:
      - Address with which this computer appears to Proxmox VE. Set it behind NAT or a proxy.
      - By default, the local address of the connection.
    type: str
  exact:
    description:
      - Whether aliases, IP sets and members that are not listed are removed, for each of O(aliases)
        and O(ip_sets) that is set.
      - Aliases and IP sets of tenants in the firewall of the cluster are kept. M(pve.fleet.tenant)
        creates and removes them.
      - An alias or IP set that a rule or an IP set of any scope uses is not removed. For names of
        the cluster, the token then needs C(VM.Audit) on C(/vms), because two or more requests are
        made for each guest.
    type: bool
    default: false
extends_documentation_fragment:
  - pve.fleet.firewall_options.scope
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso: [{module: pve.fleet.firewall_info}, {module: pve.fleet.vm}]
"""

EXAMPLES = r"""
- name: Create a security group for web servers
  pve.fleet.firewall:
    scope: group
    group: web
    comment: Web servers
    rules:
      - {type: in, action: ACCEPT, macro: HTTP}
      - {type: in, action: ACCEPT, macro: HTTPS}

- name: Define addresses of the administrators for the whole cluster
  pve.fleet.firewall:
    scope: cluster
    aliases:
      - {name: office, cidr: 192.0.2.0/24, comment: Head office}
    ip_sets:
      - name: admins
        members:
          - {cidr: 198.51.100.7, comment: VPN}
          - {cidr: office}

- name: Create a VM
  pve.fleet.vm:
    name: filtered
    node: pve1
    blank: true
    nics: [{bridge: vmbr0, firewall: true}]

- name: Allow only web traffic and SSH of administrators to the VM
  pve.fleet.firewall:
    scope: guest
    name: filtered
    options:
      enable: true
      policy_in: DROP
    rules:
      - {type: group, action: web}
      - {type: in, action: ACCEPT, macro: SSH, source: +dc/admins, comment: administrators}

- name: Remove all rules of the VM
  pve.fleet.firewall:
    scope: guest
    name: filtered
    rules: []

- name: Remove the security group
  pve.fleet.firewall:
    scope: group
    group: web
    state: absent
"""

RETURN = r"""
firewall:
  description:
    - The firewall in the form of the options. RV(firewall) of module M(pve.fleet.firewall) contains
      only the parts that the task sets.
    - Null if the security group does not exist.
    - RV(pve.fleet.firewall_info#module:firewall) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: ['Change rule 3 of VM 10001: in ACCEPT tcp dport 443']
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: ConfigurationError, reason: unknown alias, status: null, path: null,
    upid: null, retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.firewall import (
    firewall_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.run import run

ENTRY = ModuleEntry(
    run,
    firewall_spec(),
    {
        "mutually_exclusive": [
            ("node", "vnet", "group", "name"),
            ("node", "vnet", "group", "vmid"),
        ],
        "required_if": [
            ("scope", "node", ["node"]),
            ("scope", "vnet", ["vnet"]),
            ("scope", "group", ["group"]),
            ("scope", "guest", ["name", "vmid"], True),
        ],
    },
    name="firewall",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
