# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules firewall, firewall_info and firewall_check.

Written by `make options` from firewall.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    SCOPE = r"""
options:
  scope:
    description: Scope of the firewall. V(guest) is a VM or a container, V(group) a security group.
    type: str
    required: true
    choices: [cluster, node, guest, vnet, group]
  node:
    description: Name of the node, with O(scope=node).
    type: str
  vnet:
    description: Name of the VNet, with O(scope=vnet).
    type: str
  group:
    description: Name of the security group, with O(scope=group).
    type: str
  name:
    description: Exact name of the guest, with O(scope=guest).
    type: str
  vmid:
    description: VMID of the guest, with O(scope=guest).
    type: int
  tenant:
    description:
      - Tenant of the guest. A guest without exactly this tenant's tag is refused.
      - By default, the guest of any tenant. An empty value is therefore an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
"""

    DOCUMENTATION = r"""
options:
  state:
    description:
      - Whether a security group must exist. V(absent) removes a group with its rules.
      - A group that a rule of the cluster, a node, a VNet or a guest uses is not removed. The
        token then needs C(VM.Audit) on the guests, because one request is made for each of them.
    type: str
    choices: [present, absent]
    default: present
  comment:
    description: Comment of a security group. An empty value removes it.
    type: str
  options:
    description: Options of the scope. An option that is not set is not changed. Each scope has
      some of them.
    type: dict
    suboptions:
      enable:
        description: Whether the firewall of the scope is on. It is switched on after its rules
          are complete.
        type: bool
      ebtables:
        description: Whether the cluster filters frames with ebtables.
        type: bool
      policy_in:
        description: Decision about incoming packets that no rule matches. An empty value removes
          it.
        type: str
        choices: ['', ACCEPT, REJECT, DROP]
      policy_out:
        description: Decision about outgoing packets that no rule matches. An empty value removes
          it.
        type: str
        choices: ['', ACCEPT, REJECT, DROP]
      policy_forward:
        description: Decision about forwarded packets that no rule matches. An empty value removes
          it.
        type: str
        choices: ['', ACCEPT, DROP]
      log_ratelimit:
        description: Limit of the log as V(enable=1,rate=1/second,burst=5). An empty value removes
          it.
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
        description: Protocols with a helper for tracking, as V(ftp,sip). An empty value removes
          it.
        type: str
      protection_synflood:
        description: Whether a node limits new TCP connections.
        type: bool
      protection_synflood_rate:
        description: New TCP connections for each source and second.
        type: int
      protection_synflood_burst:
        description: New TCP connections for each source at once.
        type: int
      log_nf_conntrack:
        description: Whether a node logs tracked connections.
        type: bool
      nftables:
        description: Whether a node uses the firewall with nftables.
        type: bool
      macfilter:
        description: Whether a guest can send from its own MAC address only.
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
        description: Whether a guest can send from its own IP addresses only.
        type: bool
  rules:
    description:
      - The complete list of rules, in order. An empty list removes all rules. By default, rules
        are not changed.
      - Existing rules that are not listed are removed.
    type: list
    elements: dict
    suboptions:
      type:
        description: Direction, or V(group) for the rules of a security group.
        type: str
        required: true
        choices: [in, out, forward, group]
      action:
        description: V(ACCEPT), V(DROP) or V(REJECT), or with O(rules[].type=group) the name of
          the security group.
        type: str
        required: true
      enable:
        description: Whether the rule is in force.
        type: bool
        default: true
      macro:
        description: Name of a macro of Proxmox VE, such as V(SSH).
        type: str
      iface:
        description: Interface. For a guest this is its NIC, such as V(net0).
        type: str
      source:
        description: Addresses, networks, a range, the name of an alias, or V(+NAME) of an IP
          set.
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
        description: Type of ICMP packets, such as V(echo-request).
        type: str
      log:
        description: Log level. V(nolog) is the default.
        type: str
        choices: [emerg, alert, crit, err, warning, notice, info, debug, nolog]
      comment:
        description: Comment of the rule.
        type: str
  aliases:
    description: Aliases of the cluster or of a guest. Others stay, unless O(exact) is set.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the alias. Upper and lower case do not differ.
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
    description: IP sets of the cluster or of a guest. Other sets and members stay, unless O(exact)
      is set.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the IP set.
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
      - Whether rules of the cluster or a node may cut the access of this computer to the API,
        or SSH or corosync between nodes. Such rules are refused by default, and reported in a
        warning with V(true).
    type: bool
    default: false
  caller_address:
    description:
      - Address from which Proxmox VE sees this computer. Set it behind NAT or a proxy.
      - By default, the local address of the connection.
    type: str
  exact:
    description:
      - Whether aliases, IP sets and members that are not listed are removed, for each of O(aliases)
        and O(ip_sets) that is set.
      - Names of tenants in the firewall of the cluster stay. M(pve.fleet.tenant) creates and
        removes them.
    type: bool
    default: false
"""

    INFO = r"""
options:
  effective:
    description:
      - Whether RV(effective) has the rules of all scopes that decide about the packets of a guest.
      - The token then needs C(Sys.Audit) on C(/) too.
    type: bool
    default: false
"""

    CHECK = r"""
options:
  source:
    description: The end that opens the connection. Set one of O(source.name), O(source.vmid),
      O(source.node), or O(source.address) alone.
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
        description: Tenant of the guest. By default, the guest of any tenant.
        type: str
      nic:
        description: NIC of the guest, such as V(net0). By default, its first one.
        type: str
      node:
        description: Name of a node.
        type: str
      address:
        description:
          - IP address. Alone, it is outside of the cluster.
          - By default, that of the node, or the static address in the configuration of the guest.
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
        description: Tenant of the guest. By default, the guest of any tenant.
        type: str
      nic:
        description: NIC of the guest, such as V(net0). By default, its first one.
        type: str
      node:
        description: Name of a node.
        type: str
      address:
        description:
          - IP address. Alone, it is outside of the cluster.
          - By default, that of the node, or the static address in the configuration of the guest.
        type: str
  proto:
    description: Protocol, such as V(tcp), V(udp), V(icmp) or V(icmpv6).
    type: str
    default: tcp
  dport:
    description: Destination port.
    type: int
  sport:
    description: Source port. By default, a port that clients use, 50000.
    type: int
  icmp_type:
    description: Type of an ICMP packet. By default, V(echo-request).
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
"""
