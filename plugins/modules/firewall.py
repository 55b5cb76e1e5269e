#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from firewall.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: firewall
short_description: Manage the firewall of the cluster, a node, a guest, a VNet or a security group
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Manages options, rules, aliases and IP sets of one scope of the firewall.
  - Rules are compared as an ordered list, and the task makes the fewest writes. Proxmox VE
    creates rules on top, so a rule further down is created and then moved.
  - After each write the rules decide about each packet as the old list or as the new one. If
    this is not possible directly, a rule is created disabled, moved, and then enabled.
  - Each write requires that the rules are as they were read. If another run has changed them
    since, the rest is planned again.
  - Aliases, IP sets, security groups, macros and interfaces that do not exist are refused before
    the first write.
  - Rules of the cluster and of nodes are evaluated before the first write. If they would cut
    this computer from the API, or SSH or corosync between nodes, the task is refused unless
    O(allow_lockout) is set.
  - The token needs C(Sys.Audit) and C(Sys.Modify) on C(/) for the cluster and security groups,
    on C(/nodes/NODE) and C(Sys.Audit) on C(/) for a node, C(VM.Audit) and C(VM.Config.Network)
    for a guest, and C(SDN.Allocate) for a VNet.
extends_documentation_fragment:
  - pve.fleet.firewall_options
  - pve.fleet.firewall_options.scope
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.firewall_info
  - module: pve.fleet.vm
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
    nics: [{bridge: vmbr0, firewall: true}]

- name: Allow web traffic and SSH of administrators to the VM, nothing else
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
    - The firewall in the form of the options. RV(firewall) of module M(pve.fleet.firewall)
      has the parts that the task sets.
    - Null if the security group does not exist.
  returned: success
  type: dict
  contains:
    comment: {description: Comment of a security group., type: str, sample: Web servers}
    options: {description: Options of the scope that are set., type: dict, sample: {enable: true,
        policy_in: DROP}}
    rules: {description: Rules in order., type: list, elements: dict, sample: [{type: in,
          action: ACCEPT, enable: true, macro: SSH}]}
    aliases: {description: Aliases of the cluster or of a guest., type: list, elements: dict,
      sample: [{name: office, cidr: 192.0.2.0/24, comment: ''}]}
    ip_sets: {description: IP sets of the cluster or of a guest., type: list, elements: dict,
      sample: []}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: ['Change rule 3 of VM 10001: in ACCEPT tcp dport 443']
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: ['Change rule 3 of VM 10001: in ACCEPT tcp dport 443']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: ConfigurationError
    reason: unknown alias
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._firewall.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.firewall import firewall_spec

ENTRY = Entry(
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


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
